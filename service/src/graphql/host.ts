/**
 * The GraphQL host {graphql_url} (spec §4.9, §5): /graphql by POST, and by GET for queries; the playground beside it. In order: key,
 * budget, body, then parse, validate, cost, execute. It names no other origin: keys do not belong in browsers (spec §5), and the
 * playground is of the same origin.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { reasonOf } from '../errors.ts'
import type { ClientKey } from '../http/client-key.ts'
import { livenessBody } from '../http/health.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { budgetHeaders } from '../http/respond.ts'
import type { Log } from '../log.ts'
import type { Authenticate } from './api-keys.ts'
import { answer, refuse, type Headers } from './answer.ts'
import type { HttpOperation } from './http-operation.ts'
import { readBody, type Body } from './request-body.ts'

export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void
export type GraphqlHost = {
  readonly authenticate: Authenticate
  /** By API key. Left out: no limit. */
  readonly limiter?: RateLimiter | undefined
  readonly clientKey: ClientKey
  readonly operation: HttpOperation
  /** Answers /playground and what is below it. */
  readonly playground: RequestListener
  /** The socket of subscriptions on the same path. */
  readonly socket: Upgrade
  readonly log: Log
  readonly bodyTimeoutMs?: number
}

export function createGraphqlHost(host: GraphqlHost): {
  readonly listener: RequestListener
  readonly upgrade: Upgrade
} {
  return {
    upgrade: host.socket,
    listener(request, response) {
      const path = pathOf(request.url ?? '/')
      if (path === '/graphql') void onGraphql(host, request, response).catch(fault(host, request, response))
      else if (path === '/playground' || path.startsWith('/playground/')) host.playground(request, response)
      else if (path === '/health') health(response)
      else if (path === '/') response.writeHead(302, { Location: '/playground', 'Content-Length': '0' }).end()
      else nothingHere(response)
    },
  }
}

async function onGraphql(host: GraphqlHost, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'OPTIONS') return void response.writeHead(204, { Allow: 'GET, POST, OPTIONS' }).end()
  const { authorization } = request.headers
  const client = host.clientKey(request.socket.remoteAddress, forwardedFor(request))
  const asked = await host.authenticate(authorization, client)
  if (!asked.ok)
    return asked.because === 'busy' ? tooManyKeys(request, response) : noKey(request, response, asked.because)

  const budget = await host.limiter?.take(asked.key.id)
  const headers: Headers = budgetHeaders(budget)
  if (budget?.allowed === false) {
    const wait = String(budget.resetSeconds)
    const message = `Too many requests. Send the next one in ${wait} s.`
    return refuse(request, response, 429, { code: 'RATE_LIMITED', message }, { ...headers, 'Retry-After': wait })
  }
  const body = request.method === 'POST' ? await readBody(request, host.bodyTimeoutMs ?? 10_000) : noBody
  if (!body.ok) return refuseBody(request, response, body.because, headers)
  const [text, { status, headers: own }] = await host.operation(request, body.text, asked.key)
  answer(request, response, { status, text, headers: { ...headers, ...own } })
}

function fault({ log }: GraphqlHost, request: IncomingMessage, response: ServerResponse) {
  return (error: unknown) => {
    log.error('request failed', { code: 'INTERNAL', reason: reasonOf(error) })
    if (response.headersSent) return void response.destroy()
    refuse(request, response, 500, { code: 'INTERNAL', message: 'The request failed unexpectedly. Try it again.' }, {})
  }
}

const noBody: Body = { ok: true, text: '' }

function noKey(request: IncomingMessage, response: ServerResponse, because: 'missing' | 'wrong'): void {
  const message =
    because === 'missing'
      ? 'Send an API key in the header Authorization: Bearer <API_KEY>.'
      : 'This API key is wrong or revoked. Make one with: touchstone key create <name>'
  const challenge = because === 'missing' ? 'Bearer' : 'Bearer error="invalid_token"' // RFC 6750 §3
  refuse(request, response, 401, { code: 'UNAUTHENTICATED', message }, { 'WWW-Authenticate': challenge })
}

function tooManyKeys(request: IncomingMessage, response: ServerResponse): void {
  const message = 'Too many requests with keys that are not known here. Try again in a minute.'
  refuse(request, response, 429, { code: 'RATE_LIMITED', message }, { 'Retry-After': '60' })
}

const bodyRefusals = {
  large: [413, 'TOO_COMPLEX', 'The body may have at most 64 kB.'],
  slow: [408, 'BAD_USER_INPUT', 'The body did not arrive in time.'],
  encoded: [415, 'BAD_USER_INPUT', 'Send the body without Content-Encoding.'],
  'not UTF-8': [400, 'BAD_USER_INPUT', 'The body must be UTF-8.'],
} as const

function refuseBody(
  request: IncomingMessage,
  response: ServerResponse,
  because: (Body & { ok: false })['because'],
  headers: Headers,
): void {
  if (because === 'gone') return void response.destroy()
  const [status, code, message] = bodyRefusals[because]
  // What of the body was not read stands in the way of a next request.
  refuse(request, response, status, { code, message }, { ...headers, Connection: 'close' })
}

/** Asked by balancers and by other origins: it says nothing but that the host answers. */
function health(response: ServerResponse): void {
  const headers = {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    'Access-Control-Allow-Origin': '*',
  }
  response.writeHead(200, { ...headers, 'X-Content-Type-Options': 'nosniff' }).end(livenessBody())
}

function nothingHere(response: ServerResponse): void {
  const body = JSON.stringify({ error: 'There is nothing at this path. GraphQL is at /graphql, by POST.' })
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  response.writeHead(404, { ...headers, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }).end(body)
}

function forwardedFor({ headers }: IncomingMessage): string | undefined {
  const value = headers['x-forwarded-for']
  return typeof value === 'string' ? value : value?.join(', ')
}

/** The path without its query; an absolute target is legal (RFC 9112 §3.2.2). */
function pathOf(target: string): string {
  const path = target.split('?', 1)[0] ?? ''
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '') || '/'
}
