/**
 * The interactive reference of the API: Swagger UI over /openapi.json at /docs/api/try, its files below /docs/api/try/. Requests go to the
 * hosts of this instance and nowhere else.
 */
import { readFileSync } from 'node:fs'
import type { Hono } from 'hono'
import { type BrowserFiles, browserFiles, lazyDocument, staticDocument } from '../../../http/static-document.ts'
import { referenceDocument } from '../../../pages/docs/reference.ts'
import { documentRoute, type Env } from '../request.ts'
import type { DocsSite } from './sources.ts'

const path = '/docs/api/try'

export function referenceRoutes(app: Hono<Env>, site: DocsSite): void {
  const document = lazyDocument(() =>
    staticDocument('text/html; charset=utf-8', referenceDocument(`${path}/${files().version}`), headersOf(site)),
  )
  documentRoute(app, path, document)
  app.get(`${path}/*`, async (c) => {
    const file = await files().respond(c.req.path.slice(path.length + 1), {
      acceptEncoding: c.req.header('accept-encoding'),
      ifNoneMatch: c.req.header('if-none-match'),
    })
    if (file === null) return c.notFound()
    const { status, headers, body } = file
    return new Response(status === 304 || c.req.method === 'HEAD' ? null : new Uint8Array(body), { status, headers })
  })
}

let read: BrowserFiles | undefined

/** Reads the files once in a process, at the first request. */
function files(): BrowserFiles {
  return (read ??= browserFiles({
    'swagger-ui.js': readText(import.meta.resolve('swagger-ui-dist/package.json'), 'swagger-ui-bundle.js'),
    'swagger-ui.css': readText(import.meta.resolve('swagger-ui-dist/package.json'), 'swagger-ui.css'),
    'reference.js': readText(browser, 'reference.js'),
    'reference.css': readText(browser, 'reference.css'),
    'icon.svg': readText(browser, 'icon.svg'),
  }))
}

const browser = new URL('../../../pages/browser/', import.meta.url).href

function readText(folder: string, name: string): string {
  return readFileSync(new URL(name, folder), 'utf8')
}

/** Allows requests to the three hosts of this instance. The style sheet of Swagger UI holds small pictures as data. */
function headersOf({ baseUrl, gatewayUrl, graphqlUrl }: DocsSite): Record<string, string> {
  const hosts = [baseUrl, gatewayUrl, graphqlUrl].flatMap((url) => (url === undefined ? [] : [new URL(url).origin]))
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self' ${hosts.join(' ')}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'Content-Language': 'en',
    'Content-Security-Policy': policy.join('; '),
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Robots-Tag': 'noindex',
  }
}
