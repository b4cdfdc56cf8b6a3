/**
 * The GraphQL host {graphql_url} (spec §4.9, §5): /graphql by POST, and by GET for queries and streams; the playground beside it. In order: key,
 * quota, body, then parse, validate, cost, execute. It opens itself to no other origin, because keys do not belong in browsers.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AuthenticateKey } from '../../access/api-keys.ts'
import type { GraphqlCode } from '../../lib/error-codes.ts'
import { acceptsOnlyEvents, type StreamOperation } from '../../graphql/connections/event-stream.ts'
import type { HttpOperation } from '../../graphql/server/operation.ts'
import { mediaRanges, namedQuality } from '../../http/accept.ts'
import { readBody, type Body, type BodyFailure } from '../../http/body.ts'
import type { ClientAddress, ClientKey } from '../../http/client-ip.ts'
import { getHeader, parseRequestTarget, requestIdOf } from '../../http/request.ts'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import { livenessBody, quotaHeaders, sendError } from '../../http/responses.ts'
import { rejectsMethod } from '../../http/static-document.ts'
import { databaseUnavailable, isDatabaseUnavailable, reasonOf, retryAfterSeconds } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'

export type GraphqlHost = {
  readonly authenticate: AuthenticateKey
  /** By API key. Left out: no limit. */
  readonly limiter?: RateLimiter | undefined
  readonly clientKey: ClientKey
  readonly clientAddress: ClientAddress
  readonly operation: HttpOperation
  /** Answers requests that accept an event stream. */
  readonly stream: StreamOperation
  /** Answers /playground and the paths below it. */
  readonly playground: RequestListener
  readonly log: Log
  readonly bodyTimeoutMs?: number
}

type Headers = Readonly<Record<string, string>>

export function createGraphqlHost(host: GraphqlHost): RequestListener {
  return (request, response) => {
    const { path } = parseRequestTarget(request.url ?? '/')
    if (path === '/graphql') void graphqlRoute(host, request, response).catch(onFault(host, request, response))
    else if (path === '/playground' || path.startsWith('/playground/')) host.playground(request, response)
    else if (path !== '/health' && path !== '/')
      sendError(response, 404, 'There is nothing at this path. GraphQL is at /graphql, by POST.')
    else if (rejectsMethod(request, response)) return
    else if (path === '/health') response.writeHead(200, healthHeaders).end(livenessBody())
    else response.writeHead(302, { Location: '/playground', 'Content-Length': '0' }).end()
  }
}

/** Open to every origin, because balancers and other origins probe it. */
const healthHeaders = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'Access-Control-Allow-Origin': '*',
  'X-Content-Type-Options': 'nosniff',
} as const

async function graphqlRoute(host: GraphqlHost, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'OPTIONS') return void response.writeHead(204, { Allow: 'GET, POST, OPTIONS' }).end()
  const origin = [request.socket.remoteAddress, getHeader(request, 'x-forwarded-for')] as const
  const { authorization } = request.headers
  const authenticated = await host.authenticate(authorization, host.clientKey(...origin), host.clientAddress(...origin))
  if (!authenticated.ok) {
    const { error, headers } = keyFailures[authenticated.because]
    return reject(request, response, error, headers)
  }

  const quota = await host.limiter?.take(authenticated.key.id)
  const headers: Headers = quotaHeaders(quota)
  if (quota?.allowed === false) {
    const wait = String(quota.resetSeconds)
    const error = [429, 'RATE_LIMITED', `Too many requests. Send the next one in ${wait} s.`] as const
    return reject(request, response, error, { ...headers, 'Retry-After': wait })
  }
  const limits = { maxBytes: 65_536, timeoutMs: host.bodyTimeoutMs ?? 10_000 }
  const body: Body = request.method === 'POST' ? await readBody(request, limits) : { ok: true, text: '' }
  if (!body.ok) {
    if (body.because === 'aborted') return void response.destroy()
    // Unread bytes of the body would precede the next request.
    return reject(request, response, bodyFailures[body.because], { ...headers, Connection: 'close' })
  }
  const { key } = authenticated
  const answer = acceptsOnlyEvents(request)
    ? await host.stream(request, response, body.text, key, { ...commonHeaders, ...headers })
    : await host.operation(request, body.text, key, requestIdOf(response))
  if (answer === null) return
  const [text, { status, headers: own }] = answer
  respond(request, response, status, text, { ...headers, ...own })
}

