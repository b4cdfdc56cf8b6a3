/** Headers and bodies that every host shares (spec §4.1, §7): JSON, CORS open to every origin, errors never stored. */
import type { ServerResponse } from 'node:http'
import { matchesIfNoneMatch } from './etag.ts'
import type { Quota } from './rate-limit/limiter.ts'

/** Response headers that a page of another origin may read. */
export const exposedHeaders =
  'ETag, Link, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, X-Request-Id'

export const openToAll = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': exposedHeaders,
} as const

/** Methods of a route that only reads. */
export const readMethods = 'GET, HEAD, OPTIONS'

/** Returns the fields of spec §8 and of draft-ietf-httpapi-ratelimit-headers; none when the limit is switched off. */
export function quotaHeaders(quota: Quota | undefined): Record<string, string> {
  if (quota === undefined) return {}
  const { limit, remaining, resetSeconds, policy } = quota
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetSeconds),
    'RateLimit-Policy': policy.text,
    RateLimit: `${policy.name};r=${remaining};t=${resetSeconds}`,
  }
}

/** Words an exceeded limit, also for clients that show no headers. */
export function rateLimitMessage({ resetSeconds }: Quota): string {
  return `Too many requests. Send the next one in ${resetSeconds} s.`
}

/** Returns the general error body (spec §7). */
export function errorResponse(status: number, error: string, headers: Readonly<Record<string, string>> = {}): Response {
  return uncachedJson(status, { error }, headers)
}

/**
 * Returns the entity that `shared` has the tag of, or 304 where the client holds it. The headers `shared` are those of both (RFC 9110
 * §15.4.5), `own` those of the 200.
 */
export function taggedResponse(
  ifNoneMatch: string | undefined,
  body: string | Uint8Array<ArrayBuffer>,
  shared: Readonly<Record<string, string>> & { readonly ETag: string },
  own: Readonly<Record<string, string>> & { readonly 'Content-Type': string },
): Response {
  return matchesIfNoneMatch(ifNoneMatch, shared.ETag)
    ? new Response(null, { status: 304, headers: shared })
    : new Response(body, { headers: { 'X-Content-Type-Options': 'nosniff', ...shared, ...own } })
}

/** Returns a response as JSON, with open CORS and no caching. */
export function uncachedJson(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...openToAll,
      ...headers,
    },
  })
}

/** Sends an error body as JSON over a Node response. It opens nothing to other origins. */
export function sendError(
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

/** Returns 405 with the methods of the route in `Allow` (RFC 9110 §15.5.6). */
export function methodRefused(methods: string, headers: Readonly<Record<string, string>> = {}): Response {
  return errorResponse(405, `This route answers ${methods}.`, { Allow: methods, ...headers })
}

/** Returns the answer to a CORS preflight: 204 with the methods and the request headers of the route. */
export function preflight(
  methods: string,
  headers = 'Accept, Content-Type, If-None-Match, X-Request-Id, X-Tap-Challenge',
): Response {
  return new Response(null, {
    status: 204,
    headers: {
      ...openToAll,
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Allow-Headers': headers,
      'Access-Control-Max-Age': '86400',
    },
  })
}

/** The version of Node that `/health` reports. */
export const runtime = `node/${process.versions.node.split('.')[0]}.x`

/** Returns the body of `/health` on hosts that report only that they run (spec §2.6). */
export function livenessBody(): string {
  return JSON.stringify({ status: 'ok', timestamp: new Date().toISOString(), runtime })
}
