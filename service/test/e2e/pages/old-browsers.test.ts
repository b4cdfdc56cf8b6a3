/**
 * The pages in the oldest browsers of docs/rest-api.md («Browsers»): Chromium without what Safari 15.4, Firefox 115 or Chrome 109 lacks. The last test
 * goes back to a page that the browser kept.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chromium } from 'playwright-core'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { args, desktop, noBrowser, shows, type Opened, type PageBrowser } from '../../support/pages/browser.ts'
import { choosePicture, pictureOf } from '../../support/pages/camera.ts'
import { certificateOf } from '../../support/pages/certificate.ts'
import { openPages } from '../../support/pages/opened.ts'
import type { PageWorld } from '../../support/pages/pages.ts'

let world: PageWorld
let browser: PageBrowser
openPages((opened) => ({ world, browser } = opened))

/** Functions that at least one of them lacks. */
const oldFunctions = `for (const [owner, names] of [
  [URL, ['canParse', 'parse']],
  [AbortSignal, ['any', 'timeout']],
  [URLSearchParams.prototype, ['size']],
  [Element.prototype, ['ariaLabel', 'checkVisibility']],
  [Promise, ['withResolvers', 'try']],
  [Array.prototype, ['toSorted', 'toReversed']],
  [String.prototype, ['isWellFormed']],
  [globalThis, ['DecompressionStream', 'BarcodeDetector']],
])
  for (const name of names) delete owner[name]`

/** Removes rules as a browser without :has() does. */
const oldStyle = `{
  const clean = (rules) => {
    for (let at = rules.cssRules.length - 1; at >= 0; at--) {
      const rule = rules.cssRules[at]
      const condition = rule.conditionText ?? ''
      if (rule.selectorText?.includes(':has(') || condition.startsWith('selector(:has(')) rules.deleteRule(at)
      else if (condition === 'not selector(:has(*))') for (const { cssText } of rule.cssRules) rules.insertRule(cssText, at + 1)
      else if (rule.cssRules !== undefined) clean(rule)
    }
  }
  for (const sheet of document.styleSheets) clean(sheet)
}`

/** Sizes of the letters in fields, in pixels. */
const letters = `Array.from(document.querySelectorAll('input:not([type=hidden], [type=radio]), select, textarea'),
  (field) => Number.parseFloat(getComputedStyle(field).fontSize))`

