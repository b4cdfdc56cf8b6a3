/**
 * The documentation: /docs, /docs/{page}, and each page as Markdown under /docs/{page}.md. All bytes are made at start-up from docs/*.md.
 * Commands name this instance instead of the addresses of `npm start`.
 */
import { deployments } from '@touchstone/verdict'
import { readFileSync } from 'node:fs'
import type { Hono } from 'hono'
import { methodRefused, openToAll, preflight } from '../../../http/responses.ts'
import { docsDocument, docsPath, titleOf } from '../../../pages/docs.ts'
import { etagOfText, matchesIfNoneMatch } from '../../../http/etag.ts'
import { isRead, readMethods, type Env } from '../request.ts'
import { pageAssets } from '../pages/assets.ts'

/** Public addresses, without a slash at the end. */
export type DocsSite = {
  readonly baseUrl: string
  /** Left out: that of `npm start`. */
  readonly gatewayUrl?: string | undefined
  readonly graphqlUrl?: string | undefined
  /** The registry's address. */
  readonly contract: string
  readonly pages: { readonly publicRpcUrl: string | null }
}

/** In the order of reading; `index` is the page at /docs. */
export const docsNames = [
  'index',
  'quick-start',
  'rest-api',
  'taps-and-tags',
  'passports',
  'graphql',
  'gateway',
  'agents',
  'error-codes',
  'trust-model',
  're-derive-it-yourself',
  'operators-handbook',
  'deployment',
  'incidents',
  'failover',
  'threat-model',
  'capacity',
] as const

/** Returns path and title of every page but the first, in the order of reading. */
export function docsPages(): readonly { readonly path: string; readonly title: string }[] {
  return docsNames.slice(1).map((name) => ({ path: docsPath(name), title: titleOf(sourceOf(name)) }))
}

/** Throws when a source is missing. */
export function docsRoutes(app: Hono<Env>, site: DocsSite): void {
  const documents = documentsOf(site)
  for (const pattern of ['/docs', '/docs/*']) {
    app.options(pattern, () => preflight(readMethods))
    app.all(pattern, (c) => {
      if (c.req.path === '/docs/') return new Response(null, { status: 308, headers: { Location: '/docs' } })
      const document = documents.get(c.req.path)
      if (document === undefined) return c.notFound()
      if (!isRead(c.req.method)) return methodRefused(readMethods)
      const { body, etag, headers } = document()
      if (matchesIfNoneMatch(c.req.header('if-none-match'), etag)) return new Response(null, { status: 304, headers })
      return new Response(body, { headers })
    })
  }
}

type Document = {
  readonly body: string
  readonly etag: string
  readonly headers: Readonly<Record<string, string>>
}

/** Returns every document by path. Each page is made at its first request. */
function documentsOf(site: DocsSite): ReadonlyMap<string, () => Document> {
  const sources = docsNames.map((name) => {
    const markdown = localised(sourceOf(name), site)
    return { file: name, name: name === 'index' ? '' : name, title: titleOf(markdown), markdown }
  })
  const assets = pageAssets().folder
  return new Map(
    sources.flatMap(({ file, name, title, markdown }) => {
      let page: Document | undefined
      const makePage = () => {
        const body = docsDocument({ markdown, page: { name, title }, pages: sources, assets })
        return document(body, { 'Content-Type': 'text/html; charset=utf-8', ...pageHeaders })
      }
      const source = document(withoutMarkers(markdown), { 'Content-Type': 'text/markdown; charset=utf-8' })
      return [
        [docsPath(name), () => (page ??= makePage())],
        [`/docs/${file}.md`, () => source],
      ] as const
    }),
  )
}

function sourceOf(name: string): string {
  return readFileSync(new URL(`../../../../../docs/${name}.md`, import.meta.url), 'utf8')
}

function document(body: string, own: Readonly<Record<string, string>>): Document {
  const etag = etagOfText(body)
  return { body, etag, headers: { ...openToAll, ...sharedHeaders, ...own, ETag: etag } }
}

/** Replaces the addresses in the sources by those of this instance. */
function localised(markdown: string, { baseUrl, gatewayUrl, graphqlUrl, contract, pages }: DocsSite): string {
  const isLocal = contract.toLowerCase() === deployments.local.contract.toLowerCase()
  const places: readonly (readonly [RegExp, string | undefined])[] = [
    [/--deployment local/g, isLocal ? undefined : `--contract ${contract}`],
    [/deployment: 'local'/g, isLocal ? undefined : `contract: '${contract}'`],
    [/http:\/\/127\.0\.0\.1:8080(?!\d)/g, baseUrl],
    [/http:\/\/127\.0\.0\.1:8081(?!\d)/g, gatewayUrl],
    [/http:\/\/127\.0\.0\.1:8082(?!\d)/g, graphqlUrl],
    [/ws:\/\/127\.0\.0\.1:8082(?!\d)/g, graphqlUrl?.replace(/^http/, 'ws')],
    [/http:\/\/127\.0\.0\.1:8545(?!\d)/g, pages.publicRpcUrl?.replace(/\/$/, '') ?? 'https://sepolia.base.org'],
    [/0x5FbDB2315678afecb367f032d93F642f64180aa3/g, contract],
  ]
  return places.reduce((text, [from, to]) => (to === undefined ? text : text.replace(from, () => to)), markdown)
}

/** Removes the comments that mark generated tables. */
function withoutMarkers(markdown: string): string {
  return markdown.replace(/^<!-- .* -->\n+/gm, '')
}

const sharedHeaders = { 'Cache-Control': 'public, max-age=3600', 'X-Content-Type-Options': 'nosniff' } as const

/** The policy allows no script, nothing of another origin and no frame around the page. */
const pageHeaders = {
  'Content-Language': 'en',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
} as const
