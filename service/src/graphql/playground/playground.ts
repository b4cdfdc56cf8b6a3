/**
 * The playground of the GraphQL host (spec §4.9): GraphiQL at `/playground`, its files below `/playground/assets/`. Nothing is loaded from
 * another host, and a typed API key stays in the page's memory.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { type BrowserFiles, browserFiles } from '../../http/static-document.ts'
import { getHeader, parseRequestTarget } from '../../http/request.ts'
import { sendError } from '../../http/responses.ts'
import { playgroundExamples } from './examples.ts'

/** Answers `/playground` and the paths below it. All files are read now; throws when one is missing. */
export function playgroundRoutes(): RequestListener {
  const assets = (read ??= readAssets())
  const [before, between, after] = documentOf(`playground/assets/${assets.version}`).split(noncePlace)

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return sendError(response, 405, 'This route answers GET, HEAD.', { Allow: 'GET, HEAD' })
    const { path } = parseRequestTarget(request.url ?? '')
    if (path === '/playground') return sendPage(response)
    if (path === '/playground/') return void response.writeHead(308, { Location: '../playground' }).end()
    if (path.startsWith(assetsPrefix)) return sendAsset(path.slice(assetsPrefix.length), request, response)
    sendError(response, 404, nothingHere)
  }

  /** GraphiQL's dialogs add a style element; the nonce, new for every page, admits only that one. */
  function sendPage(response: ServerResponse): void {
    const nonce = randomBytes(16).toString('base64')
    const body = `${before}${nonce}${between}${nonce}${after}`
    const headers = { ...pageHeaders, 'Content-Security-Policy': contentSecurityPolicy(nonce) }
    response.writeHead(200, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body)
  }

  async function sendAsset(below: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const file = await assets.respond(below, {
      acceptEncoding: getHeader(request, 'accept-encoding'),
      ifNoneMatch: getHeader(request, 'if-none-match'),
    })
    if (file === null) return sendError(response, 404, nothingHere)
    response.writeHead(file.status, file.headers).end(file.body) // for HEAD Node leaves the body out
  }

  return (request, response) => void answer(request, response).catch(() => response.destroy())
}

const assetsPrefix = '/playground/assets/'
const nothingHere = 'There is nothing at this path. The playground is at /playground.'

const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
  'Cross-Origin-Opener-Policy': 'same-origin',
} as const

/**
 * Allows scripts, requests and sockets of this host only, so that a typed key cannot be sent elsewhere. GraphiQL's style sheet holds
 * its fonts and two small images as data. A picture of a product is never fetched.
 */
function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

const noncePlace = '{nonce}'

/** `assets` is the folder of the files, relative to the page. So a host behind a path prefix works too. All text is ours. */
function documentOf(assets: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>GraphQL playground · Touchstone</title>
<link rel="icon" type="image/svg+xml" href="${assets}/icon.svg">
<link rel="stylesheet" href="${assets}/graphiql.css">
<link rel="stylesheet" href="${assets}/page.css" nonce="${noncePlace}">
<script defer src="${assets}/react.js"></script>
<script defer src="${assets}/react-dom.js"></script>
<script defer src="${assets}/graphql-ws.js"></script>
<script defer src="${assets}/graphiql.js"></script>
<script type="module" id="page" src="${assets}/page.js" nonce="${noncePlace}"></script>
<script type="application/json" id="examples">${dataBlock(playgroundExamples)}</script>
</head>
<body>
<header>
<h1>Touchstone <span>GraphQL playground</span></h1>
<div class="key">
<label for="key">API key</label>
<input id="key" type="password" placeholder="ts_live_…" maxlength="200" autocomplete="off" autocapitalize="off" spellcheck="false" aria-describedby="hint">
<p id="said" role="status"></p>
</div>
<p id="hint">Make a key in another terminal: <code>touchstone key create my-app</code>, with <code>--scope read,write</code>
for mutations. It goes with every request as <code>Authorization: Bearer &lt;key&gt;</code> and with a subscription as its connection
parameter; a tab’s own header goes first. It stays in this page’s memory: a reload forgets it.</p>
<noscript><p>The playground needs JavaScript. The endpoint takes POST requests at <code>/graphql</code>.</p></noscript>
</header>
<main id="playground" aria-label="GraphiQL"></main>
</body>
</html>
`
}

/** JSON of a data block, which is not run. `<` is escaped, so that the text cannot end the element. */
function dataBlock(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}

/** Once per process. */
let read: BrowserFiles | undefined

/**
 * Reads GraphiQL and React as their packages publish them for browsers, graphql-ws, and our own page. GraphiQL's bundle is complete, so
 * the `overrides` of package.json keep its hundred dependencies out of `node_modules`; only React stands beside it.
 */
function readAssets(): BrowserFiles {
  const graphiql = import.meta.resolve('graphiql/package.json')
  return browserFiles({
    'react.js': readText(import.meta.resolve('react/package.json'), 'umd/react.production.min.js'),
    'react-dom.js': readText(import.meta.resolve('react-dom/package.json'), 'umd/react-dom.production.min.js'),
    'graphql-ws.js': readText(import.meta.resolve('graphql-ws/package.json'), 'umd/graphql-ws.min.js'),
    // The bundle carries no licence notice.
    'graphiql.js': `/*! GraphiQL\n${readText(graphiql, 'LICENSE')}*/\n${readText(graphiql, 'graphiql.min.js')}`,
    'graphiql.css': readText(graphiql, 'graphiql.min.css'),
    'page.css': readText(import.meta.url, 'page.css'),
    'page.js': readText(import.meta.url, 'page.js'),
    'fetcher.js': readText(import.meta.url, 'fetcher.js'),
    'storage.js': readText(import.meta.url, 'storage.js'),
    'icon.svg': readText(import.meta.url, '../../pages/browser/icon.svg'),
  })
}

/** Reads a file whose path is relative to the URL `from`. */
function readText(from: string, path: string): string {
  return readFileSync(new URL(path, from), 'utf8')
}
