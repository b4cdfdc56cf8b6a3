/**
 * `npm run screenshots [folder] [name …]`: opens every page in Chromium, narrow and wide, light and dark, and writes a picture of each to the
 * folder. Pages whose result differs by language are also taken in Arabic. With names, only the pages whose name begins so.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { chromium } from 'playwright-core'
import { args, executablePath } from '../service/test/support/pages/browser.ts'
import { pageStates, startPageWorld, type PageState } from '../service/test/support/pages/pages.ts'

const [folder = 'screenshots', ...names] = process.argv.slice(2)
const target = resolve(folder)
const widths = [360, 1280] as const
const schemes = ['light', 'dark'] as const
/** States that are also taken in Arabic, from right to left. */
const alsoArabic = new Set(['home', 'tapped-claimed', 'tapped-stolen', 'untapped-activated', 'counterfeit'])

await mkdir(target, { recursive: true })
const profile = await mkdtemp(join(tmpdir(), 'touchstone-screenshots-'))
const world = await startPageWorld()
const browser = await chromium.launchPersistentContext(profile, { executablePath, args })
try {
  const states = (await pageStates(world)).filter(
    ({ name }) => names.length === 0 || names.some((one) => name.startsWith(one)),
  )
  const pages = states.flatMap((state) => (alsoArabic.has(state.name) ? [state, inArabic(state)] : [state]))
  for (const state of pages)
    for (const width of widths) for (const scheme of schemes) console.log(await take(state, width, scheme))
} finally {
  await browser.close()
  await world.end()
  await rm(profile, { recursive: true, force: true })
}

function inArabic({ name, url, status }: PageState): PageState {
  return { name: `${name}-ar`, url: `${url}${url.includes('?') ? '&' : '?'}lang=ar`, status }
}

async function take({ name, url }: PageState, width: number, colorScheme: 'light' | 'dark'): Promise<string> {
  const path = join(target, `${name}-${width}-${colorScheme}.png`)
  const page = await browser.newPage()
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await page.setViewportSize({ width, height: width < 600 ? 740 : 900 })
  await page.goto(url)
  await page.screenshot({ path, fullPage: true })
  await page.close()
  return path
}
