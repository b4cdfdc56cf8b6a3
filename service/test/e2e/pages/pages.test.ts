/**
 * The pages over HTTP, without a browser (spec §4.5, §4.6): status, headers, language, what stands in the source. Then their paths besides
 * a page: methods, prefetches, machines, the search, broken links, and what uses up a tap.
 */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { canonicalDetails } from '../../../src/assets/metadata.ts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { raw } from '../../support/http.ts'
import { headlineOf as headingOf } from '../../support/pages/headline.ts'
import { startPageWorld } from '../../support/pages/pages.ts'
import { fetchState, pageStates, type PageState } from '../../support/pages/states.ts'

const policy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const world = await startPageWorld()
after(() => world.end())
const states = await pageStates(world)

type Shown = PageState & { readonly got: number; readonly headers: Headers; readonly text: string }

describe('the pages', () => {
  const known = new Map<string, Promise<readonly Shown[]>>()

  function all(language: string): Promise<readonly Shown[]> {
    const shown =
      known.get(language) ??
      Promise.all(
        states.map(async (state) => {
          const response = await fetchState(state, language)
          return { ...state, got: response.status, headers: response.headers, text: await response.text() }
        }),
      )
    known.set(language, shown)
    return shown
  }

  async function textOf(name: string): Promise<string> {
    return (await all('en')).find((state) => state.name === name)?.text ?? ''
  }

  it('have their status and the headers of a page, in every state', async () => {
    for (const { name, status, got, headers } of await all('en')) {
      assert.equal(got, status, name)
      const given = (header: string) => headers.get(header)
      const rest = ['referrer-policy', 'cache-control', 'x-content-type-options', 'x-robots-tag'].map(given)
      assert.deepEqual(rest, ['no-referrer', 'no-store', 'nosniff', 'noindex'], name)
      assert.equal(given('vary')?.replace(', Accept-Encoding', ''), 'Accept, Accept-Language', name)
      assert.equal(given('content-type'), 'text/html; charset=utf-8', name)
      const connect = given('content-security-policy')?.match(/ connect-src ([^;]+);/)?.[1]
      const csp = given('content-security-policy')
        ?.replace(/ connect-src [^;]+;/, '')
        .replace("form-action 'self'", "form-action 'none'")
      assert.equal(csp, policy, name)
      if (connect !== undefined)
        assert.ok([`'self'`, `'self' ${world.chainUrl}`].includes(connect), `${name}: ${connect}`)
    }
  })

  it('let a form go only where there is one: a search, or on a tapped page a report or a certificate', async () => {
    for (const { name, headers, text } of await all('en')) {
      const targets = [...text.matchAll(/<form\s[^>]*action="([^"?]*)/g)].map(([, action]) => action)
      assert.equal(headers.get('content-security-policy')?.includes("form-action 'self'"), targets.length > 0, name)
      const isCompared = ['tapped-satchel', 'tapped-jacket', 'tapped-claimed', 'tapped-token'].includes(name)
      const isCertified =
        name.startsWith('tapped') && !/bound|lost|stolen|confirmed|recall|investig|opened|recycled|mismatch/.test(name)
      const expected = [...(isCompared ? ['/report'] : []), ...(isCertified ? ['/certificate'] : [])]
      if (name.startsWith('tapped')) assert.deepEqual(targets, expected, name)
      else assert.ok(!targets.includes('/report') && !targets.includes('/certificate'), name)
    }
  })

  it('are small, need no script, load from this host only, and hold nothing of the tap, the chip or the owner', async () => {
    const secrets = [...world.secrets, ...publishedAddresses.map((address) => address.slice(2))].map((text) =>
      text.toLowerCase(),
    )
    for (const { name, text, headers } of await all('en')) {
      assert.ok(Buffer.byteLength(text) < 50_000, name)
      assert.equal(text.match(/<h1[ >]/g)?.length, 1, name)
      const scripts = [...text.matchAll(/<script ([^>]*)>/g)].map(([, attributes = '']) => attributes)
      for (const script of scripts)
        assert.match(script, /^type="(module" src="\/assets\/|application\/(ld\+)?json" id=")/, name)
      const tags = (text.match(/<[a-z][^>]*>/gi) ?? []).join('')
      assert.ok(!/ on[a-z]+=| style=|<style|<iframe|<base/.test(tags), name)
      for (const [picture] of tags.matchAll(/<(?:img|source) [^>]*>/g))
        assert.match(picture, / (?:src|srcset)="\/assets\/pictures\/[0-9a-f]{64}"/, name)
      for (const [, source = ''] of text.matchAll(/ (?:src|href)="([^"]*)"(?=[^>]*>)/g)) {
        if (/^(?:\/|#|data:text\/csv;charset=utf-8;base64,|$)/.test(source)) continue
        assert.ok(
          source.startsWith(world.url) ||
            source.startsWith(world.bareUrl) ||
            /^(?:https:\/\/example\.com\/images\/meridian-41|(?:https:\/\/|mailto:care@)(?:orvelle|norrvik)\.example)/.test(
              source,
            ),
          `${name}: ${source}`,
        )
      }
      const everything = `${text} ${JSON.stringify([...headers])}`.toLowerCase()
      assert.deepEqual(
        secrets.filter((secret) => everything.includes(secret)),
        [],
        name,
      )
      assert.ok(!/(?:picc|cmac)=/.test(everything), name)
    }
    assert.deepEqual(
      secrets.filter((secret) => world.lines.join('\n').toLowerCase().includes(secret) && secret.length > 16),
      [],
    )
  })

  for (const [language, direction] of [
    ['en', 'ltr'],
    ['de', 'ltr'],
    ['fr', 'ltr'],
    ['es', 'ltr'],
    ['ar', 'rtl'],
  ] as const)
    it(`are all in ${language}, by Accept-Language and by ?lang=`, async () => {
      for (const { name, text, headers } of await all(language)) {
        assert.ok(text.startsWith(`<!doctype html>\n<html lang="${language}" dir="${direction}"`), name)
        assert.equal(headers.get('content-language'), language, name)
        assert.ok(language === 'en' || !text.includes('Test network'), name)
      }
      const named = await fetch(`${world.url}/?lang=${language}`, { headers: { 'Accept-Language': 'en' } })
      assert.match(await named.text(), new RegExp(`<html lang="${language}"`))
    })

  it('say first what the tap came to', async () => {
    const expected: Record<string, string> = {
      'tapped-bound': 'Genuine chip, not released',
      'tapped-claimed': 'Genuine, just claimed',
      'tapped-token': 'Genuine, just claimed',
      'tapped-noText': 'Genuine chip, no description',
      'tapped-lost': 'Reported lost',
      'tapped-stolen': 'Reported stolen',
      'tapped-confirmed': 'Stolen, confirmed',
      'tapped-recall': 'Recalled',
      'tapped-investigation': 'Under investigation',
      'tapped-opened': 'Seal opened',
      'tapped-recycled': 'Genuine, retired',
      'untapped-activated': 'Record only',
      'untapped-stolen': 'Reported stolen',
      incomplete: 'Tap again',
      replayed: 'Tap again',
      counterfeit: 'Not genuine',
      unbound: 'Genuine chip, no record',
      'other-item': 'Chip and link do not match',
      class: 'A kind of product, not one item',
      'bad-link': 'This link cannot be read',
      unknown: 'Nothing is registered under this number',
      'rate-limited': 'Too many requests',
      chain: 'No answer yet',
      'not-configured': 'Taps cannot be checked here yet',
      challenge: 'Tap once more',
    }
    for (const [name, heading] of Object.entries(expected)) assert.equal(headingOf(await textOf(name)), heading)
  })

  it('wear the brand that the operator listed for issuer and number, also where the maker claims another', async () => {
    const page = await textOf('tapped-claimed')
    const sheet = /<link rel="stylesheet" href="(\/assets\/themes\/[^"]+)"/.exec(page)?.[1] ?? ''
    const style = await fetch(world.url + sheet)
    assert.deepEqual([style.status, style.headers.get('content-type')], [200, 'text/css; charset=utf-8'])
    assert.match(page, /<html[^>]* data-theme="orvelle">/)
    assert.match(page, /<span class="maker-name">Maison Orvelle<\/span>/)
    for (const id of ['orvelle', 'norrvik'])
      assert.ok((await textOf(`offer-${id}`)).includes(` data-theme="${id}">`), id)
    assert.ok((await textOf('offer')).includes('Maison Orvelle'), 'it claims a brand by its text')
    const hostile = await textOf('tapped-hostile')
    assert.ok(hostile.indexOf('Named by its maker, not checked') < hostile.indexOf('VERIFIED'))
    for (const name of ['tapped-activated', 'counterfeit', 'unbound', 'other-item', 'chain', 'home', 'offer'])
      assert.ok(!(await textOf(name)).includes('data-theme'), name)
    assert.equal((await fetch(`${world.url}/assets/themes/0000000000000000/orvelle.css`)).status, 404)
  })

  it('show nothing of a product where the chip does not belong to it, and link its record', async () => {
    for (const name of ['counterfeit', 'other-item', 'unbound']) {
      const page = await textOf(name)
      assert.ok(!page.includes('Meridian') && !page.includes('Loden'), name)
    }
    assert.match(await textOf('counterfeit'), /href="\/01\/09520001000010\/21\/M41-002208"/)
  })

  it('withhold a text that is not the one of the chain', async () => {
    const page = await textOf('tapped-mismatch')
    assert.match(page, /The maker’s text was changed, so it is not shown/)
    assert.ok(!page.includes('but better') && !page.includes('Altered'))
    assert.match(page, /"metadataHashMatches":false/)
  })

  it('link the keyless JSON of an untapped item and say that it proves nothing', async () => {
    const page = await textOf('untapped-activated')
    assert.ok(page.includes(`href="${world.url}/api/asset/${world.tokenOf('activated')}"`))
    assert.match(page, /proves nothing about the item in front of you/)
    assert.ok(!page.includes('id="passport"') && !page.includes('tapCounter'), 'the passport needs a tap')
  })

  it('ask for the second tap, keep the tap when the chain is away, and guess no verdict then', async () => {
    const path = `${world.downUrl}/token/1`
    const first = await fetch(`${path}?${world.downTap()}`)
    const token =
      first.headers
        .getSetCookie()
        .join()
        .match(/tap-challenge=([^;]+)/)?.[1] ?? ''
    const second = await fetch(`${path}?${world.downTap()}`, { headers: { 'x-tap-challenge': token } })
    const page = await second.text()
    assert.deepEqual([second.status, headingOf(page)], [502, 'No answer yet'])
    assert.match(page, /<body data-tap="retry" data-path=/)
    assert.match(page, /Chip read<small>result is kept/)
  })
})

