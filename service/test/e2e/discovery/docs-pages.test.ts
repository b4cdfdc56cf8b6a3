/** The documentation as it is served and as it stands: every link leads somewhere, every code has its fix, every table is up to date. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { docsSources } from '../../../../scripts/docs.ts'
import { errorRows } from '../../../src/lib/error-codes.ts'
import { errors as gatewayErrors } from '../../../src/payments/errors.ts'
import { errorCodes as graphqlCodes } from '../../../src/graphql/errors.ts'
import { settings } from '../../../src/app/config/schema.ts'
import type { Setting } from '../../../src/app/config/setting.ts'
import { docsNames, docsPages, docsRoutes } from '../../../src/hosts/verification/routes/docs.ts'
import type { Env } from '../../../src/hosts/verification/request.ts'
import { assetsPrefix, pageAssets } from '../../../src/hosts/verification/pages/assets.ts'
import { noBrowser, startBrowser } from '../../support/pages/browser.ts'

const contract = '0x00000000000000000000000000000000000000C0'
const app = new Hono<Env>()
docsRoutes(app, {
  baseUrl: 'https://verify.example',
  gatewayUrl: 'https://pay.example',
  graphqlUrl: 'https://graphql.example',
  contract,
  pages: { publicRpcUrl: 'https://rpc.example/v1/?a=1&b=$2' },
})
app.get(`${assetsPrefix}*`, (c) => pageAssets().respond(c.req.path, undefined))

const source = (name: string) => readFileSync(new URL(`../../../../docs/${name}.md`, import.meta.url), 'utf8')
const paths = ['/docs', ...docsPages().map(({ path }) => path)]
const bodyOf = async (path: string) => (await app.request(path)).text()

describe('the pages of the documentation', () => {
  it('are all files of docs/', () => {
    const files = readdirSync(new URL('../../../../docs/', import.meta.url)).filter((name) => name.endsWith('.md'))
    assert.deepEqual(files.toSorted(), docsNames.map((name) => `${name}.md`).toSorted())
  })

  for (const path of paths) {
    it(`${path} is a page, with its Markdown beside it`, async () => {
      const page = await app.request(path)
      assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
      assert.match(
        page.headers.get('content-security-policy') ?? '',
        /^default-src 'none'; style-src 'self'; img-src 'self';/,
      )
      const html = await page.text()
      assert.equal([...html.matchAll(/<h1/g)].length, 1)
      assert.doesNotMatch(html, /<script|style=|generated:|127\.0\.0\.1:8|undefined/)
      const [, markdownPath = ''] = /<link rel="alternate" type="text\/markdown" href="([^"]+)"/.exec(html) ?? []
      const markdown = await app.request(markdownPath)
      assert.deepEqual([markdown.status, markdown.headers.get('content-type')], [200, 'text/markdown; charset=utf-8'])
      assert.match(await markdown.text(), /^# /)
    })

    it(`${path} links only to what exists`, async () => {
      const html = await bodyOf(path)
      for (const [, href = ''] of html.matchAll(/href="([^"]+)"/g)) {
        const { pathname, hash, origin } = new URL(href, `https://verify.example${path}`)
        if (origin !== 'https://verify.example' || pathname === '/') continue
        const found = await app.request(pathname)
        assert.equal(found.status, 200, href)
        if (hash !== '') assert.ok((await found.text()).includes(`id="${hash.slice(1)}"`), href)
      }
    })
  }

  it('name this instance', async () => {
    const [start, derive] = [await bodyOf('/docs/quick-start.md'), await bodyOf('/docs/re-derive-it-yourself.md')]
    assert.ok(start.includes('curl https://verify.example/api/asset/5\n'))
    assert.ok(start.includes('--gateway https://pay.example\n'))
    assert.ok((await bodyOf('/docs/graphql.md')).includes("url: 'wss://graphql.example/graphql'"))
    assert.ok(derive.includes(`--rpc https://rpc.example/v1/?a=1&b=$2 --contract ${contract}\n`))
    assert.ok(derive.includes(contract) && !derive.includes('0x5FbDB2315678afecb367f032d93F642f64180aa3'))
  })

  it('answer 304, 308, 404 and 405', async () => {
    const etag = (await app.request('/docs')).headers.get('etag') ?? ''
    const status = async (path: string, init?: RequestInit) => (await app.request(path, init)).status
    assert.equal(await status('/docs', { headers: { 'If-None-Match': etag } }), 304)
    assert.equal(await status('/docs/'), 308)
    for (const path of ['/docs/none', '/docs/../package.json', '/docs/quick-start/', '/docs/quick-start.md.md'])
      assert.equal(await status(path), 404, path)
    assert.equal(await status('/docs', { method: 'POST' }), 405)
    assert.equal(await status('/docs', { method: 'OPTIONS' }), 204)
  })
})

describe('the pages in Chromium', { skip: noBrowser }, () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  let server: Server
  let url: string
  let browser: Awaited<ReturnType<typeof startBrowser>>
  before(async () => {
    server = createServer(getRequestListener((request) => app.fetch(request)))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await startBrowser([url])
  })
  after(async () => {
    await browser?.close()
    server.close()
  })

  for (const colorScheme of ['light', 'dark'] as const) {
    it(`break no rule of axe-core and fit 320 px, ${colorScheme}`, async () => {
      await using page = await browser.open(url + '/docs', { colorScheme, viewport: { width: 320, height: 700 } })
      for (const path of paths) {
        await page.goto(url + path)
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320, path)
        await page.evaluate(axe)
        const broken = await page.evaluate(
          `axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].target.join(' ')))`,
        )
        assert.deepEqual(broken, [], path)
      }
    })
  }
})

describe('what is made from the program', () => {
  for (const { name, found, wanted } of docsSources())
    it(`docs/${name} is up to date (node scripts/docs.ts)`, () => assert.equal(found, wanted))

  it('the handbook has every setting', () => {
    for (const name of Object.keys(settings)) assert.ok(source('operators-handbook').includes(`\n| \`${name}\` `), name)
  })

  it('no page names a setting that does not exist', () => {
    const prefixes = /^(?:CHAIN|TAG|TAP|PAYMENT|RATE_LIMIT|ATTESTATION|FACILITATOR|GRAPHQL|INDEX|METRICS|PASSPORT)_/
    for (const name of docsNames)
      for (const [, word = ''] of source(name).matchAll(/`([A-Z][A-Z0-9_]+_[A-Z0-9_]+)(?:=\S+)?`/g))
        if (prefixes.test(word) && !(word in graphqlWords)) assert.ok(isSetting(word), `docs/${name}.md names ${word}`)
  })
})

/** A secret setting may be in a file, which NAME_FILE names. */
function isSetting(word: string): boolean {
  const named = Object.entries<Setting>(settings).find(([name]) => word === name || word === `${name}_FILE`)
  return named !== undefined && (named[0] === word || named[1].secret)
}

