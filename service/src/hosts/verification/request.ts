/** Request helpers of the verification host: raw target, headers, quota, faults, read routes and documents. */
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { parseTokenId } from '@touchstone/verdict'
import type { Context, Hono } from 'hono'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { decodePercent } from '../../lib/bytes.ts'
import { type Body, type BodyLimits, readWebBody } from '../../http/body.ts'
import type { ClientCountry } from '../../http/client-country.ts'
import type { ClientKey } from '../../http/client-ip.ts'
import type { Quota, RateLimiter } from '../../http/rate-limit/limiter.ts'
import { parseRequestTarget, requestIdOf } from '../../http/request.ts'
import {
  quotaHeaders,
  errorResponse,
  methodRefused,
  openToAll,
  preflight,
  rateLimitMessage,
  readMethods,
  uncachedJson,
} from '../../http/responses.ts'
import { documentResponse, type StaticDocument } from '../../http/static-document.ts'
import {
  databaseUnavailable,
  isDatabaseUnavailable,
  reasonOf,
  retryAfterSeconds,
  ServiceError,
} from '../../lib/errors.ts'
import { errorCodes } from '../../lib/error-codes.ts'
import type { Log } from '../../lib/log.ts'

export type Env = { Bindings: Partial<HttpBindings> }
export type Headers = Readonly<Record<string, string>>

export type RequestHelpers = ReturnType<typeof createRequestHelpers>

/** The quotas and the clock that routes take from their host. */
export type RouteSite = {
  /** Counts keyless reads. Left out: no limit. */
  readonly limiter?: RateLimiter | undefined
  /** Counts taps, and what reads the chain anew. Left out: no limit. */
  readonly tapLimiter?: RateLimiter | undefined
  /** Milliseconds since 1970. Left out: the machine's clock. */
  readonly now?: () => number
}

/** The clients and the log of a host. */
export type ClientSite = {
  readonly clientKey: ClientKey
  /** Left out: no tap has a country. */
  readonly clientCountry?: ClientCountry | undefined
  readonly log: Log
}

export function createRequestHelpers({ clientKey, clientCountry, log }: ClientSite) {
  const clientOf = (c: Context<Env>) =>
    clientKey(c.env?.incoming?.socket.remoteAddress, headerReader(c)('x-forwarded-for'))
  return {
    /** Consumes one request of the client's quota; undefined where there is no limit. It never fails. */
    consume: (c: Context<Env>, limiter: RateLimiter | undefined) => limiter?.take(clientOf(c)),
    /** Consumes a request for each further item of a list. The quota is rejected, and nothing more is consumed, where they do not all fit. */
    consumeMore: async (
      c: Context<Env>,
      limiter: RateLimiter | undefined,
      { quota, more }: { readonly quota: Quota | undefined; readonly more: number },
    ) => limiter && quota && (more === 0 ? quota : limiter.take(clientOf(c), more)),
    /** Returns the name of the client in limits: its address, or its network. */
    clientOf,
    /** Returns the client's country where a trusted proxy names it. */
    countryOf: (c: Context<Env>) => clientCountry?.(c.env?.incoming?.socket.remoteAddress, headerReader(c)),
    /**
     * Returns a ServiceError unchanged, and makes anything else INTERNAL. Where the database is the cause it is DATABASE_UNAVAILABLE (503).
     * The log gets the reason under the id of the request.
     */
    faultOf: (fault: unknown, c?: Context<Env>): ServiceError => {
      const outgoing = c?.env?.outgoing as ServerResponse | undefined
      const requestId = outgoing && requestIdOf(outgoing)
      const error = isDatabaseUnavailable(fault) ? databaseUnavailable(fault) : fault
      if (error instanceof ServiceError) {
        if (error.status === 503) outgoing?.setHeader('Retry-After', retryAfterSeconds)
        if (error.status >= 500)
          log[error.code === 'INTERNAL' ? 'error' : 'warn']('request failed', {
            code: error.code,
            reason: reasonOf(error.cause ?? error),
            requestId,
          })
        return error
      }
      log.error('request failed', { code: 'INTERNAL', reason: reasonOf(error), requestId })
      return new ServiceError('INTERNAL', 'The request failed unexpectedly. Try it again.', { cause: error })
    },
  }
}

/** Reads the body. Where a part of it may be left unread, the answer ends the connection. Throws BODY_TOO_SLOW. */
export async function readBodyOf(c: Context<Env>, limits: BodyLimits): Promise<Body> {
  const body = await readWebBody(c.req.raw, limits)
  const outgoing = c.env?.outgoing as ServerResponse | undefined
  if (!body.ok && (body.because === 'too-large' || body.because === 'too-slow'))
    outgoing?.setHeader('Connection', 'close')
  if (!body.ok && body.because === 'too-slow') throw new ServiceError('BODY_TOO_SLOW', errorCodes.BODY_TOO_SLOW.meaning)
  return body
}

export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

/**
 * Adds a read route: preflight, quota and methods first, then `answer`. A prefix that ends with a slash has all paths below it, any other
 * is an exact path. `reject` words exceptions and an exceeded limit, by default with the general error body (spec §7).
 */
