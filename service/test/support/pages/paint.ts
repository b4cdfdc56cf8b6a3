/** When the verdict of a page is painted, by the Element Timing API of Chromium. */
import type { Page } from 'playwright-core'

/** Marks the headline before it is painted, on the pages that are opened from now on. */
export async function watchVerdict(page: Page): Promise<void> {
  await page.addInitScript(`new MutationObserver((_, observer) => {
    for (const word of document.querySelectorAll('h1 .word')) word.setAttribute('elementtiming', 'verdict')
    if (document.readyState !== 'loading') observer.disconnect()
  }).observe(document, { childList: true, subtree: true })`)
}

/** Waits until the headline is painted, and returns the milliseconds since the request of the page began. */
export function verdictPaint(page: Page): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    new PerformanceObserver((list) => {
      const [entry] = list.getEntries().filter(({ identifier }) => identifier === 'verdict')
      if (entry !== undefined) resolve(entry.renderTime)
    }).observe({ type: 'element', buffered: true })
  })`)
}
