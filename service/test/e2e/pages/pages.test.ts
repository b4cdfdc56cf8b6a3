/** The pages over HTTP, without a browser (spec §4.5, §4.6): status, headers, language, what stands in the source, and what uses up a tap. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { pageStates, startPageWorld, type PageState, type PageWorld } from '../../support/pages/pages.ts'

const headingOf = (page: string) => /<h1[^>]*>([^<]*)<\/h1>/.exec(page)?.[1]
const policy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

describe('the pages', () => {
  let world: PageWorld
  let states: PageState[]
  before(async () => {
    world = await startPageWorld()
    states = await pageStates(world)
  })
  after(() => world?.end())

  const stateOf = (name: string) => states.find((state) => state.name === name)?.url ?? ''
  const textOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).text()

  /** Every state in one language, as it came. */
  async function all(
    language: string,
  ): Promise<{ name: string; status: number; headers: Headers; text: string; expected: number }[]> {
    return Promise.all(
      states.map(async ({ name, url, status: expected }) => {
        const response = await fetch(url, { headers: { 'Accept-Language': language } })
        const { status, headers } = response
        return { name, status, headers, text: await response.text(), expected }
      }),
    )
  }

  it('have their status and the headers of a page, in every state', async () => {
    for (const { name, status, expected, headers } of await all('en')) {
      assert.equal(status, expected, name)
      const given = (header: string) => headers.get(header)
      const rest = [
        given('referrer-policy'),
        given('cache-control'),
        given('x-content-type-options'),
        given('x-robots-tag'),
        given('vary'),
      ]
      assert.deepEqual(rest, ['no-referrer', 'no-store', 'nosniff', 'noindex', 'Accept, Accept-Language'], name)
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

  it('let a form go only where there is a search form, which no tapped page has', async () => {
    for (const { name, headers, text } of await all('en')) {
      const hasForm = text.includes('<form action=')
      assert.equal(headers.get('content-security-policy')?.includes("form-action 'self'"), hasForm, name)
      if (name.startsWith('tapped')) assert.equal(hasForm, false, name)
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
      assert.ok(!/ on[a-z]+=| style=|<style|<iframe|<img|<base/.test(tags), name)
      for (const [, source = ''] of text.matchAll(/ (?:src|href)="([^"]*)"(?=[^>]*>)/g)) {
        if (/^(?:\/|#|$)/.test(source)) continue
        assert.ok(
          source.startsWith(world.url) ||
            source.startsWith(world.bareUrl) ||
            source === 'https://example.com/images/meridian-41.jpg',
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
      for (const { name, text, headers } of await all(`${language},en;q=0.5`)) {
        assert.ok(text.startsWith(`<!doctype html>\n<html lang="${language}" dir="${direction}">`), name)
        assert.equal(headers.get('content-language'), language, name)
        assert.ok(language === 'en' || !text.includes('For evaluation:'), name)
      }
      assert.match(
        await textOf(`${world.url}/?lang=${language}`, { headers: { 'Accept-Language': 'en' } }),
        new RegExp(`<html lang="${language}"`),
      )
    })

  it('say first what the tap came to', async () => {
    const headings = new Map(
      await Promise.all(states.map(async ({ name, url }) => [name, headingOf(await textOf(url))] as const)),
    )
    const expected: Record<string, string> = {
      'tapped-bound': 'Genuine chip, tapped now',
      'tapped-claimed': 'Genuine chip, tapped now',
      'tapped-token': 'Genuine chip, tapped now',
      'tapped-lost': 'This item is reported lost',
      'tapped-stolen': 'This item is reported stolen',
      'tapped-confirmed': 'This item is stolen, the theft is confirmed',
      'tapped-recall': 'This item is recalled',
      'tapped-investigation': 'This item is under investigation',
      'tapped-opened': 'Genuine chip, but the seal was opened',
      'tapped-recycled': 'Genuine chip, but the item is at its end of life',
      'untapped-activated': 'On-chain record only',
      'untapped-stolen': 'This item is reported stolen',
      incomplete: 'The tap was not read completely',
      replayed: 'This link was already used',
      counterfeit: 'This chip is not genuine',
      unbound: 'Genuine chip, no passport yet',
      'other-item': 'Chip and link do not belong together',
      class: 'A kind of product, not one item',
      'bad-link': 'This link cannot be read',
      unknown: 'Nothing is registered under this number',
      'rate-limited': 'Too many requests',
      chain: 'The blockchain could not be read',
      'not-configured': 'Taps cannot be checked here yet',
      challenge: 'Tap once more',
    }
    for (const [name, heading] of Object.entries(expected)) assert.equal(headings.get(name), heading)
  })

  it('show nothing of a product where the chip does not belong to it, and link its record', async () => {
    for (const name of ['counterfeit', 'other-item', 'unbound']) {
      const page = await textOf(stateOf(name))
      assert.ok(!page.includes('Meridian') && !page.includes('Loden'), name)
    }
    assert.match(await textOf(stateOf('counterfeit')), /href="\/01\/09520001000010\/21\/M41-002208"/)
  })

  it('withhold a text that is not the one of the chain', async () => {
    const page = await textOf(stateOf('tapped-mismatch'))
    assert.match(page, /Product text withheld/)
    assert.ok(!page.includes('but better') && !page.includes('Altered'))
    assert.match(page, /"metadataHashMatches":false/)
  })

  it('link the keyless JSON of an untapped item and say that it proves nothing', async () => {
    const page = await textOf(stateOf('untapped-activated'))
    assert.ok(page.includes(`href="${world.url}/api/asset/${world.tokenOf('activated')}"`))
    assert.match(page, /does not prove that the item in front of you is genuine/)
    assert.ok(!page.includes('application/ld+json'))
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
    assert.deepEqual([second.status, headingOf(page)], [502, 'The blockchain could not be read'])
    assert.match(page, /<body data-tap="retry">/)
    assert.match(page, /The chip was read\. The same link may be tried again\./)
  })
})
