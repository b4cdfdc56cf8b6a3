/**
 * Headers and bodies that every host shares (spec §4.1, §7): JSON, open to every origin, errors never stored.
 */
import type { Budget } from './rate-limit.ts'

/** Response headers a page of another origin may read. */
export const exposedHeaders =
  'ETag, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, X-Request-Id'

export const openToAll = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': exposedHeaders,
} as const

/**
 * The window of spec §8, and beside it the fields of draft-ietf-httpapi-ratelimit-headers; nothing when the limit is switched off.
 */
export function budgetHeaders(budget: Budget | undefined): Record<string, string> {
  if (budget === undefined) return {}
  const { limit, remaining, resetSeconds, policy } = budget
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetSeconds),
    'RateLimit-Policy': policy.text,
    RateLimit: `${policy.name};r=${remaining};t=${resetSeconds}`,
  }
}

/** An error body as JSON: CORS open, not to be stored. */
export function failure(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Response {
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

/** 405: the route exists, the method does not; `Allow` names those that do (RFC 9110 §15.5.6). */
export function methodRefused(methods: string, headers: Readonly<Record<string, string>> = {}): Response {
  return failure(405, { error: `This route answers ${methods}.` }, { Allow: methods, ...headers })
}

/** The answer to a CORS preflight: 204 with the methods of the route. */
export function preflight(methods: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      ...openToAll,
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Allow-Headers': 'Content-Type, If-None-Match, X-Request-Id',
      'Access-Control-Max-Age': '86400',
    },
  })
}

/** Whether an `If-None-Match` header names this strong ETag (RFC 9110 §13.1.2: weak comparison, `*` matches). */
export function matchesETag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.trim() === '*' || ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
