/**
 * GET {base_url}/api/asset/{tokenId}: the keyless verdict (spec §4.1).
 * Everything below `/api/asset/` is read from the raw path, so that no router's decoding decides what is a token id.
 */
import { parseTokenId } from '@touchstone/verdict'
import type { ProofBundles } from '../asset/proof-bundle.ts'
import type { Answer, Verdicts } from '../asset/verdicts.ts'
import { ServiceError } from '../errors.ts'
import type { Hono } from 'hono'
import type { Budget, RateLimiter } from '../http/rate-limit.ts'
import {
  budgetHeaders,
  exposedHeaders,
  failure,
  matchesETag,
  methodRefused,
  openToAll,
  preflight,
} from '../http/respond.ts'
import { tooMany, type Edge, type Env } from './edge.ts'

export const assetPrefix = '/api/asset/'

export type AssetRoutes = {
  readonly verdicts: Verdicts
  /** Left out: the proof route does not exist (it is opt-in). */
  readonly proofs?: ProofBundles | undefined
  readonly limiter?: RateLimiter | undefined
}

export function assetRoutes(app: Hono<Env>, edge: Edge, { verdicts, proofs, limiter }: AssetRoutes): void {
  const methods = 'GET, HEAD, OPTIONS'
  app.options(`${assetPrefix}*`, () => preflight(methods))
  app.all(`${assetPrefix}*`, async (c) => {
    if (!c.req.path.startsWith(assetPrefix)) return c.notFound() // the pattern also matches without the slash
    const budget = await edge.take(c, limiter)
    if (!['GET', 'HEAD'].includes(c.req.method)) return methodRefused(methods, budgetHeaders(budget))
    try {
      return await answer(c.req.path, c.req.header('if-none-match'), budget)
    } catch (error) {
      return assetFailure(edge.faultOf(error, c), budget)
    }
  })

  async function answer(
    rawPath: string,
    ifNoneMatch: string | undefined,
    budget: Budget | undefined,
  ): Promise<Response> {
    if (budget?.allowed === false) throw new ServiceError('RATE_LIMITED', tooMany(budget))
    const path = parseAssetPath(rawPath)
    if (path.kind === 'invalid') throw new ServiceError('INVALID_TOKEN_ID', invalidTokenId)
    if (path.kind === 'verdict') return assetResponse(verdicts, path.tokenId, ifNoneMatch, budget)
    if (path.kind === 'proof' && proofs !== undefined) return proofResponse(proofs, path.tokenId, budget)
    return failure(
      404,
      { error: 'There is nothing at this path. A verdict is at /api/asset/{tokenId}.' },
      budgetHeaders(budget),
    )
  }
}

/** What every route says to a text that is no token id. */
export const invalidTokenId = 'The token id must be a decimal integer from 0 to 2^256-1, in digits only, such as 42.'

/** What stands behind the prefix: a token id, its proof, neither, or no legal id at all. */
type AssetPath =
  | { readonly kind: 'verdict' | 'proof'; readonly tokenId: bigint }
  | { readonly kind: 'not-found' | 'invalid' }

/** Reads the raw, undecoded path. The segment is percent-decoded once; leading zeros are legal. */
function parseAssetPath(path: string): AssetPath {
  const [segment = '', ...rest] = path.slice(assetPrefix.length).split('/', 4)
  const tokenId = parseTokenId(decodeOnce(segment))
  if (tokenId === null) return { kind: 'invalid' }
  if (rest.length === 0) return { kind: 'verdict', tokenId }
  return rest.length === 1 && rest[0] === 'proof' ? { kind: 'proof', tokenId } : { kind: 'not-found' }
}

/** The verdict as a response: 304 when the caller holds these very bytes, 404 when the token does not exist. */
async function assetResponse(
  verdicts: Verdicts,
  tokenId: bigint,
  ifNoneMatch: string | undefined,
  budget: Budget | undefined,
): Promise<Response> {
  const answer = await verdicts.answer(tokenId)
  if (answer === null) throw noAsset()
  const same = matchesETag(ifNoneMatch, answer.etag)
  const headers = same ? sharedHeaders(answer, budget) : verdictHeaders(answer, budget)
  return new Response(same ? null : answer.body, { status: same ? 304 : 200, headers: pairs(headers) })
}

/** The verdict with its storage proof, for whoever wants to check it without any provider (`/proof` behind the id; opt-in). */
async function proofResponse(proofs: ProofBundles, tokenId: bigint, budget: Budget | undefined): Promise<Response> {
  const bundle = await proofs(tokenId)
  if (bundle === null) throw noAsset()
  return new Response(JSON.stringify(bundle), {
    headers: {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...openToAll,
      ...budgetHeaders(budget),
    },
  })
}

/** The headers of a 200, as the flat list that `writeHead` takes. */
export function verdictHeaders(answer: Answer, budget: Budget | undefined): string[] {
  const headers = sharedHeaders(answer, budget)
  headers.push('Content-Type', 'application/json', 'Content-Length', String(answer.byteLength))
  return headers
}

/** The headers that a 200 and its 304 have in common (RFC 9110 §15.4.5). A flag must show within seconds: one second of caching. */
export function sharedHeaders({ etag }: Answer, budget: Budget | undefined): string[] {
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
  if (budget === undefined) return headers
  const { limit, policy } = budget
  const [remaining, reset] = [String(budget.remaining), String(budget.resetSeconds)]
  headers.push(
    'X-RateLimit-Limit',
    String(limit),
    'X-RateLimit-Remaining',
    remaining,
    'X-RateLimit-Reset',
    reset,
    'RateLimit-Policy',
    policy.text,
    'RateLimit',
    `${policy.name};r=${remaining};t=${reset}`,
  )
  return headers
}

/** The fixed error body of the keyless read (spec §2.4). */
function assetFailure(error: ServiceError, budget: Budget | undefined): Response {
  const headers = {
    ...budgetHeaders(budget),
    ...(error.code === 'RATE_LIMITED' && budget && { 'Retry-After': String(budget.resetSeconds) }),
  }
  return failure(error.status, { version: '1', error: { code: error.code, message: error.message } }, headers)
}

function noAsset(): ServiceError {
  return new ServiceError('ASSET_NOT_FOUND', 'No asset has this token id.')
}

/** A path segment, percent-decoded once; broken encoding stays as it is, and is then no legal value. */
export function decodeOnce(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function pairs(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : []))
}
