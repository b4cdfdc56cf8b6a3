/**
 * The documentation: /docs and /docs/{page}. Each page is Markdown under /docs/{page}.md. There are the search at /docs/search, and the
 * interactive reference of the API at /docs/api/try. Commands name this instance instead of the addresses of `npm start`.
 */
import type { Context, Hono } from 'hono'
import { preflight, readMethods } from '../../../http/responses.ts'
import { documentResponse, lazyDocument, staticDocument, type StaticDocument } from '../../../http/static-document.ts'
import { docsDocument, docsSearchDocument } from '../../../pages/docs/document.ts'
import { docsPath } from '../../../pages/docs/markdown.ts'
import { createDocsSearch } from '../../../pages/docs/search.ts'
import { pageAssets } from '../pages/assets.ts'
import { readRoute, type Env, type RequestHelpers, type RouteSite } from '../request.ts'
import { referenceRoutes } from './reference.ts'
import { docsSources, type DocsSite } from './sources.ts'

/** Throws when a source is missing. */
export function docsRoutes(app: Hono<Env>, helpers: RequestHelpers, site: DocsSite & RouteSite): void {
  const sources = docsSources(site)
  const frame = { pages: sources, assets: pageAssets().folder }
  const documents = new Map(
    sources.flatMap((page): (readonly [string, StaticDocument])[] => [
      [
        docsPath(page.name),
        lazyDocument(() =>
          staticDocument(htmlType, docsDocument({ ...frame, page, markdown: page.markdown }), pageHeaders),
        ),
      ],
      [`/docs/${page.file}.md`, staticDocument('text/markdown; charset=utf-8', page.markdown)],
    ]),
  )
  let search: ReturnType<typeof createDocsSearch> | undefined
  const found = (c: Context<Env>) => {
    const query = new URL(c.req.url).searchParams.get('q')?.trim() ?? ''
    const hits = query === '' ? null : (search ??= createDocsSearch(sources))(query)
    return docsSearchDocument({ ...frame, query, hits })
  }
  readRoute(
    app,
    helpers,
    { prefix: searchPath, limiter: site.limiter },
    (c, headers) =>
      new Response(found(c), {
        headers: { ...headers, ...pageHeaders, 'Content-Type': htmlType, 'Cache-Control': 'no-store' },
      }),
  )
  referenceRoutes(app, site)
  for (const pattern of ['/docs', '/docs/*']) {
    app.options(pattern, () => preflight(readMethods))
    app.all(pattern, (c) => {
      if (c.req.path === '/docs/') return new Response(null, { status: 308, headers: { Location: '/docs' } })
      const document = documents.get(c.req.path)
      if (document === undefined) return c.notFound()
      return documentResponse(document, c.req.method, c.req.header('if-none-match'))
    })
  }
}

const searchPath = '/docs/search'
const htmlType = 'text/html; charset=utf-8'

/** The policy allows the scripts and styles of this host, a search on it, and no frame around the page. */
const pageHeaders = {
  'Content-Language': 'en',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; " +
    "frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const
