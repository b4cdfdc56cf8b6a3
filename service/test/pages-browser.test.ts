/** The pages in a real browser (spec §4.5, §4.6): what the script does, what works without it, what a person with any equipment can use. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { chromium, type BrowserContext, type Page } from 'playwright-core'
import { publishedAddresses } from '../src/chain/local-chain-accounts.ts'
import { pageStates, startPageWorld, type PageState, type PageWorld } from './_pages.ts'

const executablePath = '/usr/bin/chromium'
const skip =
  existsSync(executablePath) || process.env['REQUIRE_SERVICES'] === '1' ? false : `${executablePath} is missing`
const args = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

describe('the pages in Chromium', { skip }, () => {
  let world: PageWorld
  let states: PageState[]
  let browser: BrowserContext
  let profile: string
  const requested = new Set<string>()
  before(async () => {
    world = await startPageWorld()
    states = await pageStates(world)
    profile = await mkdtemp(join(tmpdir(), 'touchstone-pages-'))
    browser = await chromium.launchPersistentContext(profile, { executablePath, args })
    browser.on('request', (request) => requested.add(new URL(request.url()).origin))
  })
  after(async () => {
    await browser?.close()
    await world?.end()
    await rm(profile, { recursive: true, force: true })
  })

  /** Opens an address; whatever the page complains about fails the test. */
  async function open(url: string, options: { scripts?: boolean } = {}): Promise<Page & AsyncDisposable> {
    const page =
      options.scripts === false
        ? await (await browser.browser()?.newContext({ javaScriptEnabled: false }))?.newPage()
        : await browser.newPage()
    assert.ok(page)
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().includes('the server responded with a status of')) complaints.push(message.text())
    })
    await page.goto(url)
    return Object.assign(page, {
      async [Symbol.asyncDispose]() {
        await page.close()
        assert.deepEqual(complaints, [])
      },
    })
  }

  it('axe', { timeout: 280_000 }, async () => {
    await using page = await open(`${world.url}/`)
    const found: string[] = []
    for (const { name, url } of states) for (const [scheme, language] of [['light', 'en'], ['dark', 'en'], ['light', 'ar']] as const) {
      await page.emulateMedia({ colorScheme: scheme })
      await page.goto(`${url}${url.includes('?') ? '&' : '?'}lang=${language}`)
      await page.evaluate(axe)
      const violations = await page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => v.id + ' ' + v.nodes.map((n) => n.target.join(' ')+': '+n.failureSummary).slice(0, 3).join(' | ')))`) as string[]
      for (const violation of violations) found.push(`${name} ${scheme} ${language}: ${violation}`)
    }
    assert.deepEqual(found, [])
  })
})
