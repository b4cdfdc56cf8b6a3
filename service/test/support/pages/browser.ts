/** Debian's Chromium over the pages of a world. A test fails on every complaint of a page that it opened. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium, type BrowserContextOptions, type Page } from 'playwright-core'
import { testCamera } from './camera.ts'
import { eventually } from '../wait.ts'
import type { PageWorld } from './pages.ts'

/** The browser as people have it, for pictures and measurements. */
export const desktop = '/usr/bin/chromium'
/** The same engine without windows and profiles, in which a page costs half as much. Tests prefer it. */
const shell = '/usr/lib/chromium/chromium-headless-shell'
const executablePath = existsSync(shell) ? shell : desktop
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking']
/** Playwright's list, which this one replaces, and the pages of the address bar: they cost a renderer for each context. */
const disabledFeatures = [
  'AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter',
  'PaintHolding,ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,OptimizationHints,NetworkTimeServiceQuerying,AimEnabled',
  'PreconnectToSearch,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup',
]
export const args = [
  ...flags,
  '--disable-component-update',
  '--disable-sync',
  `--disable-features=${disabledFeatures.join()}`,
]

/** The reason to skip, or `false`. A missing browser is a failure where the services are required. */
export const noBrowser: string | false =
  existsSync(executablePath) || process.env['REQUIRE_SERVICES'] === '1' ? false : `${executablePath} is missing`

/** Gives requests of a page and of its library twelve times as long. A busy machine may need it. */
const patience = `{
  const { setTimeout } = window
  window.setTimeout = (run, ms, ...values) => setTimeout(run, ms >= 10_000 ? ms * 12 : ms, ...values)
}`

export type Opened = Page & AsyncDisposable

export type PageBrowser = Awaited<ReturnType<typeof startPageBrowser>>

export function startPageBrowser(world: PageWorld) {
  return startBrowser([world.url, world.limitedUrl, world.bareUrl, world.downUrl, world.chainUrl], testCamera)
}

/** `urls`: the hosts that pages may ask; `more`: further arguments of the browser. */
export async function startBrowser(urls: readonly string[], more: readonly string[] = []) {
  const browser = await chromium.launch({ executablePath, args: [...args, ...more] })
  const mine = urls.map((url) => new URL(url).origin)

  /** `allowed`: complaints that the test expects. A request to any other host is one that it does not. */
  async function open(url: string, options: BrowserContextOptions & { allowed?: RegExp } = {}): Promise<Opened> {
    const context = await browser.newContext(options)
    context.setDefaultTimeout(240_000) // as long as a busy machine may take
    await context.addInitScript(patience)
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`))
    page.on('console', (message) => {
      const text = message.text()
      const isStatus = text.includes('the server responded with a status of') // the page itself may be a 404
      if (message.type() === 'error' && !isStatus && options.allowed?.test(text) !== true) complaints.push(text)
    })
    page.on('request', (request) => {
      const { origin, protocol } = new URL(request.url())
      if (protocol !== 'blob:' && protocol !== 'data:' && !mine.includes(origin)) complaints.push(`asked ${origin}`)
    })
    await page.goto(url)
    return Object.assign(page, {
      async [Symbol.asyncDispose]() {
        await context.close()
        assert.deepEqual(complaints, [])
      },
    })
  }

  const close = () => browser.close()
  return { open, close, [Symbol.asyncDispose]: close }
}

/** Places of the page's one heading of the first level; of a verdict only the words that are shown. */
const heading = 'h1 .word:visible, h1:not(:has(.word))'

export async function headingOf(page: Page): Promise<string> {
  assert.equal(await page.locator('h1').count(), 1)
  const shown = await page.locator(heading).allInnerTexts()
  assert.equal(shown.length, 1)
  return shown[0]?.trim() ?? ''
}

/** Waits until the heading is this one. Before its style sheet is there, a page shows the words of all situations. */
export async function shows(page: Page, text: string): Promise<void> {
  const shown = page.locator(heading)
  const wanted = shown.filter({ hasText: new RegExp(`^\\s*${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}\\s*$`) })
  const isShown = await eventually(async () => (await shown.count()) === 1 && (await wanted.count()) === 1)
  assert.ok(isShown, `the heading is not ${text}, but one of ${(await page.locator('h1').allTextContents()).join(' ')}`)
}

/** The source of axe-core, which runs in a page. */
export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export type Audit = { readonly broken: readonly string[]; readonly held: number }
export type Scheme = 'light' | 'dark'

/** Rules whose outcome depends on colours. */
export const colourRules: readonly string[] = ['color-contrast', 'link-in-text-block']
/** Rules that compare elements with what is around them, which takes most of the time of an audit. */
export const visualRules: readonly string[] = [...colourRules, 'target-size']

/** Rules that alone are looked at, or that are not. */
export type Rules = { readonly only?: readonly string[]; readonly without?: typeof visualRules }

/** Returns the rules that were broken, and how many held. */
export async function audit(page: Page, colorScheme: Scheme, { only, without = [] }: Rules = {}): Promise<Audit> {
  await page.emulateMedia({ colorScheme })
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe)
  const options = {
    resultTypes: ['violations'],
    preload: false,
    ...(only === undefined
      ? { rules: Object.fromEntries(visualRules.map((id) => [id, { enabled: !without.includes(id) }])) }
      : { runOnly: only }),
  }
  return page.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(({ violations, passes }) => ({
    held: passes.length,
    broken: violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target.join(' ')).slice(0, 3).join(', ')),
  }))`)
}

/** Returns the kinds of elements on a page: name, class, role, and the tone that they stand in. */
export function kindsOf(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...new Set(Array.from(document.querySelectorAll('[class], [role], main *'),
    (element) => [element.localName, element.className, element.role, element.closest('[class*=tone-]')?.className].join('.')))]`)
}
