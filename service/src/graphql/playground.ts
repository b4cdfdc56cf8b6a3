/**
 * The playground of the GraphQL host (spec §4.9): GraphiQL at `/playground`, with everything that it loads below `/playground/assets/`.
 * Nothing comes from another host. The API key that a visitor types stays in the page's memory.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { encodingFor, playgroundAssets } from './playground-assets.ts'
import { playgroundPage } from './playground-page.ts'
import { matchesETag } from '../http/respond.ts'

/**
 * Answers `/playground` and everything below it; the host has matched the path. All bytes are read now, and compressed at the first
 * request that wants them. Throws when a file of the program is missing.
 */
export function playgroundRoutes(): (request: IncomingMessage, response: ServerResponse) => void {
  const assets = playgroundAssets()
  const page = playgroundPage(`playground/assets/${assets.version}`)

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return told(response, 405, 'This route answers GET, HEAD.', { Allow: 'GET, HEAD' })
    const [path = ''] = (request.url ?? '').split('?', 1)
    if (path === '/playground') return sendPage(response)
    if (path === '/playground/') return void response.writeHead(308, { Location: '../playground' }).end()
    if (path.startsWith(assetsPrefix)) return sendAsset(path.slice(assetsPrefix.length), request, response)
    told(response, 404, nothingHere)
  }

  /** GraphiQL's dialogs add a style element: the nonce, new for every page, lets that one in and no other. */
  function sendPage(response: ServerResponse): void {
    const nonce = randomBytes(16).toString('base64')
    const body = page(nonce)
    const headers = { ...pageHeaders, 'Content-Security-Policy': policyOf(nonce) }
    response.writeHead(200, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body)
  }

  async function sendAsset(below: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const slash = below.indexOf('/')
    const asset = assets.files.get(below.slice(slash + 1))
    if (asset === undefined) return told(response, 404, nothingHere)
    const encoding = encodingFor(request.headers['accept-encoding'])
    const etag = `"${assets.version}-${encoding}"`
    // A page of an older or newer instance names another version: it gets these files, but keeps them for no other visit.
    const isCurrent = below.slice(0, slash) === assets.version
    const headers = {
      ...assetHeaders,
      'Cache-Control': isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache',
      ETag: etag,
    }
    if (matchesETag(request.headers['if-none-match'], etag)) return void response.writeHead(304, headers).end()
    const body = await asset.bytes(encoding)
    response
      .writeHead(200, {
        ...headers,
        'Content-Type': asset.type,
        'Content-Length': body.length,
        ...(encoding !== 'identity' && { 'Content-Encoding': encoding }),
      })
      .end(body) // for HEAD Node leaves the body out
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

const assetHeaders = {
  Vary: 'Accept-Encoding',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; sandbox",
} as const

/**
 * Scripts of this host only, none inline, no eval; requests and sockets to this host only, so that a typed key can go nowhere else.
 * GraphiQL's style sheet holds its fonts and two small images as data. A picture of a product is never fetched.
 */
function policyOf(nonce: string): string {
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

function told(
  response: ServerResponse,
  status: number,
  error: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = JSON.stringify({ error })
  response
    .writeHead(status, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...headers,
    })
    .end(body)
}
