/** GS1 Digital Links over raw HTTP: linksets, link types, redirects, errors, resolver description, every vector (spec §4.5, §4.6). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { gs1LinksetErrors, untpLinksetErrors } from '../../support/passport/documents.ts'
import { dataOf } from '../../support/passport/fixtures.ts'
import { encodeSerial } from '../../../src/domain/gs1/serial.ts'
import { raw, type Reply } from '../../support/http.ts'
import { openItems, queryOf, textOf, type TappedItem } from '../../support/passport/passport.ts'
import { startWorld, type World } from '../../support/world.ts'

type Vector = { path: string; gtin?: string; serial?: string; error?: string }
type Keyed = { gtin: string; serial?: string; encoded?: string; note?: string }
type Request = {
  request: { method: string; path: string; accept?: string }
  expect: { status: number | number[]; type?: string; headers?: Record<string, string>; errorMatches?: string }
}
const vectors = dataOf<{
  paths: Vector[]
  validGtins: Keyed[]
  invalidGtins: Keyed[]
  validSerials: { serial: string; path: string }[]
  invalidSerials: { serial: string }[]
  resolver: Request[]
}>('vectors/gs1-vectors.json')
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

describe('a Digital Link', () => {
  let world: World
  let items: Awaited<ReturnType<typeof openItems>>
  let item: TappedItem
  let page: string
  const seen: string[] = []
  before(async () => {
    world = await startWorld()
    items = await openItems(world)
    item = await items.bound(
      { name: 'Harbour \u202eJacket', brand: 'B' },
      { gtin: '09520123456788', serial: 'HFJ-000417' },
    )
    page = `/01/${item.gtin}/21/${item.serial}`
  })
  after(() => world.end())

  async function ask(path: string, accept?: string, method = 'GET'): Promise<Reply> {
    const reply = await raw(world.url, path, { method, headers: accept === undefined ? {} : { accept } })
    seen.push(JSON.stringify({ ...reply.headers, location: undefined }), reply.status === 303 ? '' : reply.text)
    return reply
  }
  const typeOf = (reply: Reply) => String(reply.headers['content-type']).split(';')[0]
  function assertLinkHeaders(reply: Reply, link = page): void {
    assert.equal(
      reply.headers['link'],
      `<${world.url}${link}?linkType=linkset>; rel="linkset"; type="application/linkset+json"`,
    )
    assert.equal(reply.headers['access-control-allow-origin'], '*')
    assert.match(String(reply.headers['access-control-expose-headers']), /(?:^|, )Link(?:,|$)/)
    assert.match(String(reply.headers['vary']), /Accept/)
  }

  const asLinkset = [
    ['?linkType=linkset', browser],
    ['?linkType=all', browser],
    ['?linkType=gs1:linkset', undefined],
    ['', 'application/linkset+json'],
    ['?linkType=linkset&lang=de', 'text/html'],
  ] as const
  for (const [query, accept] of asLinkset) {
    it(`answers ${query || 'no query'} with Accept ${accept} with its linkset, without a redirect`, async () => {
      const reply = await ask(`${page}${query}`, accept)
      assert.deepEqual([reply.status, typeOf(reply)], [200, 'application/linkset+json'])
      assertLinkHeaders(reply)
      const linkset = JSON.parse(reply.text) as { linkset: { anchor: string; itemDescription: string }[] }
      assert.deepEqual([gs1LinksetErrors(linkset), untpLinksetErrors(linkset)], [[], []])
      assert.deepEqual(
        linkset.linkset.map(({ anchor }) => anchor),
        [`${world.url}${page}`, `${world.url}/01/${item.gtin}`],
      )
      assert.doesNotMatch(reply.text, /Harbour Jacket/) // supplier text outside `untrusted`
    })
  }

  it('leads to every address that its linkset names', async () => {
    const { text } = await ask(`${page}?linkType=linkset`)
    const hrefs = new Set([...text.matchAll(/"href":"([^"]+)"/g)].map(([, href = '']) => href))
    assert.ok(hrefs.size >= 4)
    for (const href of hrefs) {
      const { pathname } = new URL(href)
      const wanted = pathname.startsWith('/api/dpp/') ? 400 : 200 // without a tap there is no passport
      assert.equal((await ask(pathname, browser)).status, wanted, href)
    }
  })

  const redirects = [
    ['gs1:dpp', 'application/ld+json', 'passport'],
    ['dpp', 'application/json', 'passport'],
    ['https://ref.gs1.org/voc/dpp', 'application/ld+json', 'passport'],
    ['gs1:pip', browser, 'page'],
    ['gs1:verificationService', browser, 'verdict'],
    ['recallStatus', browser, 'verdict'],
  ] as const
  for (const [linkType, accept, to] of redirects) {
    it(`answers linkType=${linkType} with 303 to the ${to}, ${to === 'passport' ? 'with' : 'without'} the tap`, async () => {
      const tap = queryOf(item.tag.next())
      const reply = await ask(`${page}?linkType=${linkType}&${tap}&lang=de`, accept)
      assert.equal(reply.status, 303)
      assertLinkHeaders(reply)
      assert.deepEqual([reply.headers['cache-control'], reply.headers['referrer-policy']], ['no-store', 'no-referrer'])
      const targets = {
        passport: `${world.url}/api/dpp${page}?linkType=${linkType}&${tap}&lang=de`,
        page: `${world.url}${page}?lang=de`,
        verdict: `${world.url}/api/asset/${item.tokenId}?linkType=${linkType}&lang=de`,
      }
      assert.equal(reply.headers['location'], targets[to])
      const { pathname, search } = new URL(targets[to])
      assert.equal((await ask(`${pathname}${search}`, accept)).status, 200, 'and something is there')
    })
  }

  it('answers a link type that does not exist with 404, not with the page', async () => {
    for (const linkType of ['gs1:recipeInfo', 'constructor', '__proto__', '', 'https://evil.example/voc/dpp']) {
      const reply = await ask(`${page}?linkType=${linkType}`, browser)
      assert.equal(reply.status, 404, linkType)
      assertLinkHeaders(reply)
    }
  })

  it('consumes no tap for a linkset, a redirect, HEAD or OPTIONS', async () => {
    const query = queryOf(item.tag.next())
    const before = (await world.components.tags.tagOfUid(item.tag.uid))?.lastCounter
    await ask(`${page}?linkType=linkset&${query}`)
    await ask(`${page}?linkType=gs1:dpp&${query}`, 'application/ld+json')
    const head = await ask(`${page}?${query}`, browser, 'HEAD')
    assert.deepEqual([head.status, head.text], [200, ''])
    assertLinkHeaders(head)
    const options = await ask(`${page}?${query}`, browser, 'OPTIONS')
    assert.deepEqual([options.status, options.headers['access-control-allow-methods']], [204, 'GET, HEAD, OPTIONS'])
    assert.equal((await world.components.tags.tagOfUid(item.tag.uid))?.lastCounter, before)
  })

  it('answers HEAD of a linkset like GET, without the body', async () => {
    const [get, head] = [
      await ask(`${page}?linkType=linkset`),
      await ask(`${page}?linkType=linkset`, undefined, 'HEAD'),
    ]
    assert.deepEqual([head.status, head.text, head.headers['link']], [200, '', get.headers['link']])
  })

  it('of a class that is known has a linkset; of another one 404', async () => {
    const known = await ask(`/01/${item.gtin}?linkType=linkset`)
    assert.deepEqual([known.status, typeOf(known)], [200, 'application/linkset+json'])
    assert.deepEqual([gs1LinksetErrors(JSON.parse(known.text)), untpLinksetErrors(JSON.parse(known.text))], [[], []])
    assertLinkHeaders(known, `/01/${item.gtin}`)
    for (const path of [
      '/01/09506000134376?linkType=linkset',
      '/01/09506000134376',
      `/01/${item.gtin}/21/other?linkType=linkset`,
    ])
      assert.equal((await ask(path)).status, 404, path)
  })

  for (const [path, status] of [
    [`/01/09520123456788/10/LOT1/21/X`, 404],
    [`/01/09520123456788/21/UNKNOWN`, 404],
    [`/01/09520123456789/21/X`, 400],
    [`/01/9520123456788/21/X`, 400],
    [`/01/09520123456788/21/${'x'.repeat(21)}`, 400],
    [`/01/09520123456788/21/a/b`, 400],
    [`/01/09520123456788/21/..`, 404],
    [`/01/09520123456788/21/%2e%2e`, 404],
    [`/01//21/X`, 400],
    [`/01/`, 400],
  ] as const) {
    it(`answers ${status} with a page for ${path}`, async () => {
      const reply = await ask(path, browser)
      assert.deepEqual([reply.status, typeOf(reply)], [status, 'text/html'])
      assert.equal(reply.headers['access-control-allow-origin'], '*')
    })
  }

  it('follows every vector of paths, GTINs and serials', async () => {
    const statusOf = async (path: string) => (await ask(path, browser)).status
    let tokenId = 1_000n
    for (const { serial, gtin } of [
      ...vectors.validSerials.map((one) => ({ ...one, gtin: item.gtin })),
      ...vectors.validGtins.map((one) => ({ ...one, serial: 'V' })),
      ...vectors.paths.flatMap((one) => (one.gtin && one.serial ? [{ gtin: one.gtin, serial: one.serial }] : [])),
    ]) {
      if ((await world.components.items.tokenOfItem({ gtin, serial })) === null)
        assert.ok((await world.components.items.register({ tokenId: (tokenId += 1n), gtin, serial })).ok)
      const linkset = await ask(`/01/${gtin}/21/${encodeSerial(serial)}?linkType=linkset`)
      assert.equal(linkset.status, 200, `${gtin} ${serial}`)
      assert.ok(linkset.text.includes(`${world.url}/01/${gtin}/21/${encodeSerial(serial)}"`))
    }
    for (const { path, error } of vectors.paths) {
      const status = path.startsWith('/gtin/') || path.includes('/10/') ? 404 : 400
      if (error !== undefined) assert.equal(await statusOf(path), status, path)
    }
    for (const { gtin } of vectors.invalidGtins)
      assert.equal(await statusOf(`/01/${encodeURIComponent(gtin)}/21/X`), 400, gtin)
    for (const { serial } of vectors.invalidSerials)
      assert.equal(await statusOf(`/01/${item.gtin}/21/${encodeURIComponent(serial)}`), 400, serial)
    for (const { request, expect } of vectors.resolver) {
      const reply = await ask(request.path, request.accept, request.method)
      assert.ok([expect.status].flat().includes(reply.status), request.path)
      if (expect.type !== undefined) assert.equal(typeOf(reply), expect.type)
      for (const [name, value] of Object.entries(expect.headers ?? {})) assert.equal(reply.headers[name], value)
      if (expect.errorMatches !== undefined) assert.match(reply.text, new RegExp(expect.errorMatches))
    }
  })

  it('lets no tap, chip or owner out but in the redirect that needs the tap, and not into the log', () => {
    assert.deepEqual(items.leaks(seen), [])
    assert.deepEqual(items.leaks(world.lines), [])
  })
})

describe('documents beside the items', () => {
  it('are served with type, CORS and ETag, answer HEAD, OPTIONS and 304, and refuse other methods', async () => {
    const world = await startWorld({ env: { ISSUER_NAME: 'Beispiel Prüfstelle' } })
    const rows = [
      ['/.well-known/did.json', 'application/did+ld+json'],
      ['/.well-known/gs1resolver', 'application/json'],
      ['/.well-known/resolver', 'application/json'],
      ['/contexts/passport/v1', 'application/ld+json'],
      ['/ns/passport', 'application/ld+json'],
      ['/ns/unspecified-facility', 'application/ld+json'],
    ] as const
    for (const [path, type] of rows) {
      const reply = await raw(world.url, path)
      assert.deepEqual([reply.status, reply.headers['content-type']], [200, type], path)
      assert.deepEqual(
        [reply.headers['access-control-allow-origin'], reply.headers['x-content-type-options']],
        ['*', 'nosniff'],
      )
      assert.ok(!textOf(reply).includes('verify.example'), path)
      assert.equal((await raw(world.url, path, { method: 'HEAD' })).status, 200)
      const preflight = await raw(world.url, path, { method: 'OPTIONS' })
      // Browsers ask for `Accept` where it names a profile: its colon is not safe (Fetch §2.2.2; JSON-LD 1.1 API §9.4).
      assert.match(String(preflight.headers['access-control-allow-headers']), /(?:^|, )Accept(?:,|$)/)
      assert.equal(preflight.status, 204)
      assert.equal((await raw(world.url, path, { method: 'POST' })).status, 405)
      const again = await raw(world.url, path, { headers: { 'if-none-match': String(reply.headers['etag']) } })
      assert.deepEqual([again.status, again.text], [304, ''])
    }
    const context = await raw(world.url, '/contexts/passport/v1')
    assert.equal(context.headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.ok(context.text.includes(`"${world.url}/ns/passport#ownerCommitment"`))
    const description = (await (await world.get('/.well-known/gs1resolver')).json()) as Record<string, unknown>
    assert.deepEqual([description['name'], description['resolverRoot']], ['Beispiel Prüfstelle', world.url])
    await world.end()
  })
})
