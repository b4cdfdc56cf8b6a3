/** A page without a connection shows the last answer of this visit as old. Without one it says that nothing was checked (spec §4.6). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { textsOf } from '../../../src/pages/languages.ts'
import { noBrowser, shows, type PageBrowser } from '../../support/pages/browser.ts'
import { openPages } from '../../support/pages/opened.ts'
import type { PageWorld } from '../../support/pages/pages.ts'

let world: PageWorld
let browser: PageBrowser
openPages((opened) => ({ world, browser } = opened))

describe('a page without a connection', { skip: noBrowser }, () => {
  it('shows the last answer without a connection, in grey and marked as old, and keeps no tap for it', async () => {
    await using page = await browser.open(await world.tapped('satchel'), { allowed: /ERR_INTERNET_DISCONNECTED/ })
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)')
    const kept = (await page.evaluate(`Promise.all([
      JSON.stringify(sessionStorage),
      caches.keys().then(async ([name]) => (await (await caches.open(name)).keys()).map(({ url }) => url).join()),
    ]).then(String)`)) as string
    assert.match(kept, /offline\.html/)
    assert.ok(world.secrets.every((secret) => !kept.includes(secret)) && !/picc|ticket|\/21\/[^"]*,/.test(kept))
    await page.context().setOffline(true)
    await page.reload()
    await shows(page, 'Genuine')
    assert.match(await page.getByRole('alert').innerText(), /^No connection\. .+, not of now\. Try again$/)
    await page.setViewportSize({ width: 320, height: 740 })
    const [strip = 0, bar = 0] = await page.evaluate<number[]>(`(scrollTo(0, 300), [
      document.querySelector('.strip').getBoundingClientRect().bottom,
      document.querySelector('.old').getBoundingClientRect().top,
    ])`)
    assert.ok(strip > 40 && bar >= strip, `the strip of two lines ends at ${strip}, the bar begins at ${bar}`)
    assert.equal(await page.evaluate(`getComputedStyle(document.querySelector('main')).filter`), 'grayscale(1)')
    await page.goto(`${world.url}/token/4711`)
    await shows(page, 'No connection')
    await page.context().setOffline(false)
    await page.goBack()
    await shows(page, 'Genuine')
    assert.equal(await page.locator('.old').count(), 0)
  })

  it('shows it without a connection for its own visit only, and never for another chip or link', async () => {
    const path = await world.pathOf('satchel')
    await using page = await browser.open(await world.tapped('satchel'), { allowed: /ERR_INTERNET_DISCONNECTED/ })
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)')
    await page.context().setOffline(true)
    for (const query of [`?picc=${'a1'.repeat(16)}&cmac=${'b2'.repeat(8)}`, '', '?lang=de']) {
      await page.goto(`${world.url}/token/4711`)
      await shows(page, 'No connection')
      await Promise.all([
        page.waitForEvent('load'),
        page.evaluate(`void setTimeout(() => location.assign('${path}${query}'))`),
      ])
      await page.reload()
      await shows(page, query === '?lang=de' ? 'Keine Verbindung' : 'No connection')
      assert.doesNotMatch(`${await page.title()} ${await page.locator('main').innerText()}`, /genuine/i, query)
      assert.equal(new URL(page.url()).search, query) // another try repeats the tap
      await Promise.all([page.waitForEvent('load'), page.evaluate('void setTimeout(() => history.go(-2))')])
      await shows(page, 'Genuine')
    }
    await page.evaluate("location.hash = 'compare'")
    await page.waitForFunction("history.state !== null && location.hash === '#compare'")
    await Promise.all([page.waitForEvent('load'), page.getByRole('link', { name: 'Try again' }).click()])
    await shows(page, 'Genuine')
    await page.context().setOffline(false)
    await page.getByRole('link', { name: 'Try again' }).click()
    await page.locator('[data-field="proven"]:not(.past)').waitFor() // the tap is shown again
    await shows(page, 'Genuine')
  })

  it('is in the language of the visitor, in every word', async () => {
    await using page = await browser.open(await world.tapped('satchel'), { allowed: /ERR_INTERNET_DISCONNECTED/ })
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)')
    await page.context().setOffline(true)
    await page.goto(`${world.url}/token/4711?lang=de`)
    await shows(page, 'Keine Verbindung')
    const { frame, notices, verdict } = textsOf.de
    const shown = [frame.testnet, frame.testnetMore, notices.offlineText, verdict.tryAgain, frame.about, frame.privacy]
    const words: string = await page.evaluate('document.body.innerText')
    for (const text of shown) assert.ok(words.includes(text), text)
    assert.equal(await page.title(), `${notices.offlineTitle} · Touchstone`)
    assert.equal(await page.locator('.strip').getAttribute('aria-label'), frame.testnet)
  })
})