describe('a page in an old browser', { skip: noBrowser }, () => {
  async function open(url: string, more: Parameters<PageBrowser['open']>[1] = {}): Promise<Opened> {
    const page = await browser.open('about:blank', { viewport: { width: 390, height: 740 }, ...more })
    await page.addInitScript(oldFunctions)
    await page.goto(url)
    return page
  }

  it('takes the tap out of the address, and shows the same after a reload and in another language', async () => {
    await using page = await open(await world.tapped('activated'))
    await page.waitForURL(({ search }) => search === '')
    await page.reload()
    await shows(page, 'Genuine chip')
    await page.waitForURL(({ search }) => search === '')
    await page.locator('.lang summary').click()
    await page.getByRole('link', { name: 'Deutsch' }).click()
    await shows(page, 'Echter Chip')
    await page.waitForURL(({ search }) => search === '?lang=de')
  })

  it('checks a certificate, but not its list, which it cannot unpack', async () => {
    const jws = await certificateOf(world, 'claimed')
    await using page = await open(`${world.url}/check?lang=en#${jws}`)
    const title = page.locator('[data-checked] h2')
    await title.getByText('Not fully checked').waitFor()
    assert.deepEqual(await page.locator('.checks li').evaluateAll((rows) => rows.map(({ className }) => className)), [
      'yes',
      'open',
      'yes',
      'open',
    ])
    await page.getByRole('button', { name: /^Read the block at/ }).click()
    await page.getByText(/is on the blockchain, and the record says the same there/).waitFor()
    await page.getByLabel('Certificate or its link').fill(`${jws.slice(0, -9)}AAAA${jws.slice(-5)}`)
    await page.getByRole('button', { name: 'Check' }).click()
    await title.getByText('Do not rely on it').waitFor()
  })

  it('checks a certificate where the browser keeps no files', async () => {
    await using page = await browser.open('about:blank')
    await page.addInitScript('delete globalThis.caches')
    await page.goto(`${world.url}/check?lang=en#${await certificateOf(world, 'claimed')}`)
    await page.locator('[data-checked] h2').getByText('The certificate is right').waitFor()
  })

  it('rechecks the record, tests an owner, and reads a code from a picture', async () => {
    await using page = await open(`${world.url}${await world.pathOf('claimed')}`)
    await page.locator('.proof > summary').click()
    await page.getByRole('button', { name: 'Recheck now' }).click()
    await page.getByText(/^Every field agrees with the blockchain at block \d+\.$/).waitFor()
    await page.getByText('Test that it is mine').click()
    await page.getByLabel('Wallet address').fill(publishedAddresses[2] ?? '')
    await page.getByRole('button', { name: 'Test', exact: true }).click()
    await page.getByText('Yes, this address holds the item.', { exact: true }).waitFor()
    await page.goto(`${world.url}/`)
    await choosePicture(page, pictureOf(`${world.url}/token/${world.tokenOf('claimed')}`))
    await shows(page, 'Record only')
  })

  it('shows an old answer in grey, a warning in red, and the chosen answer, without :has()', async () => {
    await using page = await open(await world.tapped('satchel'), { allowed: /ERR_INTERNET_DISCONNECTED/ })
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)')
    await page.evaluate(oldStyle)
    assert.equal(await page.locator('.printed').isVisible(), false)
    const mark = "getComputedStyle(document.querySelector('.tiles :checked ~ span')).textDecorationLine"
    assert.equal(await page.evaluate(mark), 'underline')
    const look = () => page.evaluate("getComputedStyle(document.querySelector('main')).filter")
    await page.context().setOffline(true)
    await page.reload()
    await page.locator('.old').waitFor()
    await page.evaluate(oldStyle)
    assert.equal(await look(), 'grayscale(1)')
    await page.context().setOffline(false)
    await page.goto(await world.tapped('stolen'))
    await shows(page, 'Reported stolen')
    await page.context().setOffline(true)
    await page.reload()
    await page.locator('.old').waitFor()
    assert.equal(await look(), 'none')
  })

  it('has fields that an iPhone does not zoom into', async () => {
    await using page = await open('about:blank')
    for (const path of ['/', '/bulk', '/check', await world.pathOf('claimed'), `/?gtin=1&serial=A1`]) {
      await page.goto(`${world.url}${path}`)
      const sizes = await page.evaluate<number[]>(letters)
      assert.ok(sizes.length > 0 && sizes.every((size) => size >= 16), `${path}: ${sizes.join()}`)
    }
  })
})

describe('a page that a browser kept', { skip: noBrowser }, () => {
  it('is asked for again: the item may have been reported', async () => {
    // Playwright switches the cache of pages off.
    const ignoreDefaultArgs = ['--disable-back-forward-cache']
    const keeping = await chromium.launch({ executablePath: desktop, args: [...args], ignoreDefaultArgs })
    try {
      const page = await keeping.newPage()
      page.setDefaultTimeout(240_000) // as long as a busy machine may take
      await page.goto(await world.tapped('jacket'))
      await shows(page, 'Genuine')
      await page.evaluate("addEventListener('pageshow', ({ persisted }) => persisted && console.info('kept'))")
      await page.goto(`${world.url}/`)
      await world.write({ kind: 'flag', tokenId: world.tokenOf('jacket'), bits: 1, reasonHash: `0x${'0'.repeat(64)}` })
      const [kept] = await Promise.all([page.waitForEvent('console'), page.evaluate('void history.back()')])
      assert.equal(kept.text(), 'kept')
      await shows(page, 'Reported lost')
    } finally {
      await keeping.close()
    }
  })
})
