/**
 * GET /api/dpp/… over raw HTTP (spec §4.5, §4.6, §7). Covers every outcome on both routes, legal and illegal paths. A wrong path consumes
 * no tap.
 */
import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { createRateLimiter, type RateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { batchHint, createKeyRing } from '../../../src/tap/keys/batch.ts'
import { createReplayLedger } from '../../../src/tap/replay-ledger.ts'
import { createResolveTap } from '../../../src/tap/resolve-tap.ts'
import { createAuthenticate } from '../../../src/tap/sun/authenticate.ts'
import { createSearchBudget, type SearchBudget } from '../../../src/tap/sun/search-budget.ts'
import { createVerifyTap } from '../../../src/tap/verify-tap.ts'
import { hostOf } from '../../support/pages/host.ts'
import { textAsDescribed } from '../../support/contract.ts'
import { startFaultWorld } from '../../support/fault-world.ts'
import { raw, type Reply } from '../../support/http.ts'
import { assertRefused, openItems, recordingClient, queryOf, type TappedItem } from '../../support/passport/passport.ts'
import { testBatch, testBatches } from '../../support/tap/tags.ts'
import { startWorld, type World } from '../../support/world.ts'
import { until } from '../../support/wait.ts'

const routes = ['GTIN', 'token'] as const
const pathOf = (route: (typeof routes)[number], { gtin, serial, tokenId }: TappedItem) =>
  route === 'GTIN' ? `/api/dpp/01/${gtin}/21/${encodeURIComponent(serial)}` : `/api/dpp/token/${tokenId}`
const zeros = { picc: '0'.repeat(32), cmac: '0'.repeat(16) }

const world = await startFaultWorld()
after(() => world.end())
const items = await openItems(world)
const { ask, counterOf, seen } = recordingClient(world)
const shared = await items.bound({ name: 'Shared' })
const other = await items.bound({ name: 'Other' })

describe('GET /api/dpp', () => {
  for (const route of routes) {
    describe(`by ${route}`, () => {
      it('answers a tap with the passport, and the same tap again in the same bytes', async () => {
        const path = `${pathOf(route, shared)}?${queryOf(shared.tag.next())}`
        const [first, again] = [await ask(path), await ask(path)]
        assert.equal(first.status, 200, first.text)
        assert.equal(again.text, first.text)
        const { headers } = first
        assert.deepEqual(
          ['content-type', 'access-control-allow-origin', 'cache-control', 'referrer-policy', 'vary'].map(
            (name) => headers[name],
          ),
          ['application/ld+json', '*', 'no-store', 'no-referrer', 'Accept'],
        )
        assert.equal(headers['x-content-type-options'], 'nosniff')
        assert.match(String(headers['etag']), /^"sha256-[0-9a-f]{64}"$/)
        const passport = JSON.parse(first.text) as { id: string; credentialSubject: { id: string; name: string } }
        assert.equal(passport.id, `${world.url}${pathOf('GTIN', shared)}`, 'the GTIN form is the canonical one')
        assert.equal(passport.credentialSubject.name, 'Shared')
      })

      const malformed = [
        ['nothing', ''],
        ['no cmac', `picc=${zeros.picc}`],
        ['no picc', `cmac=${zeros.cmac}`],
        ['empty values', 'picc=&cmac='],
        ['a short picc', `picc=${'0'.repeat(31)}&cmac=${zeros.cmac}`],
        ['a picc that is no hex', `picc=${'g'.repeat(32)}&cmac=${zeros.cmac}`],
        ['a long cmac', `picc=${zeros.picc}&cmac=${'0'.repeat(17)}`],
        ['two piccs', `${queryOf(zeros)}&picc=${zeros.picc}`],
        ['two cmacs', `${queryOf(zeros)}&cmac=${zeros.cmac}`],
        ['a picc under an encoded name twice', `${queryOf(zeros)}&p%69cc=${zeros.picc}`],
      ] as const
      for (const [what, query] of malformed) {
        it(`answers 400 and says that picc or cmac is missing for ${what}`, async () => {
          const reply = await ask(`${pathOf(route, shared)}?${query}`)
          assertRefused(reply, 400, /picc or cmac parameters are missing/)
        })
      }

      it('says nothing of the path before the parameters are right', async () => {
        const path = route === 'GTIN' ? '/api/dpp/01/1/21/x' : '/api/dpp/token/0x1'
        assertRefused(await ask(path), 400, /picc or cmac parameters are missing/)
      })

      it('answers 400 without detail for a tap that is not genuine', async () => {
        const { picc, cmac } = shared.tag.next()
        const flipped = cmac.startsWith('0') ? `1${cmac.slice(1)}` : `0${cmac.slice(1)}`
        const texts = new Set<string>()
        for (const tap of [{ picc, cmac: flipped }, { picc: cmac + cmac, cmac }, zeros]) {
          const reply = await ask(`${pathOf(route, shared)}?${queryOf(tap)}`)
          assertRefused(reply, 400, /not genuine/)
          texts.add(reply.text)
        }
        assert.equal(texts.size, 1)
      })

      it('answers 400 for an older tap than the last one', async () => {
        const [older, newer] = [shared.tag.next(), shared.tag.next()]
        assert.equal((await ask(`${pathOf(route, shared)}?${queryOf(newer)}`)).status, 200)
        assertRefused(await ask(`${pathOf(route, shared)}?${queryOf(older)}`), 400, /used before/)
      })

      it('answers 404 for a genuine chip that is bound to nothing', async () => {
        const tag = await items.newTag()
        assertRefused(await ask(`${pathOf(route, shared)}?${queryOf(tag.next())}`), 404, /no item yet/)
      })

      it('answers 404 for the right chip at the path of another item, and does not name either', async () => {
        const reply = await ask(`${pathOf(route, other)}?${queryOf(shared.tag.next())}`)
        assertRefused(reply, 404, /does not belong/)
        for (const name of [shared.serial, other.serial, 'Shared', 'Other']) assert.ok(!reply.text.includes(name), name)
      })

      it('answers 502 while the chain cannot be read, and the retry is the same tap', async () => {
        const path = `${pathOf(route, shared)}?${queryOf(shared.tag.next())}`
        world.faults.set('status500')
        const reply = await ask(path)
        world.faults.set('none')
        assertRefused(reply, 502, /chain/)
        await new Promise((resolve) => setTimeout(resolve, 0))
        await comesTo(200, () => ask(path))
      })

      it('consumes nothing for HEAD, OPTIONS, a prefetch or another method', async () => {
        const before = await counterOf(shared)
        const path = `${pathOf(route, shared)}?${queryOf(shared.tag.next())}`
        const head = await ask(path, { method: 'HEAD' })
        assert.deepEqual([head.status, head.headers['content-type'], head.text], [200, 'application/ld+json', ''])
        const forged = path.replace(/cmac=../, 'cmac=00')
        assert.equal((await ask(forged, { method: 'HEAD' })).status, 400)
        const options = await ask(path, { method: 'OPTIONS' })
        assert.deepEqual([options.status, options.headers['access-control-allow-methods']], [204, 'GET, HEAD, OPTIONS'])
        assert.equal((await ask(path, { method: 'POST' })).status, 405)
        for (const header of ['Sec-Purpose', 'Purpose', 'X-Moz']) {
          const reply = await ask(path, { headers: { [header]: 'prefetch;prerender' } })
          assertRefused(reply, 503, /in advance/)
          assert.equal(reply.headers['retry-after'], '1')
        }
        assert.equal(await counterOf(shared), before)
        const get = await ask(path)
        assert.deepEqual([get.status, get.headers['etag']], [200, head.headers['etag']])
        assert.equal(await counterOf(shared), before + 1)
      })
    })
  }

  it('is one tap with /api/verify: the passport after it, within the window', async () => {
    const tap = queryOf(shared.tag.next())
    const verified = JSON.parse((await raw(world.url, `/api/verify?${tap}`)).text) as {
      verified: boolean
      tapCounter: number
    }
    const reply = await ask(`${pathOf('token', shared)}?${tap}`)
    const { assetStatus } = (JSON.parse(reply.text) as { credentialSubject: { assetStatus: { tapCounter: number } } })
      .credentialSubject
    assert.deepEqual([verified.verified, reply.status, assetStatus.tapCounter], [true, 200, verified.tapCounter])
  })

  it('answers 406 only to a client that accepts nothing but signed forms, and leaves the tap unused', async () => {
    const before = await counterOf(shared)
    const path = `${pathOf('GTIN', shared)}?${queryOf(shared.tag.next())}`
    for (const accept of ['application/vc+jwt', 'application/vc, application/vc+jwt;q=0.5'])
      assertRefused(await ask(path, { headers: { accept } }), 406, /application\/ld\+json/)
    assert.equal(await counterOf(shared), before)
    const plain = await ask(path)
    for (const accept of [
      '*/*',
      'application/json',
      'application/ld+json',
      'text/html',
      'image/png',
      'application/vc, */*;q=0.1',
      'nonsense',
    ])
      assert.equal((await ask(path, { headers: { accept } })).text, plain.text, accept)
  })

  it('lets nothing of a tap, a chip or an owner out, neither in answers nor in the log', () => {
    assert.ok(items.secrets() > 30 && seen.length > 50)
    assert.deepEqual(items.leaks(seen), [])
    assert.deepEqual(items.leaks(world.lines), [])
  })
})

describe('the path of a passport', () => {
  const badPaths: readonly (readonly [string, number, RegExp])[] = [
    ['01/09520001000004/21/x', 400, /GTIN/],
    ['01/9520001000003/21/x', 400, /GTIN/],
    ['01/095200010000030/21/x', 400, /GTIN/],
    ['01/0952000100000%33/21/x', 400, /GTIN/],

    [`01/09520001000003/21/${'x'.repeat(21)}`, 400, /serial/],
    ['01/09520001000003/21/', 400, /serial/],
    ['01/09520001000003/21/a/b', 400, /serial/],
    ['01/09520001000003/21/%zz', 400, /serial/],
    ['01/09520001000003/21/a%20b', 400, /serial/],
    ['01/09520001000003/21/%C3%A4', 400, /serial/],
    ['gtin/09520001000003/ser/x', 404, /no passport at this path/],
    ['01/09520001000003', 404, /no passport at this path/],
    ['01/09520001000003/10/lot', 404, /no passport at this path/],
    ['token/0x1', 400, /token id/],
    ['token/', 400, /token id/],
    ['token/-1', 400, /token id/],
    [`token/${2n ** 256n}`, 400, /token id/],
    ['token/%zz', 400, /token id/],
    ['token/1/x', 404, /no passport at this path/],
    ['', 404, /no passport at this path/],
    ['tokens/1', 404, /no passport at this path/],
  ]
  for (const [path, status, error] of badPaths) {
    it(`answers ${status} for /api/dpp/${path.slice(0, 60)} and leaves the tap unused`, async () => {
      const before = await counterOf(shared)
      assertRefused(
        await ask(`/api/dpp/${Buffer.from(path).toString('latin1')}?${queryOf(shared.tag.next())}`),
        status,
        error,
      )
      assert.equal(await counterOf(shared), before)
    })
  }

  it('reads a serial as GS1 writes it: `%2F` belongs to it, `+` is a plus, over-encoding is the same item', async () => {
    const item = await items.bound({ name: 'Slash' }, { serial: 'a/b+C%?.' })
    for (const spelling of ['a%2Fb+C%25%3F.', 'a%2fb%2bC%25%3f%2e', '%61%2F%62%2B%43%25%3F%2E', 'a%2Fb+C%25%3F./']) {
      const reply = await ask(`/api/dpp/01/${item.gtin}/21/${spelling}?${queryOf(item.tag.next())}`)
      assert.equal(reply.status, 200, `${spelling} ${reply.text}`)
      assert.equal(
        (JSON.parse(reply.text) as { id: string }).id,
        `${world.url}/api/dpp/01/${item.gtin}/21/a%2Fb%2BC%25%3F.`,
      )
    }
    for (const spelling of ['a/b+C%25%3F.', 'A%2Fb+C%25%3F.', 'a%252Fb+C%25%3F.'])
      assert.notEqual((await ask(`/api/dpp/01/${item.gtin}/21/${spelling}?${queryOf(item.tag.next())}`)).status, 200)
  })

  it('finds nothing under the serials . and .. , which cannot be registered', async () => {
    for (const serial of ['.', '..']) {
      assert.deepEqual((await world.components.items.register({ tokenId: 9n, gtin: shared.gtin, serial })).ok, false)
      for (const spelling of [serial, serial.replaceAll('.', '%2e')])
        assertRefused(
          await ask(`/api/dpp/01/${shared.gtin}/21/${spelling}?${queryOf(shared.tag.next())}`),
          404,
          /belong/,
        )
    }
  })

  it('lets nothing of a tap, a chip or an owner out, neither in answers nor in the log', () => {
    assert.ok(items.secrets() > 40 && seen.length > 25)
    assert.deepEqual(items.leaks(seen), [])
    assert.deepEqual(items.leaks(world.lines), [])
  })
})

type Did = { verificationMethod?: object[]; assertionMethod: string[] }

describe('signing that is off', () => {
  it('makes no key, offers no list, and has an empty did:web document', async () => {
    const did = JSON.parse((await raw(world.url, '/.well-known/did.json')).text) as Did
    assert.deepEqual([did.assertionMethod, did.verificationMethod], [[], undefined])
    assert.equal((await raw(world.url, '/api/status/suspension/1')).status, 404)
    await assert.rejects(stat(join(world.settings.DATA_DIR, 'keys', 'issuer.jwks.json')), { code: 'ENOENT' })
  })
})

describe('forged taps', () => {
  /** A host with many batches, so that a tap without a hint needs a search. */
  async function searchingHost(budget: SearchBudget, forgeryLimiter?: RateLimiter) {
    const { components, url } = world
    const batch = components.tagKeys.record('test') ?? assert.fail()
    const others = Array.from({ length: 20 }, (_batch, index) => testBatch({ id: `other-${index}` }))
    const keys = createKeyRing(await testBatches(...others, batch))
    const verifyTap = createVerifyTap({
      keys,
      authenticate: createAuthenticate({ keys, budget }),
      ledger: createReplayLedger({ sql: components.database }),
      tagHash: components.tagHash ?? assert.fail(),
    })
    const { verdicts } = components
    const resolveTap = createResolveTap({
      verifyTap,
      verdicts,
      announce: async () => true,
      onVerified() {},
      onRefused() {},
    })
    const host = hostOf({ components, url }, { resolveTap, forgeryLimiter })
    return { host, hint: batchHint(batch.id) }
  }
  const forged = `picc=${'a'.repeat(32)}&cmac=${'b'.repeat(16)}`

  it('of one client get 429 where a search would be needed; a link with its batch’s hint still verifies, also for others there', async () => {
    const item = await items.bound()
    const { host, hint } = await searchingHost(createSearchBudget(), createRateLimiter({ limit: 3 }))
    for (let count = 0; count < 3; count++) {
      const reply = await host.request(`/api/verify?${forged}`)
      assert.deepEqual([reply.status, await reply.json()], [200, { verified: false, reason: 'counterfeit' }])
    }
    const genuine = queryOf(item.tag.next())
    for (const path of ['/api/verify', pathOf('GTIN', item), `/token/${item.tokenId}`]) {
      const refused = await host.request(`${path}?${genuine}`)
      assert.equal(refused.status, 429, path)
      assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d?$/)
      const isPage = path.startsWith('/token/')
      if (!isPage) assert.deepEqual(Object.keys((await refused.json()) as object), ['error'], path)
    }
    for (const path of ['/api/verify', pathOf('GTIN', item)]) {
      const answered = await host.request(`${path}?b=${hint}&${genuine}`)
      assert.equal(answered.status, 200, path)
    }
  })

  it('that used up the searches of all clients leave other taps unjudged with 503, and those with a hint as they were', async () => {
    const item = await items.bound()
    const { host, hint } = await searchingHost(createSearchBudget({ burst: 0, perSecond: 0 }))
    const genuine = queryOf(item.tag.next())
    for (const query of [forged, genuine]) {
      const answer = await host.request(`/api/verify?${query}`)
      const { verified, error } = (await answer.json()) as { verified: boolean; error: string }
      assert.deepEqual([answer.status, answer.headers.get('retry-after'), verified], [503, '1', false])
      assert.match(error, /^Many forged links are arriving/)
    }
    assert.equal((await host.request(`/token/${item.tokenId}?${genuine}`)).status, 503)
    const answered = await host.request(`/api/verify?b=${hint}&${genuine}`)
    assert.equal(((await answered.json()) as { verified: boolean }).verified, true)
  })
})

