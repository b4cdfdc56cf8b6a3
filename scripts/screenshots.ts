/**
 * `npm run screenshots -- [folder] [name …] [--lang en,ar]` writes a picture of every page to the folder. It opens the pages in Chromium,
 * in five languages, on a telephone and a desktop, light and dark. With names, only the pages whose name begins so. `npm run screenshots --
 * --readme` takes the one picture of the README, docs/tapped-page.png.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readOptions } from './options.ts'
import { fileURLToPath } from 'node:url'
import { chromium, type Page } from 'playwright-core'
import { languages } from '../service/src/pages/languages.ts'
import { args, desktop } from '../service/test/support/pages/browser.ts'
import { testCamera } from '../service/test/support/pages/camera.ts'
import { startPageWorld } from '../service/test/support/pages/pages.ts'
import { openState, pageStates, scriptedStates, type ScriptedState } from '../service/test/support/pages/states.ts'
import { makeWalletKeys } from '../service/test/support/pages/wallets.ts'

const options = { lang: { type: 'string' }, readme: { type: 'boolean' } } as const
const { positionals, values } = readOptions({ allowPositionals: true, options })
const [folder = 'screenshots', ...names] = positionals
const { readme: isReadme = false, lang } = values
const wanted = lang?.split(',') ?? languages
const target = isReadme ? fileURLToPath(new URL('../docs/', import.meta.url)) : resolve(folder)
const widths = [390, 1280] as const
/** A4 without its margins, in CSS pixels. */
const paperWidth = 718
const schemes = ['light', 'dark'] as const

/** Loads the pictures that a visitor would see after scrolling. */
const loadPictures = `Promise.all(Array.from(document.images, (picture) => {
  picture.loading = 'eager'
  return picture.decode().catch(() => {})
})).then(() => 0)`

await mkdir(target, { recursive: true })
const profile = await mkdtemp(join(tmpdir(), 'touchstone-screenshots-'))
const walletKeys = await makeWalletKeys()
// Taps stay good while the pictures are taken.
const world = await startPageWorld({ env: { TAP_WINDOW_SECONDS: '3500', ...walletKeys.env } })
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: desktop,
  args: [...args, ...testCamera],
})
try {
  const known: ScriptedState[] = [...(await pageStates(world)), ...(await scriptedStates(world))]
  const states = isReadme
    ? []
    : known.filter(({ name }) => names.length === 0 || names.some((one) => name.startsWith(one)))
  const tapped = known.find(({ name }) => name === 'tapped-satchel')
  if (isReadme && tapped !== undefined) await takeOne(tapped)
  for (const state of states) for (const language of wanted) await takeAll(state, language)
} finally {
  await browser.close()
  await world.end()
  await rm(profile, { recursive: true, force: true })
}

/** Takes the pictures of a state in one language. */
async function takeAll(state: ScriptedState, language: string): Promise<void> {
  const page = await openPage(state, language)
  for (const width of state.isPrint === true ? [paperWidth] : widths) {
    await page.setViewportSize({ width, height: width < 600 ? 740 : 900 })
    for (const colorScheme of state.isPrint === true ? (['light'] as const) : schemes) {
      await page.emulateMedia({ colorScheme })
      await save(page, `${state.name}-${language}-${width}-${colorScheme}`, { fullPage: true })
    }
  }
  await page.close()
}

async function takeOne(state: ScriptedState): Promise<void> {
  const page = await openPage(state, 'en')
  await save(page, 'tapped-page', { fullPage: false })
}

async function openPage(state: ScriptedState, language: string): Promise<Page> {
  const page = await browser.newPage()
  await page.setViewportSize({ width: widths[0], height: 740 })
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await openState(page, state, language)
  return page
}

async function save(page: Page, name: string, { fullPage }: { readonly fullPage: boolean }): Promise<void> {
  const path = join(target, `${name}.png`)
  await page.evaluate(loadPictures)
  // An action may have scrolled the page, and the strip at its top with it.
  if (fullPage) await page.evaluate('scrollTo(0, 0)')
  await page.screenshot({ path, fullPage })
  console.log(path)
}
