/**
 * `npm run screenshots -- [folder] [name …] [--lang en,ar]` writes a picture of every page to the folder. It opens the pages in Chromium,
 * in five languages, on a telephone and a desktop, light and dark. With names, only the pages whose name begins so. `npm run screenshots --
 * --readme` takes the one picture of the README, docs/tapped-page.png.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { languages } from '../service/src/pages/languages.ts'
import { args, executablePath } from '../service/test/support/pages/browser.ts'
import { pageStates, startPageWorld, type PageState } from '../service/test/support/pages/pages.ts'

const options = { lang: { type: 'string' }, readme: { type: 'boolean' } } as const
const { positionals, values } = parseArgs({ allowPositionals: true, options })
const [folder = 'screenshots', ...names] = positionals
const { readme: isReadme = false, lang } = values
const wanted = lang?.split(',') ?? languages
const target = isReadme ? fileURLToPath(new URL('../docs/', import.meta.url)) : resolve(folder)
const widths = [390, 1280] as const
const schemes = ['light', 'dark'] as const

await mkdir(target, { recursive: true })
const profile = await mkdtemp(join(tmpdir(), 'touchstone-screenshots-'))
const world = await startPageWorld()
const browser = await chromium.launchPersistentContext(profile, { executablePath, args })
try {
  const known = await pageStates(world)
  const states = isReadme
    ? []
    : known.filter(({ name }) => names.length === 0 || names.some((one) => name.startsWith(one)))
  const tapped = known.find(({ name }) => name === 'tapped-satchel')
  if (isReadme && tapped !== undefined)
    console.log(await take({ ...tapped, name: 'tapped-page' }, { width: 390, fullPage: false }))
  const pages = states.flatMap((state) => wanted.map((language) => inLanguage(state, language)))
  for (const state of pages)
    for (const width of widths)
      for (const scheme of schemes)
        console.log(await take({ ...state, name: `${state.name}-${width}-${scheme}` }, { width, scheme }))
} finally {
  await browser.close()
  await world.end()
  await rm(profile, { recursive: true, force: true })
}

function inLanguage({ name, url, status }: PageState, language: string): PageState {
  return { name: `${name}-${language}`, url: `${url}${url.includes('?') ? '&' : '?'}lang=${language}`, status }
}

async function take(
  { name, url }: PageState,
  {
    width,
    scheme = 'light',
    fullPage = true,
  }: { readonly width: number; readonly scheme?: 'light' | 'dark'; readonly fullPage?: boolean },
): Promise<string> {
  const path = join(target, `${name}.png`)
  const page = await browser.newPage()
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
  await page.setViewportSize({ width, height: width < 600 ? 740 : 900 })
  await page.goto(url, { waitUntil: 'networkidle' })
  await page.screenshot({ path, fullPage })
  await page.close()
  return path
}