describe('GET /api/dpp without tag keys', () => {
  it('answers 503 once parameters and path are right, draws on one budget with /api/verify, and says when to come back', async () => {
    const world = await startWorld({ env: { TAG_KEK: '', RATE_LIMIT_TAP: '4' } })
    const query = queryOf({ picc: 'a'.repeat(32), cmac: 'b'.repeat(16) })
    const statuses = []
    for (const path of ['token/0x1', '01/09520001000003/21/x', 'token/1'])
      statuses.push((await raw(world.url, `/api/dpp/${path}?${query}`)).status)
    statuses.push((await raw(world.url, `/api/verify?${query}`)).status)
    assert.deepEqual(statuses, [400, 503, 503, 503])
    const limited = await raw(world.url, `/api/dpp/token/1?${query}`)
    assert.equal(limited.status, 429)
    assert.deepEqual(Object.keys(JSON.parse(limited.text) as object), ['error'])
    assert.match(String(limited.headers['retry-after']), /^[1-9]\d?$/)
    assert.equal(limited.headers['access-control-allow-origin'], '*')
    await world.end()
  })
})

describe('GET /api/dpp where a second tap is asked for', () => {
  let world: World
  let items: Awaited<ReturnType<typeof openItems>>
  before(async () => {
    world = await startWorld({ env: { TAP_CHALLENGE: 'on' } })
    items = await openItems(world)
  })
  after(() => world?.end())

  it('answers the first with 400 and a cookie, the second with the passport', async () => {
    const item = await items.bound()
    const path = () => `${pathOf('token', item)}?${queryOf(item.tag.next())}`
    const first = await raw(world.url, path())
    assertRefused(first, 400, /once more/)
    const [cookie = ''] = [first.headers['set-cookie'] ?? []].flat()
    assert.match(cookie, /^__Host-tap-challenge=[^;]+;.*Secure; HttpOnly/)
    const second = await raw(world.url, path(), { headers: { cookie: cookie.split(';')[0] ?? '' } })
    assert.equal(second.status, 200, second.text)
  })

  it('verifies nothing by the first for a program, and the item by the second with the challenge in a header', async () => {
    const item = await items.bound()
    const verify = async (challenge?: string) => {
      const headers = challenge === undefined ? {} : { 'X-Tap-Challenge': challenge }
      const answer = await fetch(`${world.url}/api/verify?${queryOf(item.tag.next())}`, { headers })
      return JSON.parse(await textAsDescribed('verifyTap', answer)) as { verified: boolean; challenge?: string }
    }
    const { challenge, ...first } = await verify()
    assert.deepEqual(first, { verified: false, reason: 'tap_again', seconds: 30 })
    assert.equal((await verify('forged')).verified, false)
    const { challenge: last } = await verify(challenge)
    assert.equal((await verify(last)).verified, true)
  })
})

/** A provider that failed is left alone for a while. The retry of a tap must pass once it is well again. */
async function comesTo(wanted: number, ask: () => Promise<Reply>): Promise<void> {
  await until(async () => (await ask()).status === wanted)
}