function onFault({ log }: GraphqlHost, request: IncomingMessage, response: ServerResponse) {
  return (error: unknown) => {
    const requestId = requestIdOf(response)
    if (isDatabaseUnavailable(error) && !response.headersSent) {
      const { code, message } = databaseUnavailable(error)
      log.warn('request failed', { code, reason: reasonOf(error), requestId })
      return reject(request, response, [503, 'DATABASE_UNAVAILABLE', message], { 'Retry-After': retryAfterSeconds })
    }
    log.error('request failed', { code: 'INTERNAL', reason: reasonOf(error), requestId })
    if (response.headersSent) return void response.destroy()
    reject(request, response, [500, 'INTERNAL', 'The request failed unexpectedly. Try it again.'], {})
  }
}

type Rejection = readonly [status: number, code: GraphqlCode, message: string]

/** Exported for the test of the description. */
export const keyFailures = {
  missing: {
    error: [401, 'UNAUTHENTICATED', 'Send an API key in the header Authorization: Bearer <API_KEY>.'],
    headers: { 'WWW-Authenticate': 'Bearer' },
  },
  wrong: {
    error: [
      401,
      'UNAUTHENTICATED',
      'This API key is wrong, expired or revoked. Make one with: touchstone key create <name>',
    ],
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' }, // RFC 6750 §3
  },
  elsewhere: {
    error: [403, 'FORBIDDEN', 'This API key may not be used from your network. See touchstone key show <id>'],
    headers: {},
  },
  busy: {
    error: [429, 'RATE_LIMITED', 'Too many requests with unknown keys. Try again in a minute.'],
    headers: { 'Retry-After': '60' },
  },
} as const satisfies Readonly<Record<string, { error: Rejection; headers: Headers }>>

/** Exported for the test of the description. */
export const bodyFailures: Readonly<Record<Exclude<BodyFailure, 'aborted'>, Rejection>> = {
  'too-large': [413, 'TOO_COMPLEX', 'The body may have at most 64 kB.'],
  'too-slow': [408, 'BAD_USER_INPUT', 'The body did not arrive in time.'],
  encoded: [415, 'BAD_USER_INPUT', 'Send the body without Content-Encoding.'],
  'not-utf8': [400, 'BAD_USER_INPUT', 'The body must be UTF-8.'],
}

/** Rejects a request before it is read as GraphQL. The answer is one GraphQL error in the requested media type. */
function reject(
  request: IncomingMessage,
  response: ServerResponse,
  [status, code, message]: Rejection,
  headers: Headers,
): void {
  const named = namedQuality(mediaRanges(request.headers.accept ?? null), 'application/graphql-response+json')
  const type = named > 0 ? 'application/graphql-response+json' : 'application/json'
  const text = JSON.stringify({ errors: [{ message, extensions: { code } }] })
  respond(request, response, status, text, { 'Content-Type': `${type}; charset=utf-8`, ...headers })
}

const commonHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  Vary: 'Accept, Authorization',
} as const

function respond(
  { method }: IncomingMessage,
  response: ServerResponse,
  status: number,
  text: string,
  headers: Headers,
): void {
  if (response.destroyed) return
  response
    .writeHead(status, {
      ...commonHeaders,
      ...headers,
      'Content-Length': Buffer.byteLength(text),
    })
    .end(method === 'HEAD' ? undefined : text)
}
