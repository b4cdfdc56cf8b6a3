/** The documentation as it is served and as it is stored. Every link leads somewhere, every code has its fix, every table is up to date. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { describe, it } from 'node:test'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { docsSources } from '../../../../scripts/docs.ts'
import { errorRows } from '../../../src/lib/error-codes.ts'
import { errors as gatewayErrors } from '../../../src/payments/errors.ts'
import { graphqlErrorCodes } from '../../../src/graphql/errors.ts'
import { settings } from '../../../src/app/config/schema.ts'
import type { Setting } from '../../../src/app/config/setting.ts'
import { docsRoutes } from '../../../src/hosts/verification/docs/routes.ts'
import { docsNames, docsPages } from '../../../src/hosts/verification/docs/sources.ts'
import { createRequestHelpers, type Env } from '../../../src/hosts/verification/request.ts'
import { readOpenApi, withUrls } from '../../../src/discovery/openapi.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { createLog } from '../../../src/lib/log.ts'
import { assetsPrefix, pageAssets } from '../../../src/hosts/verification/pages/assets.ts'
import { serve } from '../../support/http.ts'
import { audit, colourRules, kindsOf, noBrowser, startBrowser, visualRules } from '../../support/pages/browser.ts'
import { useOpened } from '../../support/opened.ts'

const contract = '0x00000000000000000000000000000000000000C0'
const app = new Hono<Env>()
const helpers = createRequestHelpers({ clientKey: () => 'reader', log: createLog(() => {}, 'silent') })
docsRoutes(app, helpers, {
  baseUrl: 'https://verify.example',
  gatewayUrl: 'https://pay.example',
  graphqlUrl: 'https://graphql.example',
  contract,
  pages: { publicRpcUrl: 'https://rpc.example/v1/?a=1&b=$2' },
})
app.get('/openapi.json', (c) => {
  const urls = { verification: new URL(c.req.url).origin, gateway: 'https://pay.example', graphql: 'https://g.example' }
  return new Response(withUrls(readOpenApi(), urls), { headers: { 'Content-Type': 'application/json' } })
})
app.get('/api/asset/5', (c) => c.json({ state: 'CLAIMED' }))
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
        /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';/,
      )
      const html = await page.text()
      assert.equal([...html.matchAll(/<h1/g)].length, 1)
      assert.doesNotMatch(html, /<script(?! type="module" src=")|style=|generated:|127\.0\.0\.1(?::|%3A)8|undefined/)
      const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
      assert.equal(new Set(ids).size, ids.length, 'each anchor stands once')
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
        if (hash.startsWith('#/')) assert.match(await found.text(), /id="reference"/, href)
        else if (hash !== '') assert.ok((await found.text()).includes(`id="${hash.slice(1)}"`), href)
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

describe('the README', () => {
  const root = new URL('../../../../', import.meta.url)
  const readme = readFileSync(new URL('README.md', root), 'utf8')

  it('links to files that exist, and shows a picture that loads fast', () => {
    const links = [...readme.matchAll(/(?:\]\(|src=")(?!https?:)([^)"#]+)/g)].map(([, path = '']) => path)
    assert.ok(links.length > 15)
    for (const path of links) assert.ok(existsSync(new URL(path, root)), path)
    assert.ok(statSync(new URL('docs/tapped-page.png', root)).size < 150_000)
  })

  it('starts the program that the test of its other commands starts, and fits a screen or two', () => {
    const [start, ...others] = [...readme.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, text]) => text)
    assert.deepEqual([start, others], ['npm ci && npm start\n', []])
    const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
      scripts: { start: string }
    }
    assert.match(scripts.start, / service\/bin\/touchstone dev$/)
    assert.ok(readme.split('\n').length < 110, 'what is longer belongs into docs/')
  })
})

describe('the search', () => {
  const found = async (query: string) =>
    [...(await bodyOf(`/docs/search?q=${encodeURIComponent(query)}`)).matchAll(/<li>\n<a href="([^"]+)">/g)].map(
      ([, path = '']) => path,
    )

  it('finds a setting, an error code, a type and a task, the best first', async () => {
    assert.equal((await found('TAP_WINDOW_SECONDS'))[0], '/docs/operators-handbook#tap_window_seconds')
    assert.equal((await found('CHAIN_UNAVAILABLE'))[0], '/docs/error-codes#chain_unavailable')
    assert.equal((await found('ProductConnection'))[0], '/docs/graphql-reference#productconnection')
    assert.ok(
      (await found('production line')).slice(0, 3).some((path) => path.startsWith('/docs/tags-on-a-production-line')),
    )
    assert.ok((await found('challange')).length > 0, 'a slip of the keyboard')
  })

  it('leads to anchors that exist', async () => {
    for (const query of ['key', 'tap', 'product', 'proof', 'chain'])
      for (const path of await found(query)) {
        const [page = '', anchor] = path.split('#')
        if (anchor !== undefined) assert.ok((await bodyOf(page)).includes(` id="${anchor}"`), path)
      }
  })

  it('shows a query as text, takes a long one and an empty one, and keeps nothing', async () => {
    const hostile = await app.request(`/docs/search?q=${encodeURIComponent('<script>alert(1)</script> "x')}`)
    assert.equal(hostile.headers.get('cache-control'), 'no-store')
    const html = await hostile.text()
    assert.ok(html.includes('value="&lt;script&gt;alert(1)&lt;/script&gt; &quot;x"') && !html.includes('<script>alert'))
    assert.equal((await app.request(`/docs/search?q=${'%F0%9F'.repeat(2_000)}`)).status, 200)
    assert.match(await bodyOf('/docs/search'), /Type a word/)
    assert.match(await bodyOf('/docs/search?q=qqqqqqqqq'), /Nothing matches/)
    for (const path of ['/docs/searching', '/docs/search/', '/docs/search/x'])
      assert.equal((await app.request(path)).status, 404)
  })

  it('counts as a read of the client', async () => {
    const limited = new Hono<Env>()
    const limiter = createRateLimiter({ limit: 1, windowSeconds: 60 })
    docsRoutes(limited, helpers, {
      baseUrl: 'https://verify.example',
      contract,
      pages: { publicRpcUrl: null },
      limiter,
    })
    assert.equal((await limited.request('/docs/search?q=tap')).status, 200)
    const { status, headers } = await limited.request('/docs/search?q=tap')
    assert.deepEqual([status, Number(headers.get('retry-after')) > 0], [429, true])
    assert.equal((await limited.request('/docs')).status, 200, 'pages have no limit')
  })
})

describe('the interactive reference', () => {
  it('runs scripts of this host only, and asks the hosts of this instance only', async () => {
    const { headers } = await app.request('/docs/api/try')
    assert.equal(
      headers.get('content-security-policy'),
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self' " +
        "https://verify.example https://pay.example https://graphql.example; base-uri 'none'; form-action 'none'; " +
        "frame-ancestors 'none'",
    )
  })

  it('serves its files compressed, for ever under their hash', async () => {
    const html = await bodyOf('/docs/api/try')
    for (const [, file = ''] of html.matchAll(/(?:src|href)="(\/docs\/api\/try\/[^"]+)"/g)) {
      const { status, headers } = await app.request(file, { headers: { 'Accept-Encoding': 'gzip' } })
      assert.deepEqual([status, headers.get('content-encoding')], [200, 'gzip'], file)
      assert.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable')
    }
    for (const path of ['/docs/api/try/', '/docs/api/try/x/none.js', '/docs/api/try/../../x'])
      assert.equal((await app.request(path)).status, 404, path)
    assert.equal((await app.request('/docs/api/try', { method: 'POST' })).status, 405)
  })
})

describe('the pages in Chromium', { skip: noBrowser }, () => {
  const server = useOpened(() => serve(getRequestListener((request) => app.fetch(request))))
  const browser = useOpened(() => startBrowser([server.url]))

  /** The dark pages differ by their colours only: one page for each kind of content. */
  const some = ['/docs', '/docs/quick-start', '/docs/graphql', '/docs/error-codes', '/docs/search?q=tap']
  for (const [colorScheme, looked] of [
    ['light', [...paths, '/docs/search?q=tap']],
    ['dark', some],
  ] as const) {
    it(`break no rule of axe-core and fit 320 px, ${colorScheme}`, async () => {
      await using page = await browser.open(server.url + '/docs', {
        colorScheme,
        viewport: { width: 320, height: 700 },
      })
      const known = new Set<string>()
      for (const path of looked) {
        await page.goto(server.url + path)
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320, path)
        const elements = await kindsOf(page)
        const isNew = elements.some((kind) => !known.has(kind))
        for (const kind of elements) known.add(kind)
        const rules = colorScheme === 'dark' ? { only: colourRules } : { without: isNew ? [] : visualRules }
        const { broken } = await audit(page, colorScheme, rules)
        assert.deepEqual(broken, [], path)
      }
    })
  }

  it('copy a command, and say so', async () => {
    await using page = await browser.open(`${server.url}/docs/quick-start`, {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const block = page.locator('.code', { hasText: 'curl' }).first()
    await block.getByRole('button', { name: 'Copy' }).click()
    await block.getByRole('button', { name: 'Copied' }).waitFor()
    assert.match(String(await page.evaluate('navigator.clipboard.readText()')), /^curl \S+\/api\/asset\/5$/)
    await page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))")
    await block.locator('[data-copy]').click()
    await block.getByRole('button', { name: 'Not copied' }).waitFor()
  })

  it('are complete without script: no button that does nothing, and a search that answers', async () => {
    await using page = await browser.open(`${server.url}/docs/quick-start`, { javaScriptEnabled: false })
    assert.equal(await page.locator('[data-copy]:visible').count(), 0)
    await page.getByRole('searchbox').fill('replay')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.locator('.hits li').first().waitFor()
  })

  it('try an operation against this instance, and break no rule of axe-core', async () => {
    await using page = await browser.open(`${server.url}/docs/api/try#/assets/readAsset`)
    const operation = page.locator('#operations-assets-readAsset')
    await operation.getByPlaceholder('tokenId').fill('5')
    await operation.getByRole('button', { name: 'Execute' }).click()
    await operation.locator('.live-responses-table', { hasText: 'CLAIMED' }).waitFor()
    assert.deepEqual((await audit(page, 'light')).broken, [])
  })
})