describe('the paths of the pages', () => {
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
    assert.equal(headingOf(await (await fetch(url)).text()), 'Genuine chip')
    await world.components.database.query("update tap set first_seen = first_seen - interval '1 hour'")
    assert.equal(headingOf(await (await fetch(url)).text()), 'Tap again')
  })

  it('open the item of a tap whose link names none, and a browser gets there from the link of an API', async () => {
    const browser = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
    const query = await world.tap('activated')
    const link = `${world.url}/api/verify?${query}`
    const sent = await fetch(link, { headers: browser, redirect: 'manual' })
    const { location, vary, 'cache-control': cache } = Object.fromEntries(sent.headers)
    assert.deepEqual([sent.status, location, vary, cache], [303, `/tap?${query}`, 'Accept', 'no-store'])
    assert.equal(await usesOf(query), 0, 'the way to the page uses nothing up')
    const head = async () => (await fetch(`${world.url}/tap?${query}`, { method: 'HEAD' })).status
    assert.deepEqual([await head(), await usesOf(query)], [200, 0], 'HEAD has the status of the GET')
    const page = await fetch(link, { headers: browser })
    const text = await page.text()
    assert.deepEqual([page.status, headingOf(text)], [200, 'Genuine chip'])
    assert.ok(text.includes(` data-path="${await world.pathOf('activated')}">`))
    assert.equal(await usesOf(query), 1)
    // Programs get JSON as before, and see the same tap.
    for (const accept of [
      '*/*',
      'application/json',
      'application/json, text/plain, */*',
      'text/html, application/json',
    ]) {
      const answer = await fetch(link, { headers: { Accept: accept } })
      assert.equal(((await answer.json()) as { verified: boolean }).verified, true, accept)
    }
    await world.components.database.query("update tap set first_seen = first_seen - interval '1 hour'")
    const shown = async (path: string) => {
      const response = await fetch(world.url + path, { headers: browser })
      return [response.status, headingOf(await response.text())]
    }
    assert.deepEqual(await shown(`/tap?${query}`), [200, 'Tap again'])
    assert.deepEqual(await shown('/tap'), [400, 'Tap again'])
    assert.deepEqual(await shown('/api/verify?picc=00'), [400, 'Tap again'])
    const altered = (await world.tap('activated')).replace(/.$/, (last) => (last === '0' ? '1' : '0'))
    assert.deepEqual(await shown(`/tap?${altered}`), [200, 'Not genuine'])
    const { status } = await fetch(link, { method: 'HEAD', headers: browser })
    assert.equal(status, 405)
  })

  async function usesOf(query: string) {
    const picc = Buffer.from(new URLSearchParams(query).get('picc') ?? '', 'hex')
    return (await world.components.database.query('SELECT 1 FROM tap WHERE picc = $1', [picc])).length
  }

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

  it('come compressed without a tap, and never with one or with a credential', async () => {
    const path = await world.pathOf('satchel')
    const codingOf = async (target: string, headers: Record<string, string> = {}) =>
      (await world.get(target, { headers: { 'Accept-Encoding': 'gzip, br', ...headers } })).headers.get(
        'content-encoding',
      )
    const style = /\/assets\/\w+\/page\.css/.exec(await (await world.get(path)).text())?.[0] ?? ''
    for (const target of [path, '/', style, '/docs', `/api/product${path}`, '/check', '/bulk', '/llms-full.txt'])
      assert.equal(await codingOf(target), 'br', target)
    for (const [target, headers] of [
      [`${path}?${await world.tap('satchel')}`],
      [`${path}?%70icc=${'a1'.repeat(16)}`],
      [path, { Cookie: '__Host-tap=x' }],
      [`/api/product${path}`, { Authorization: 'Bearer x' }],
      [path, { 'Accept-Encoding': 'identity' }],
    ] as const)
      assert.equal(await codingOf(target, headers), null, target)
  })

  it('give a picture under its hash for ever, from this host, and no other', async () => {
    const page = await (await world.get(await world.pathOf('claimed'))).text()
    const paths = [...new Set(page.match(/\/assets\/pictures\/[0-9a-f]{64}/g))]
    assert.equal(paths.length, 2) // the drawing, in AVIF and WebP
    for (const path of paths) {
      const answer = await world.get(path)
      const body = Buffer.from(await answer.arrayBuffer())
      assert.equal(answer.status, 200)
      assert.equal(createHash('sha256').update(body).digest('hex'), path.slice('/assets/pictures/'.length))
      assert.ok(body.length <= 60_000)
      assert.match(answer.headers.get('content-type') ?? '', /^image\/(?:avif|webp)$/)
      assert.equal(answer.headers.get('cache-control'), 'public, max-age=31536000, immutable')
      const etag = answer.headers.get('etag') ?? ''
      assert.equal((await world.get(path, { headers: { 'If-None-Match': etag } })).status, 304)
      assert.equal(await (await world.get(path, { method: 'HEAD' })).text(), '')
      assert.equal((await world.get(path, { method: 'POST' })).status, 405)
    }
    for (const path of [`${paths[0]?.slice(0, -1)}`, `/assets/pictures/${'0'.repeat(64)}`, '/assets/pictures/'])
      assert.equal((await world.get(path)).status, 404, path)
    const unknown = await fetch(`${world.limitedUrl}/assets/pictures/${'0'.repeat(64)}`)
    assert.equal(unknown.status, 429)
  })

  it('show no picture that is not stored, or that was altered in the database', async () => {
    const { pictures, metadata } = world.components
    const body = new Uint8Array(randomBytes(40))
    const form = { type: 'image/webp', body } as const
    const picture = await pictures.put({ width: 4, height: 3, forms: [form] })
    const details = canonicalDetails({
      picture: { ...picture, avif: 'ab'.repeat(32) },
      drawing: { ...picture, webp: 'cd'.repeat(32) },
    })
    assert.ok(details.ok)
    await metadata.put(details)
    const text = { name: 'Pictured', details: details.hash }
    const tokenId = await world.mint(text)
    const page = await (await world.get(`/token/${tokenId}`)).text()
    assert.deepEqual(page.match(/[0-9a-f]{64}"[^>]*width="4"/)?.[0]?.slice(0, 64), picture.webp)
    assert.ok(!page.includes('abababab') && !page.includes('cdcdcdcd'))
    await world.components.database.query('update picture set body = $2 where hash = $1', [
      new Uint8Array(Buffer.from(picture.webp, 'hex')),
      new Uint8Array(randomBytes(40)),
    ])
    assert.equal((await world.get(`/assets/pictures/${picture.webp}`)).status, 404)
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
    assert.equal(headingOf(page), 'Record only')
    assert.ok(page.includes('Satchel No. 7') && !page.includes('S7-1182'))
  })
})

type Passport = { credentialSubject: { assetStatus: { tapCounter: number } } }
