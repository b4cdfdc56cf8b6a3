/**
 * GET {base_url}/api/asset/{tokenId}: the keyless verdict (spec §4.1), and its storage proof below it (opt-in).
 * Paths are parsed from the raw path, so that no router's decoding decides what is a token id.
 */
import type { Hono } from 'hono'
import type { ProofBundles } from '../../../assets/proof-bundle.ts'
import type { VerdictAnswer, Verdicts } from '../../../assets/verdicts.ts'
import { matchesIfNoneMatch } from '../../../http/etag.ts'
import type { Rejection } from '../../../http/listener.ts'
import type { Quota } from '../../../http/rate-limit/limiter.ts'
import { exposedHeaders, errorResponse, uncachedJson } from '../../../http/responses.ts'
import { ServiceError } from '../../../lib/errors.ts'
import {
  codedFailure,
  invalidTokenId,
  parseTokenIdSegment,
  readRoute,
  type Env,
  type Headers,
  type RequestHelpers,
  type RouteSite,
} from '../request.ts'

export const assetPrefix = '/api/asset/'

export type AssetRoutes = RouteSite & {
  readonly verdicts: Verdicts
  /** Left out: the proof route does not exist. */
  readonly proofs?: ProofBundles | undefined
}

export function assetRoutes(app: Hono<Env>, helpers: RequestHelpers, { verdicts, proofs, limiter }: AssetRoutes): void {
  readRoute(app, helpers, { prefix: assetPrefix, limiter, reject: codedFailure }, async (c, headers, quota) => {
    const path = c.req.path.slice(assetPrefix.length)
    const segment = path.replace(/\/proof$/, '')
    const tokenId = parseTokenIdSegment(segment)
    if (tokenId === null) throw new ServiceError('INVALID_TOKEN_ID', invalidTokenId)
    if (segment === path) return assetResponse(verdicts, tokenId, c.req.header('if-none-match'), quota)
    if (proofs !== undefined) return proofResponse(proofs, tokenId, headers)
    return errorResponse(404, nothingHere, headers)
  })
}

/**
 * Words the rejection of a segment that HTTP itself forbids. It has bytes above ASCII, or more than the 16 kB of a request. It is known by
 * its first bytes (spec §4.1).
 */
export function brokenSegment(start: string): Rejection | undefined {
  const [, segment] = /^[A-Z]+ \/api\/asset\/([^ ?/\r\n]*)/.exec(start) ?? []
  if (segment === undefined || parseTokenIdSegment(segment) !== null) return undefined
  return ['400 Bad Request', { version: '1', error: { code: 'INVALID_TOKEN_ID', message: invalidTokenId } }]
}

/** Error text of a path without a route. */
export const nothingHere = 'There is nothing at this path. A verdict is at /api/asset/{tokenId}.'

/** Returns the verdict: 304 when the caller holds the same bytes, 404 when the token does not exist. */
async function assetResponse(
  verdicts: Verdicts,
  tokenId: bigint,
  ifNoneMatch: string | undefined,
  quota: Quota | undefined,
): Promise<Response> {
  const answer = await verdicts.answer(tokenId)
  if (answer === null) throw noAsset()
  const isSame = matchesIfNoneMatch(ifNoneMatch, answer.etag)
  const headers = isSame ? sharedHeaders(answer, quota) : verdictHeaders(answer, quota)
  return new Response(isSame ? null : answer.body, { status: isSame ? 304 : 200, headers: pairs(headers) })
}

/** Returns the verdict with its storage proof, which can be checked without any provider. */
async function proofResponse(proofs: ProofBundles, tokenId: bigint, headers: Headers): Promise<Response> {
  const bundle = await proofs(tokenId)
  if (bundle === null) throw noAsset()
  return uncachedJson(200, bundle, headers)
}

/** Lists the headers of a 200 in the flat form of `writeHead`. */
export function verdictHeaders(answer: VerdictAnswer, quota: Quota | undefined): string[] {
  const headers = sharedHeaders(answer, quota)
  headers.push('Content-Type', 'application/json', 'Content-Length', String(answer.byteLength))
  return headers
}

/** Lists the headers that a 200 shares with its 304 (RFC 9110 §15.4.5). A flag must show within seconds: one second of caching. */
export function sharedHeaders({ etag }: VerdictAnswer, quota: Quota | undefined): string[] {
  const headers = [
    'ETag',
    etag,
    'Cache-Control',
    'public, max-age=1, stale-while-revalidate=1',
    'Access-Control-Allow-Origin',
    '*',
    'Access-Control-Expose-Headers',
    exposedHeaders,
    'X-Content-Type-Options',
    'nosniff',
  ]
  if (quota === undefined) return headers
  const { limit, policy } = quota
  const [remaining, reset] = [String(quota.remaining), String(quota.resetSeconds)]
  headers.push('X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', remaining, 'X-RateLimit-Reset', reset)
  headers.push('RateLimit-Policy', policy.text, 'RateLimit', `${policy.name};r=${remaining};t=${reset}`)
  return headers
}

function noAsset(): ServiceError {
  return new ServiceError('ASSET_NOT_FOUND', 'No asset has this token id.')
}

function pairs(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : []))
}
