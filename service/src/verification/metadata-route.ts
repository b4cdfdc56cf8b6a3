/**
 * GET {base_url}/api/metadata/{hash}: product metadata as it was hashed (spec §2.8 `metadataHash`), so that anyone can compute the hash again:
 * keccak256 of these bytes. The only route that gives out supplier text as it was written, as a file and never as a page.
 */
import type { Hex } from '@touchstone/verdict'
import type { Hono } from 'hono'
import type { RateLimiter } from '../http/rate-limit.ts'
import { budgetHeaders, failure, matchesETag, methodRefused, openToAll, preflight } from '../http/respond.ts'
import { limited, type Edge, type Env } from './edge.ts'

export type MetadataRoutes = {
  /** The texts of those hashes that are stored unaltered. */
  readonly metadata: { readonly getMany: (hashes: readonly Hex[]) => Promise<ReadonlyMap<Hex, string>> }
  readonly limiter?: RateLimiter | undefined
}

const prefix = '/api/metadata/'
const methods = 'GET, HEAD, OPTIONS'

export function metadataRoutes(app: Hono<Env>, edge: Edge, { metadata, limiter }: MetadataRoutes): void {
  app.options(`${prefix}*`, () => preflight(methods))
  app.all(`${prefix}*`, async (c) => {
    if (!c.req.path.startsWith(prefix)) return c.notFound() // the pattern also matches without the slash
    const budget = await edge.take(c, limiter)
    const headers = budgetHeaders(budget)
    if (!['GET', 'HEAD'].includes(c.req.method)) return methodRefused(methods, headers)
    if (budget?.allowed === false) return limited(budget)
    const text = c.req.path.slice(prefix.length)
    if (!/^0x[0-9a-fA-F]{64}$/.test(text)) return failure(400, { error: invalidHash }, headers)
    const hash = text.toLowerCase() as Hex
    try {
      const body = (await metadata.getMany([hash])).get(hash)
      if (body === undefined) return failure(404, { error: 'No metadata is stored under this hash.' }, headers)
      const etag = `"${hash}"`
      const shared = { ...headers, ...openToAll, ETag: etag, 'Cache-Control': 'public, max-age=86400, immutable' }
      if (matchesETag(c.req.header('if-none-match'), etag)) return new Response(null, { status: 304, headers: shared })
      return new Response(body, { headers: { ...shared, ...asFile } })
    } catch (error) {
      const { status, message } = edge.faultOf(error, c)
      return failure(status, { error: message }, headers)
    }
  })
}

const invalidHash = 'A metadata hash is 0x and 64 hex digits.'
/** A browser that is led here saves the text and runs nothing of it. */
const asFile = {
  'Content-Type': 'application/json',
  'Content-Disposition': 'attachment; filename="metadata.json"',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
} as const
