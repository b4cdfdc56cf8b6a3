/** Every page for every visitor: WCAG 2.2 AA by axe-core, narrow screens, the keyboard, and hostile supplier text (spec §2.3, §4.6). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { hostileTexts } from '../../support/fuzz/hostile-text.ts'
import {
  type Audit,
  audit,
  colourRules,
  kindsOf,
  noBrowser,
  type Rules,
  type Scheme,
  startPageBrowser,
  type PageBrowser,
} from '../../support/pages/browser.ts'
import { startPageWorld, type PageWorld } from '../../support/pages/pages.ts'
import { makeWalletKeys, type WalletKeys } from '../../support/pages/wallets.ts'
import { openState, pageStates, scriptedStates, type ScriptedState } from '../../support/pages/states.ts'

let world: PageWorld
let keys: WalletKeys
let browser: PageBrowser
let states: { readonly pages: readonly ScriptedState[]; readonly scripted: readonly ScriptedState[] }
before(async () => {
  if (noBrowser !== false) return
  keys = await makeWalletKeys()
  world = await startPageWorld({ env: { ...keys.env, TAP_WINDOW_SECONDS: '3000' } }) // as long as the tests may take, and below an hour
  states = { pages: await pageStates(world), scripted: await scriptedStates(world) }
  browser = await startPageBrowser(world)
})
after(async () => {
  await browser?.close()
  await world?.end()
})

type Seen = {
  readonly name: string
  readonly heading: string
  readonly width: number
  readonly audits: Partial<Record<Scheme, Audit>>
}

describe('every page in Chromium', { skip: noBrowser }, () => {
  const visits = new Map<string, Promise<readonly Seen[]>>()
  const [wide, narrow] = [
    { width: 1280, height: 720 },
    { width: 320, height: 640 },
  ]

  /** The audits of each language. Dark pages differ from light ones by their colours only; Arabic ones have the same colours. */
  const auditsIn = {
    en: { light: {}, dark: { only: colourRules } },
    de: {},
    ar: { light: { without: colourRules } },
  } as const satisfies Record<string, Partial<Record<Scheme, Rules>>>
  type Language = keyof typeof auditsIn

  /**
   * Opens every page in a language once, wide and narrow. Elements of the same name, class and role within the same tone are one kind. A page
   * is audited if it has an element of a kind that no audited page has.
   */
  function seenIn(language: Language): Promise<readonly Seen[]> {
    const visit = visits.get(language) ?? visitAll(language)
    visits.set(language, visit)
    return visit
  }

  async function visitAll(language: Language): Promise<readonly Seen[]> {
    const [kinds, seen] = [new Set<string>(), Array<Seen>()]
    const schemes = Object.entries(auditsIn[language])
    async function visit(page: Page, state: ScriptedState): Promise<void> {
      await openState(page, state, language)
      const [elements, { heading, width }] = [await kindsOf(page), await page.evaluate<Look>(look)]
      const audits: Partial<Record<Scheme, Audit>> = {}
      if (schemes.length > 0 && elements.some((kind) => !kinds.has(kind))) {
        await page.setViewportSize(wide)
        for (const [scheme, rules] of schemes) audits[scheme as Scheme] = await audit(page, scheme as Scheme, rules)
        await page.setViewportSize(narrow)
      }
      for (const kind of elements) kinds.add(kind)
      seen.push({ name: `${state.name} ${language}`, heading, width, audits })
    }
    const options = { viewport: narrow, allowed: /ERR_INTERNET_DISCONNECTED/ }
    // A service worker stands between a page and its host, which costs as much as the page.
    await using plain = await browser.open(`${world.url}/`, { ...options, serviceWorkers: 'block' })
    for (const state of states.pages) await visit(plain, state)
    // Scripted states have the same elements in Arabic as in English, and the longest words are German.
    if (language === 'ar') return seen
    await using scripted = await browser.open(`${world.url}/`, options)
    for (const state of states.scripted) await visit(scripted, state)
    return seen
  }

  type Look = { readonly heading: string; readonly width: number }
  const look = `({
    heading: Array.from(document.querySelectorAll('h1')).flatMap((h1) => [h1, ...h1.querySelectorAll('.word')])
      .filter((part) => part.querySelector('.word') === null && part.checkVisibility())
      .map((part) => part.innerText.trim()).join(' | '),
    width: document.documentElement.scrollWidth,
  })`

  for (const [colorScheme, language, least] of [
    ['light', 'en', 15],
    ['dark', 'en', 0],
    ['light', 'ar', 15],
  ] as const)
    it(`breaks no rule of axe-core, ${colorScheme}, ${language}`, async () => {
      const seen = await seenIn(language)
      for (const { name, heading, audits } of seen) {
        assert.ok(
          heading !== '' && !heading.includes(' | ') && !(name.startsWith('tapped') && heading === 'Tap again'),
          `${name}: ${heading}`,
        )
        const audited = audits[colorScheme]
        if (audited === undefined) continue
        const { broken, held } = audited
        assert.deepEqual(broken, [], name)
        assert.ok(held > least, `${name}: only ${held} rules were looked at`)
      }
      assert.ok(seen.filter(({ audits }) => audits[colorScheme] !== undefined).length > 15)
    })

  it('would fail for text that cannot be read', async () => {
    await using page = await browser.open(`${world.url}/`)
    await page.evaluate("document.querySelector('#tap').style.color = '#ddd'")
    assert.deepEqual((await audit(page, 'light')).broken, ['color-contrast: #tap'])
  })

  it('fits a screen of 320 px without scrolling sideways, also in Arabic and German', async () => {
    for (const language of ['en', 'de', 'ar'] as const)
      for (const { name, width } of await seenIn(language)) assert.equal(width, narrow.width, name)
  })

  it('names the headline as one sentence with the brand', async () => {
    await using page = await browser.open(await world.tapped('satchel'))
    assert.equal(await page.locator('h1').ariaSnapshot(), '- heading "Genuine, Maison Orvelle" [level=1]')
  })

  it('leads the keyboard past the head to the result', async () => {
    await using page = await browser.open(await world.tapped('claimed'))
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the result')
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate('document.activeElement.id'), 'result')
  })

  it('fits it also in letters of twice the size, with its code', async () => {
    await using page = await browser.open(`${world.url}${await world.pathOf('activated')}`, { viewport: narrow })
    await page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), narrow.width)
  })

  it('keeps the credit of the picture beside the seal', async () => {
    const tapped = await world.tapped('satchel')
    await using page = await browser.open(tapped, { viewport: narrow })
    for (const [width, language] of [
      [320, 'en'],
      [320, 'ar'],
      [390, 'fr'],
      [1280, 'ar'],
    ] as const) {
      await page.setViewportSize({ width, height: 740 })
      await page.goto(`${tapped}&lang=${language}`)
      assert.equal(await page.evaluate(isSealOnCredit), false, `${language} at ${width} px`)
    }
  })

  it('hides no focus below the bar of an old answer, also where the screen is low', async () => {
    const offline = states.scripted.find(({ name }) => name === 'offline')
    assert.ok(offline)
    await using page = await browser.open(`${world.url}/`, { viewport: narrow, allowed: /ERR_INTERNET_DISCONNECTED/ })
    await openState(page, offline, 'en')
    for (const height of [640, 256]) {
      await page.setViewportSize({ width: 320, height })
      await page.locator('main :is(summary, a):visible').last().focus()
      const hidden: string[] = []
      let steps = 0
      for (; steps < 50; steps++) {
        await page.keyboard.press('Shift+Tab')
        const { tag, isInPage, isHidden } = await page.evaluate<{ tag: string; isInPage: boolean; isHidden: boolean }>(
          focus,
        )
        if (!isInPage) break
        if (isHidden) hidden.push(tag)
      }
      assert.ok(steps > 5)
      assert.deepEqual(hidden, [], `${height} px`)
      const bar: number = await page.evaluate(
        `(scrollTo(0, 400), document.querySelector('.top').getBoundingClientRect().bottom)`,
      )
      assert.ok(bar < height / 2, `the bar ends at ${bar} of ${height} px`)
    }
  })

  it('says in a live region what an answer of the visitor changes', async () => {
    await using page = await browser.open(await world.tapped('satchel'))
    for (const [answer, ...parts] of [
      ['#for-second', '.word', '.verdict .say'],
      ['#looks-no', '.answer.no h3', '.answer.no > p'],
      ['#looks-yes', '.answer.yes h3', '.answer.yes > p'],
      ['#for-new', '.word', '.verdict .say'],
    ]) {
      await page.locator(`${answer}`).check()
      const said = page
        .locator('fieldset, section')
        .filter({ has: page.locator(`${answer}`) })
        .getByRole('status')
      for (const part of parts) {
        const shown = await page.locator(`${part}:visible`).innerText()
        await said.getByText(shown.trim(), { exact: true }).waitFor({ state: 'attached' })
      }
    }
  })

  it('shows the red seal, the marks of facts and the chosen answers in forced colours, light and dark', async () => {
    await using page = await browser.open(`${world.url}/`)
    const stolen = await world.tapped('stolen')
    const satchel = await world.tapped('satchel')
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, forcedColors: 'active' })
      /** How light an element is drawn, 0 to 255, and how much that varies. */
      const drawn = async (selector: string) => {
        const picture = await page.locator(`${selector} >> visible=true`).first().screenshot({ animations: 'disabled' })
        const channels = (await sharp(picture).stats()).channels.slice(0, 3)
        const mean = channels.reduce((sum, channel) => sum + channel.mean / 3, 0)
        return { mean, stdev: Math.max(...channels.map((channel) => channel.stdev)) }
      }
      for (const url of [`${world.url}/`, stolen]) {
        await page.goto(url)
        const { stdev } = await drawn('.tone-stop .seal')
        assert.ok(stdev > 20, `the seal of ${url} varies by ${stdev}`)
      }
      assert.ok((await drawn('.facts .ic')).stdev > 20, `the mark of a fact in ${colorScheme}`)
      await page.goto(satchel)
      await page.locator('#looks-no').check()
      await page.locator('h1').click() // the pointer and the focus leave the answers
      for (const [chosen, open] of [
        ['#looks-no + .btn', '#looks-yes + .btn'],
        ['.tiles label:has(:checked)', '.tiles label:not(:has(:checked))'],
      ] as const) {
        const [one, other] = [await drawn(chosen), await drawn(open)]
        assert.ok(Math.abs(one.mean - other.mean) > 30, `${chosen}: ${one.mean}, ${other.mean}`)
      }
    }
  })

  it('keeps every hostile text inside its element', async () => {
    await using page = await browser.open(`${world.url}/`)
    const tokenIds = await world.mintMany(
      hostileTexts.map(({ input, field }) => {
        const text = field === 'description' ? { description: input, name: 'X' } : { name: input, description: input }
        return { ...text, brand: input, sku: input, origin: input, size: input }
      }),
    )
    for (const [index, { id, expected = '', alsoAccept = [], soft, field }] of hostileTexts.entries()) {
      await page.goto(`${world.url}/token/${tokenIds[index]}`)
      const seen = (await page.evaluate(`({
        inner: document.querySelectorAll('bdi *').length,
        scripts: [...document.scripts].map(({ type }) => type),
        foreign: document.querySelectorAll('main img, iframe, object, embed, base, style, main link, [onerror], [onload], [onclick]').length,
        links: [...document.querySelectorAll('.product a')].length,
        texts: [...document.querySelectorAll('.product bdi')].map((element) => element.textContent),
      })`)) as { inner: number; scripts: string[]; foreign: number; links: number; texts: string[] }
      assert.deepEqual(
        { ...seen, texts: [] },
        { inner: 0, scripts: ['module', 'application/json', 'application/ld+json'], foreign: 0, links: 0, texts: [] },
        id,
      )
      if (soft === true || field === 'description') continue
      const wanted = [expected, ...alsoAccept].filter((one) => one !== '')
      assert.ok(wanted.length === 0 || wanted.includes(seen.texts[0] ?? ''), `${id}: ${JSON.stringify(seen.texts[0])}`)
    }
  })
})

/** Returns whether the seal lies over a line of the credit. */
const isSealOnCredit = `(() => {
  const seal = document.querySelector('.seal').getBoundingClientRect()
  const text = document.createRange()
  text.selectNodeContents(document.querySelector('.credit'))
  return [...text.getClientRects()].some(({ left, right, top, bottom }) =>
    left < seal.right && right > seal.left && top < seal.bottom && bottom > seal.top)
})()`

/** Returns the focused element, and whether all of it lies below the bar. */
const focus = `(() => {
  const [element, bar] = [document.activeElement, document.querySelector('.top').getBoundingClientRect()]
  const { bottom } = element.getBoundingClientRect()
  const isInPage = document.querySelector('main').contains(element)
  return { tag: element.outerHTML.slice(0, 60), isInPage, isHidden: bottom <= bar.bottom }
})()`
