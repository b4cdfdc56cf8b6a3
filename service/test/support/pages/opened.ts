/** Opens a world and a browser for all tests of a file or suite, and closes both after them. */
import { after, before } from 'node:test'
import { noBrowser, startPageBrowser, type PageBrowser } from './browser.ts'
import { startPageWorld, type PageWorld } from './pages.ts'

/** `use` gets both before the first test. Nothing is opened where the tests are skipped because there is no browser. */
export function openPages(use: (opened: { readonly world: PageWorld; readonly browser: PageBrowser }) => void): void {
  let world: PageWorld | undefined
  let browser: PageBrowser | undefined
  before(async () => {
    if (noBrowser !== false) return
    world = await startPageWorld({ env: { TAP_WINDOW_SECONDS: '3000' } }) // as long as the tests may take, and below an hour
    browser = await startPageBrowser(world)
    use({ world, browser })
  })
  after(async () => {
    await browser?.close()
    await world?.end()
  })
}
