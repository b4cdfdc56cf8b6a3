/** Every page for every visitor: WCAG 2.2 AA by axe-core in light, dark and from right to left, narrow screens, and hostile supplier text (spec §2.3). */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import { hostileTexts } from '../../support/fuzz/hostile-text.ts'
import { headingOf, noBrowser, startPageBrowser, type Opened, type PageBrowser } from '../../support/pages/browser.ts'
import { pageStates, startPageWorld, type PageState, type PageWorld } from '../../support/pages/pages.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const looks = [
  ['light', 'en'],
  ['dark', 'en'],
  ['light', 'ar'],
] as const

describe('every page in Chromium', { skip: noBrowser }, () => {
  let world: PageWorld
  let states: PageState[]
  let browser: PageBrowser
  before(async () => {
    world = await startPageWorld()
    states = await pageStates(world)
    browser = await startPageBrowser(world)
  })
  after(async () => {
    await browser?.close()
    await world?.end()
  })

  /** Rules that were broken, and how many held. */
  async function audit(page: Opened): Promise<{ broken: string[]; held: number }> {
    await page.evaluate(axe)
    return page.evaluate(`axe.run(document, { rules: { 'target-size': { enabled: true } } }).then(({ violations, passes }) => ({
      held: passes.length,
      broken: violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target.join(' ')).slice(0, 3).join(', ')),
    }))`)
  }

  for (const [colorScheme, language] of looks) {
    it(`breaks no rule of axe-core, ${colorScheme}, ${language}`, async () => {
      await using page = await browser.open(`${world.url}/`, { colorScheme })
      for (const { name, url } of states) {
        await page.goto(`${url}${url.includes('?') ? '&' : '?'}lang=${language}`)
        const { broken, held } = await audit(page)
        assert.deepEqual(broken, [], name)
        assert.ok(held > 15, `${name}: only ${held} rules were looked at`)
        assert.notEqual(await headingOf(page), '')
      }
    })
  }

  it('would fail for text that cannot be read', async () => {
    await using page = await browser.open(`${world.url}/`)
    await page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    assert.deepEqual((await audit(page)).broken, ['color-contrast: h1'])
  })

  it('fits a screen of 320 px without scrolling sideways, also in Arabic and German', async () => {
    await using page = await browser.open(`${world.url}/`, { viewport: { width: 320, height: 640 } })
    for (const { name, url } of states)
      for (const language of ['en', 'de', 'ar']) {
        await page.goto(`${url}${url.includes('?') ? '&' : '?'}lang=${language}`)
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320, `${name} ${language}`)
      }
  })

  it('leads the keyboard past the head to the result', async () => {
    await using page = await browser.open(await world.tapped('claimed'))
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the result')
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate('document.activeElement.id'), 'result')
  })

  it('keeps every hostile text inside its element', async () => {
    await using page = await browser.open(`${world.url}/`)
    for (const { id, input, expected = '', alsoAccept = [], soft, field } of hostileTexts) {
      const text = field === 'description' ? { description: input, name: 'X' } : { name: input, description: input }
      const tokenId = await world.mint({ ...text, brand: input, sku: input, origin: input, size: input })
      await page.goto(`${world.url}/token/${tokenId}`)
      const seen = (await page.evaluate(`({
        inner: document.querySelectorAll('bdi *').length,
        scripts: [...document.scripts].map(({ type }) => type),
        foreign: document.querySelectorAll('main img, iframe, object, embed, base, style, main link, [onerror], [onload], [onclick]').length,
        links: [...document.querySelectorAll('.product a')].length,
        texts: [...document.querySelectorAll('.product bdi')].map((element) => element.textContent),
      })`)) as { inner: number; scripts: string[]; foreign: number; links: number; texts: string[] }
      assert.deepEqual(
        { ...seen, texts: [] },
        { inner: 0, scripts: ['module', 'application/json'], foreign: 0, links: 0, texts: [] },
        id,
      )
      if (soft === true || field === 'description') continue
      const wanted = [expected, ...alsoAccept].filter((one) => one !== '')
      assert.ok(wanted.length === 0 || wanted.includes(seen.texts[0] ?? ''), `${id}: ${JSON.stringify(seen.texts[0])}`)
    }
  })
})
