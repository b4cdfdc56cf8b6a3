/** Runs a script in Debian's Chromium, on a page that has the packed client library by an import map. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { serve } from './_server.ts'

const executablePath = '/usr/bin/chromium'

const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking']
const args = [...flags, '--disable-component-update', '--disable-sync']

const imports = {
  '@touchstone/verdict': '/@touchstone/verdict/lib/index.js',
  '@noble/hashes/': '/@noble/hashes/',
  '@noble/curves/': '/@noble/curves/',
}
const page = `<!doctype html><title>test</title><script type="importmap">${JSON.stringify({ imports })}</script>`

/** Why there is no browser, or `false`. Where the services are required its absence is a failure. */
export const noBrowser: string | false =
  existsSync(executablePath) || process.env['REQUIRE_SERVICES'] === '1' ? false : `${executablePath} is missing`

/** Evaluates an expression on a page over loopback; `modules` is the node_modules directory to serve. */
export async function inBrowser(modules: string, expression: string): Promise<unknown> {
  const profile = await mkdtemp(join(tmpdir(), 'verdict-browser-'))
  await using server = await serve((request, response) => {
    const path = new URL(request.url ?? '/', 'http://loopback').pathname
    if (path === '/') return response.writeHead(200, { 'content-type': 'text/html' }).end(page)
    const file = readFile(join(modules, path))
    return void file.then(
      (bytes) => response.writeHead(200, { 'content-type': 'text/javascript' }).end(bytes),
      () => response.writeHead(404).end(),
    )
  })
  const browser = await chromium.launchPersistentContext(profile, { executablePath, args })
  try {
    const tab = await browser.newPage()
    const problems: string[] = []
    tab.on('pageerror', (error) => problems.push(error.message))
    await tab.goto(server.url)
    const result: unknown = await tab.evaluate(expression)
    assert.deepEqual(problems, [])
    return result
  } finally {
    await browser.close()
    await rm(profile, { recursive: true, force: true })
  }
}
