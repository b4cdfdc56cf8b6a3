/** The paths of the pages besides a page (spec §4.5, §4.6): methods, prefetches, machines, the search, broken links. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { raw } from '../../support/passport/passport.ts'
import { startPageWorld, type PageWorld } from '../../support/pages/pages.ts'

const headingOf = (page: string) => /<h1[^>]*>([^<]*)<\/h1>/.exec(page)?.[1]

describe('the paths of the pages', () => {
  let world: PageWorld
  before(async () => {
    world = await startPageWorld({ env: { TAP_WINDOW_SECONDS: '0' } })
  })
  after(() => world?.end())

  it('use up a tap only for a GET that a person made: not for HEAD, OPTIONS, POST or a prefetch', async () => {
    const url = await world.tapped('activated')
    const head = await fetch(url, { method: 'HEAD' })
    assert.deepEqual([head.status, await head.text()], [200, ''])
    const options = await fetch(url, { method: 'OPTIONS' })
    assert.deepEqual([options.status, options.headers.get('access-control-allow-methods')], [204, 'GET, HEAD, OPTIONS'])
    const post = await fetch(url, { method: 'POST' })
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
    for (const [name, value] of [
      ['Sec-Purpose', 'prefetch;prerender'],
      ['Purpose', 'prefetch'],
      ['X-Moz', 'prefetch'],
    ] as const) {
      const { status, headers, text } = await raw(world.url, url.slice(world.url.length), {
        headers: { [name]: value },
      })
      assert.deepEqual([status, headers['retry-after'], headingOf(text)], [503, '1', 'Open the link itself'])
    }
    assert.equal(headingOf(await (await fetch(url)).text()), 'Genuine chip, tapped now')
    // With a window of 0 seconds the next one is a replay.
    assert.equal(headingOf(await (await fetch(url)).text()), 'This link was already used')
  })

  it('embed the passport that the API gives, and give machines theirs', async () => {
    const path = await world.pathOf('claimed')
    const page = await (await fetch(`${world.url}${path}?${await world.tap('claimed')}`)).text()
    const embedded = JSON.parse(
      /<script type="application\/ld\+json" id="passport">(.*?)<\/script>/s.exec(page)?.[1] ?? '',
    ) as Passport
    const response = await fetch(`${world.url}${path}?linkType=gs1:dpp&${await world.tap('claimed')}`, {
      headers: { Accept: 'application/ld+json' },
    })
    assert.ok(response.redirected && response.url.includes('/api/dpp/01/'))
    const served = (await response.json()) as Passport
    for (const passport of [embedded, served]) passport.credentialSubject.assetStatus.tapCounter = 0
    assert.deepEqual(embedded, served)
    const linkset = await fetch(`${world.url}${path}?linkType=linkset`)
    assert.equal(linkset.headers.get('content-type'), 'application/linkset+json')
    const link = (await fetch(world.url + path)).headers
    assert.equal(
      link.get('link'),
      `<${world.url}${path}?linkType=linkset>; rel="linkset"; type="application/linkset+json"`,
    )
    assert.equal(link.get('access-control-allow-origin'), '*')
  })

  it('lead from the search to the item, in the language that was chosen', async () => {
    const to = async (query: string) =>
      (await fetch(`${world.url}/?${query}`, { redirect: 'manual' })).headers.get('location')
    assert.equal(await to('token=5'), '/token/5')
    assert.equal(await to('gtin=9520003000001&serial=S7-1182&lang=ar'), '/01/09520003000001/21/S7-1182?lang=ar')
    const wrong = await fetch(`${world.url}/?token=%3Cb%3E%22`)
    const page = await wrong.text()
    assert.equal(wrong.status, 400)
    assert.match(page, /value="&lt;b&gt;&quot;"[^>]*aria-describedby="token-error token-hint"[^>]*aria-invalid="true"/)
  })

  for (const [path, status] of [
    ['/01/09520001000010/21/M41-002208/', 200],
    ['/01/09520001000010/21/M41%2D002208', 200],
    ['/01/09520001000010', 200],
    ['/01/9520001000010/21/M41-002208', 400],
    ['/01/09520001000011/21/M41-002208', 400],
    ['/01/09520001000010/21/%zz', 400],
    ['/01/09520001000010/21/..', 404],
    [`/01/09520001000010/21/${'A'.repeat(21)}`, 400],
    ['/01/09520001000010/21/a%2Fb', 404],
    ['/01/09520001000010/10/LOT1', 404],
    ['/01/09520001000010//21/1', 400],
    ['/01/', 400],
    ['/01/09506000134352', 404],
    ['/token/3', 200],
    ['/token/%33', 200],
    ['/token/0003', 200],
    ['/token/', 400],
    ['/token/x', 400],
    [`/token/${'9'.repeat(79)}`, 400],
    ['/token/0', 404],
    ['/token/4711', 404],
  ] as const)
    it(`answer ${status} with a page at ${path.slice(0, 44)}`, async () => {
      const reply = await raw(world.url, path)
      assert.deepEqual([reply.status, reply.headers['content-type']], [status, 'text/html; charset=utf-8'])
      assert.equal(reply.text.match(/<h1[ >]/g)?.length, 1)
    })

  it('leave other paths to others', async () => {
    for (const path of ['/01', '/token', '/token/1/x', '/assets', '/nothing']) {
      const reply = await raw(world.url, path)
      assert.deepEqual([reply.status, reply.headers['content-type']], [404, 'application/json'], path)
    }
  })

  it('name the time to wait to a client over its limit', async () => {
    const response = await fetch(`${world.limitedUrl}${await world.pathOf('activated')}`)
    assert.equal(response.status, 429)
    assert.match(response.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal(response.headers.get('x-ratelimit-limit'), '0')
    assert.match(await response.text(), /Try again in \d+ seconds\./)
  })

  it('open without the database’s items and without a history, saying less', async () => {
    const { components: parts } = world
    await parts.database.query('alter table item rename to item_gone')
    const page = await (await fetch(`${world.url}/token/${world.tokenOf('claimed')}`)).text()
    await parts.database.query('alter table item_gone rename to item')
    assert.equal(headingOf(page), 'On-chain record only')
    assert.ok(page.includes('Satchel No. 7') && !page.includes('S7-1182'))
  })
})

type Passport = { credentialSubject: { assetStatus: { tapCounter: number } } }