describe('the programs of MCP clients', () => {
  it('get settings that are JSON and name the endpoint of this instance', async () => {
    const agents = await bodyOf('/docs/agents.md')
    const blocks = [...agents.matchAll(/^```json\n([^]*?)^```/gm)].map(
      ([, json = '']) => JSON.parse(json) as Record<'mcpServers' | 'servers', Record<string, Record<string, unknown>>>,
    )
    const servers = blocks.map(({ mcpServers, servers }) => (mcpServers ?? servers)['touchstone'])
    assert.deepEqual(servers, [
      { type: 'http', url: 'https://verify.example/mcp' },
      { command: 'npx', args: ['-y', 'mcp-remote@0.15.1', 'https://verify.example/mcp'] },
      { url: 'https://verify.example/mcp' },
      { type: 'http', url: 'https://verify.example/mcp' },
    ])
  })
})

describe('what is made from the program', () => {
  for (const { name, found, wanted } of docsSources())
    it(`docs/${name} is up to date (npm run docs)`, () => assert.equal(found, wanted))

  it('the handbook has every setting', () => {
    for (const name of Object.keys(settings)) assert.ok(source('operators-handbook').includes(`\n| \`${name}\` `), name)
  })

  it('no page names a setting that does not exist', () => {
    const prefixes = /^(?:CHAIN|TAG|TAP|PAYMENT|RATE_LIMIT|ATTESTATION|FACILITATOR|GRAPHQL|INDEX|METRICS|PASSPORT)_/
    for (const name of docsNames.filter((one) => one !== 'graphql-reference'))
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
  INDEX_INCOMPLETE: true,
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
  for (const code of graphqlErrorCodes) {
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
      it(`docs/${name}.md: ${code.slice(0, 40).split('\n', 1)[0]} … is TypeScript`, () =>
        void stripTypeScriptTypes(code))
      for (const [, names = '', module = ''] of code.matchAll(/^import \{ (.+) \} from '([^']+)'/gm)) {
        it(`docs/${name}.md: ${module} exports ${names}`, async () => {
          const exported = (await import(module)) as Record<string, unknown>
          for (const one of names.split(', ')) assert.ok(one in exported, one)
        })
      }
    }
  }
})