/** Codes that look like settings. */
const graphqlWords: Readonly<Record<string, true>> = {
  CHAIN_UNAVAILABLE: true,
  INDEX_BEHIND: true,
  INDEX_UNAVAILABLE: true,
  INDEX_MISMATCH: true,
}

describe('docs/error-codes.md', () => {
  const [keyless = '', , gateway = '', graphql = ''] = source('error-codes').split(/^## /m).slice(1)
  /** The cells of the row that begins with the code. */
  const row = (section: string, code: string) =>
    section
      .split('\n')
      .find((line) => line.startsWith(`| \`${code}\` `))
      ?.split('|')
      .map((cell) => cell.trim())
      .slice(1, -1) ?? []

  const restCodes = errorRows.filter(({ rest }) => rest !== undefined)
  for (const { name: code, rest } of restCodes) {
    it(`says what to do about ${code}`, () => {
      const [, status, meaning = '', fix = ''] = row(keyless, code)
      assert.equal(status, String(rest))
      assert.ok(meaning.length > 10 && fix.length > 10, `${meaning} ${fix}`)
    })
  }
  for (const [code, { status }] of Object.entries(gatewayErrors)) {
    it(`says what to do about ${code}`, () => {
      const [, found, , fix = ''] = row(gateway, code)
      assert.equal(found, String(status))
      assert.ok(fix.length > 10, fix)
    })
  }
  for (const code of graphqlCodes) {
    it(`says what to do about ${code} of GraphQL`, () => assert.ok((row(graphql, code)[2] ?? '').length > 10))
  }

  it('gives each code of a problem (RFC 9457) an address', async () => {
    const html = await bodyOf('/docs/error-codes')
    for (const code of [...restCodes.map(({ name }) => name), ...Object.keys(gatewayErrors)])
      assert.ok(html.includes(`<tr id="${code.toLowerCase()}">`), code)
  })
})

describe('the programs of the documentation', () => {
  for (const name of docsNames) {
    for (const [, code = ''] of source(name).matchAll(/^```ts\n([^]*?)^```/gm)) {
      for (const [, names = '', module = ''] of code.matchAll(/^import \{ (.+) \} from '([^']+)'/gm)) {
        it(`docs/${name}.md: ${module} exports ${names}`, async () => {
          const exported = (await import(module)) as Record<string, unknown>
          for (const one of names.split(', ')) assert.ok(one in exported, one)
        })
      }
    }
  }
})
