/**
 * GET {base_url}/api/metadata/{hash}: product metadata as it was hashed (spec §2.8 `metadataHash`), for recomputation: keccak256 of these
 * bytes. This route and `/api/restricted` alone send supplier text as it was written, as a file and never as a page.
 */
import type { Hex } from '@touchstone/verdict'
import type { Hono } from 'hono'
import { errorResponse, openToAll, taggedResponse } from '../../../http/responses.ts'
import { readRoute, type Env, type RequestHelpers, type RouteSite } from '../request.ts'

export type MetadataRoutes = RouteSite & {
  /** Returns the texts of the hashes that are stored unaltered. */
  readonly metadata: { readonly getMany: (hashes: readonly Hex[]) => Promise<ReadonlyMap<Hex, string>> }
}

const prefix = '/api/metadata/'

export function metadataRoutes(app: Hono<Env>, helpers: RequestHelpers, { metadata, limiter }: MetadataRoutes): void {
  readRoute(app, helpers, { prefix, limiter }, async (c, headers) => {
    const text = c.req.path.slice(prefix.length)
    if (!/^0x[0-9a-fA-F]{64}$/.test(text)) return errorResponse(400, invalidHash, headers)
    const hash = text.toLowerCase() as Hex
    const body = (await metadata.getMany([hash])).get(hash)
    if (body === undefined) return errorResponse(404, 'No metadata is stored under this hash.', headers)
    // Caches keep the answer for a day, and the quota is that of one client.
    const shared = { ...openToAll, ETag: `"${hash}"`, 'Cache-Control': 'public, max-age=86400, immutable' }
    return taggedResponse(c.req.header('if-none-match'), body, shared, fileHeaders)
  })
}

const invalidHash = 'A metadata hash is 0x and 64 hex digits.'
/** Headers with which a browser saves a supplier's text as a file and runs none of it. */
export const fileHeaders = {
  'Content-Type': 'application/json',
  'Content-Disposition': 'attachment; filename="metadata.json"',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
} as const