export function readRoute(
  app: Hono<Env>,
  { consume, faultOf }: RequestHelpers,
  { prefix, limiter, headers: own = {}, reject = generalFailure }: ReadRoute,
  answer: (c: Context<Env>, headers: Headers, quota: Quota | undefined) => Response | Promise<Response>,
): void {
  const pattern = prefix.endsWith('/') ? `${prefix}*` : prefix
  app.options(pattern, () => preflight(readMethods))
  app.all(pattern, async (c) => {
    if (!c.req.path.startsWith(prefix)) return c.notFound() // the pattern also matches without the slash
    const quota = await consume(c, limiter)
    const headers = { ...own, ...quotaHeaders(quota) }
    if (!isRead(c.req.method)) return methodRefused(readMethods, headers)
    if (quota?.allowed === false)
      return reject(new ServiceError('RATE_LIMITED', rateLimitMessage(quota)), {
        ...headers,
        'Retry-After': String(quota.resetSeconds),
      })
    try {
      return await answer(c, headers, quota)
    } catch (error) {
      return reject(faultOf(error, c), headers)
    }
  })
}

type ReadRoute = {
  readonly prefix: string
  readonly limiter: RateLimiter | undefined
  readonly headers?: Headers
  readonly reject?: (error: ServiceError, headers: Headers) => Response
}

function generalFailure({ status, message }: ServiceError, headers: Headers): Response {
  return errorResponse(status, message, headers)
}

/** Adds a read route without a quota. */
export function freeRoute(
  app: Hono<Env>,
  path: string,
  answer: (c: Context<Env>) => Response | Promise<Response>,
): void {
  app.options(path, () => preflight(readMethods))
  app.all(path, (c) => (isRead(c.req.method) ? answer(c) : methodRefused(readMethods)))
}

/** Adds a document that does not change while the service runs. */
export function documentRoute(app: Hono<Env>, path: string, document: StaticDocument): void {
  freeRoute(app, path, (c) => documentResponse(document, c.req.method, c.req.header('if-none-match')))
}

/** Returns the error body of the keyless read (spec §2.4). */
export function codedFailure(error: ServiceError, headers: Headers): Response {
  const { status, code, message } = error
  return uncachedJson(status, { version: '1', error: { code, message } }, headers)
}

/** Returns a look-up of headers by lower-case name. Node's own table, where there is a socket, costs less than a Headers object. */
export function headerReader(c: Context<Env>): (name: string) => string | undefined {
  const table = c.env?.incoming?.headers
  if (table === undefined) return (name) => c.req.header(name)
  return (name) => {
    const value = table[name]
    return typeof value === 'string' ? value : value?.join(', ')
  }
}

/** Returns the path as it came over the wire: URL parsers remove dot segments and decode. */
export function rawPath(request: Request, options?: { env?: Env['Bindings'] }): string {
  return parseRequestTarget(options?.env?.incoming?.url ?? new URL(request.url).pathname).path
}

/** Returns the raw query without its question mark, undecoded. Logs never hold it. */
export function rawQuery(c: Context<Env>): string {
  return parseRequestTarget(c.env?.incoming?.url ?? c.req.url).query
}

/** Parses a path segment as a token id; null when it is none. The segment is percent-decoded once, leading zeros are legal. */
export function parseTokenIdSegment(segment: string): bigint | null {
  return parseTokenId(decodePercent(segment) ?? '')
}

/** Error text of every route for a text that is no token id. */
export const invalidTokenId = 'The token id must be a decimal integer from 0 to 2^256-1, in digits only, such as 42.'

/**
 * Sends the JSON body of a busy route past the router's Response. A body in ASCII costs a quarter of what it does in UTF-8. Returns a
 * Response like any other when there is no socket (`app.request()`).
 */
export function sendJson(
  c: Context<Env>,
  body: object,
  headers: Readonly<Record<string, string | readonly string[]>>,
): Response {
  const text = JSON.stringify(body)
  const all = { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff', ...openToAll, ...headers }
  const outgoing = c.env?.outgoing as ServerResponse | undefined
  if (outgoing === undefined)
    return new Response(text, {
      headers: Object.entries(all).flatMap(([name, value]) =>
        [value].flat().map((one): [string, string] => [name, one]),
      ),
    })
  const length = Buffer.byteLength(text)
  outgoing
    .writeHead(200, { ...all, 'Content-Length': String(length) } as OutgoingHttpHeaders)
    .end(text, length === text.length ? 'latin1' : 'utf8')
  return RESPONSE_ALREADY_SENT
}

/** Words a quota that is too small for a list, each member of which counts as a request. */
export function tooFewLeftMessage(member: string, { remaining, resetSeconds }: Quota): string {
  return `Each ${member} counts as a request. Left for you: ${remaining}. Send fewer, or all in ${resetSeconds} s.`
}

/** Returns 429 with the general error body (spec §7). */
export function rateLimited(quota: Quota, headers: Headers = {}): Response {
  return errorResponse(429, rateLimitMessage(quota), {
    ...headers,
    ...quotaHeaders(quota),
    'Retry-After': String(quota.resetSeconds),
  })
}
