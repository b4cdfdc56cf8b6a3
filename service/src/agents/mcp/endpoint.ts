/**
 * POST {base_url}/mcp: the three read-only tools over MCP (spec §4.3), both eras on one endpoint without sessions. Order: Host and Origin,
 * method, body, quota; then the fast path for plain requests, or the SDK for all others. With DNS rebinding a page of another site reaches a
 * local server under the page's host name, so that both headers are checked.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { mostDrained, readBody } from '../../http/body.ts'
import type { ClientKey } from '../../http/client-ip.ts'
import type { Quota, RateLimiter } from '../../http/rate-limit/limiter.ts'
import { parseRequestTarget, requestIdFor, runForRequest } from '../../http/request.ts'
import { exposedHeaders, quotaHeaders, rateLimitMessage } from '../../http/responses.ts'
import { errorCodes, type McpRejection } from '../../lib/error-codes.ts'
import { reasonOf } from '../../lib/errors.ts'
import { isObject, parseJson } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import type { Tools } from '../tools/tools.ts'
import { isShallow } from '../a2a/wire.ts'
import { acceptsBoth, createFastPath, recognise, type FastPath } from './fast-path.ts'
import type { McpIdentity } from './protocol.ts'
import { createSdkFetch, createSdkHandler } from './server.ts'

/** Names and values in turn, the form that `writeHead` writes fastest. */
type Headers = readonly string[]
/** Returns the CORS headers of the response, or null if `Host` or `Origin` is not allowed. */
type OriginGuard = (request: IncomingMessage) => Headers | null

const path = '/mcp'
const maxBodyBytes = 65_536
/** Deeper than any request of the protocol. */
const mostLevels = 100
/** The SDK has this limit too, but first parses every message against all schemas. */
const mostMessages = 100

export type McpListener = {
  readonly tools: Tools
  readonly identity: McpIdentity
  /** Quota of tool calls; undefined means no limit. A batch consumes one of each quota for each request that it holds. */
  readonly limiter?: RateLimiter | undefined
  /** Quota of every other request, such as a handshake or a list; undefined means no limit. */
  readonly otherLimiter?: RateLimiter | undefined
  readonly clientKey: ClientKey
  /** Origins of browser pages that are allowed, besides the host's own and loopback; `*` is all. */
  readonly origins?: readonly string[]
  readonly log: Log
}

/** Answers `/mcp`; everything else goes to `router`. */
export function mcpListener(options: McpListener, router: RequestListener): RequestListener {
  const { tools, identity, origins = [], limiter, otherLimiter, clientKey, log } = options
  const guard = createOriginGuard(identity.baseUrl, origins)
  const fetch = createSdkFetch(tools, identity)
  const viaSdk = createSdkHandler(fetch, log)
  let fast: FastPath | undefined // the SDK answers until it is there
  createFastPath(tools, fetch).then(
    (made) => (fast = made),
    (error: unknown) => log.error('mcp fast path not made', { reason: reasonOf(error) }),
  )

  function consume(request: IncomingMessage, body: unknown): Quota | Promise<Quota> | undefined {
    const client = clientKey(request.socket.remoteAddress, request.headers['x-forwarded-for'] as string | undefined)
    const calls = countCalls(body)
    const others = (Array.isArray(body) ? Math.max(1, body.length) : 1) - calls
    if (calls === 0) return otherLimiter?.take(client, others)
    if (others > 0 && otherLimiter && limiter) return consumeBoth({ limiter, otherLimiter }, client, { calls, others })
    return limiter?.take(client, calls)
  }

  async function post(request: IncomingMessage, response: ServerResponse, shared: Headers): Promise<void> {
    if (!isJson(request.headers['content-type'])) return sendRejection(response, 'CONTENT_TYPE_NOT_SUPPORTED', shared)
    // The listener bounds how long a body may take.
    const read = await readBody(request, { maxBytes: maxBodyBytes, drainBytes: mostDrained })
    if (!read.ok && read.because === 'aborted') return void response.destroy()
    if (!read.ok && read.because === 'too-large') return sendRejection(response, 'BODY_TOO_LARGE', shared)
    const body = read.ok ? parseJson(read.text) : undefined
    if (body === undefined) return sendRejection(response, 'PARSE_ERROR', shared)
    // The SDK descends into every level, until the stack is full.
    if (isWrongBatch(body) || !isShallow(body, mostLevels)) return sendRejection(response, 'INVALID_REQUEST', shared)

    const consumed = consume(request, body)
    const quota = consumed instanceof Promise ? await consumed : consumed
    const headers = quota === undefined ? shared : [...shared, ...limitHeaders(quota)]
    if (quota?.allowed === false)
      return sendRejection(response, 'RATE_LIMITED', headers, { id: getId(body), message: rateLimitMessage(quota) })
    const plain = fast && recognise(request.headers, body)
    if (fast && plain) return send(response, headers, await fast(plain))
    for (let at = 0; at < headers.length; at += 2) response.setHeader(headers[at] ?? '', headers[at + 1] ?? '')
    if (acceptsBoth(request.headers.accept)) request.headers.accept = 'application/json, text/event-stream'
    await viaSdk(request, response, body)
  }

  return (request, response) => {
    const { url = '', method } = request
    if (!isEndpoint(url)) return router(request, response)
    const admitted = guard(request)
    const requestId = requestIdFor(request.headers['x-request-id'] as string | undefined)
    const headers = [...(admitted ?? basicHeaders), 'X-Request-Id', requestId]
    if (admitted === null) sendRejection(response, 'FORBIDDEN', headers)
    else if (method === 'OPTIONS') response.writeHead(204, [...headers, ...preflightHeaders]).end()
    else if (method !== 'POST') sendRejection(response, 'METHOD_NOT_ALLOWED', headers)
    else
      runForRequest(requestId, () => post(request, response, headers)).catch((error: unknown) => {
        log.error('mcp request failed', { reason: reasonOf(error), requestId })
        response.destroy()
      })
  }
}

/** An absolute target names the endpoint too (RFC 9112 §3.2.2), but hardly a client sends one. */
function isEndpoint(url: string): boolean {
  if (url.startsWith('/')) return url.startsWith(path) && (url.length === path.length || url[path.length] === '?')
  return parseRequestTarget(url).path === path
}

function isJson(contentType = ''): boolean {
  return contentType === 'application/json' || /^application\/json[ \t]*(?:;|$)/i.test(contentType)
}

/**
 * Consumes both quotas for a batch. Returns that of the calls, unless the other one is exceeded. Calls that do not fit by the count of this
 * process consume neither.
 */
async function consumeBoth(
  { limiter, otherLimiter }: { readonly limiter: RateLimiter; readonly otherLimiter: RateLimiter },
  client: string,
  { calls, others }: { readonly calls: number; readonly others: number },
): Promise<Quota> {
  const quota = limiter.exhausted(client, calls) ?? (await otherLimiter.take(client, others))
  return quota.allowed ? limiter.take(client, calls) : quota
}

function countCalls(body: unknown): number {
  const isCall = (message: unknown) => isObject(message) && message['method'] === 'tools/call'
  return Array.isArray(body) ? body.filter(isCall).length : Number(isCall(body))
}

/** Returns whether a batch is too long, or has one id for two requests. The SDK answers only one of these. */
function isWrongBatch(body: unknown): boolean {
  if (!Array.isArray(body)) return false
  if (body.length > mostMessages) return true
  const ids = body.flatMap((message: unknown) =>
    isObject(message) && 'method' in message ? (message['id'] ?? []) : [],
  )
  return new Set(ids).size < ids.length
}

/** Returns the id of a single request, for a rejection. */
function getId(body: unknown): string | number | null {
  const id = isObject(body) ? body['id'] : undefined
  return typeof id === 'string' || typeof id === 'number' ? id : null
}

/** ASCII is cheaper as Latin-1. */
function send(response: ServerResponse, headers: Headers, body: string): void {
  const length = Buffer.byteLength(body)
  response
    .writeHead(200, [...headers, 'Content-Type', 'application/json', 'Content-Length', String(length)])
    .end(body, length === body.length ? 'latin1' : 'utf8')
}

const loopback = ['localhost', '127.0.0.1', '[::1]']

/** Browser pages of the host itself, of loopback and of the listed origins are allowed; `*` allows all. */
function createOriginGuard(baseUrl: string, origins: readonly string[]): OriginGuard {
  const { hostname, origin: own } = new URL(baseUrl)
  const hosts = new Set([hostname, ...loopback])
  const listed = new Set([own, ...origins])
  const isListed = (origin: string) =>
    listed.has('*') ||
    listed.has(origin) ||
    loopback.includes(/^http:\/\/(\[::1\]|[^:/]+)(?::\d{1,5})?$/.exec(origin)?.[1] ?? '')
  return ({ headers: { host = '', origin } }) => {
    if (!hosts.has(parseHostname(host))) return null
    if (origin === undefined) return basicHeaders
    return isListed(origin) ? corsHeaders(origin) : null
  }
}

/** Returns the host name without its port, in lower case. */
function parseHostname(host: string): string {
  return (/^(\[[\da-f:.]*\]|[^:]*)(?::\d{1,5})?$/i.exec(host)?.[1] ?? '').toLowerCase()
}

/** Headers of every response. An origin that is not allowed gets only these. */
const basicHeaders: Headers = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']

function corsHeaders(origin: string): Headers {
  const cors = ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposedHeaders]
  return [...basicHeaders, ...cors, 'Vary', 'Origin']
}

const preflightHeaders: Headers = [
  'Access-Control-Allow-Methods',
  'POST',
  'Access-Control-Allow-Headers',
  'content-type, mcp-protocol-version, mcp-method, mcp-name, x-request-id',
  'Access-Control-Max-Age',
  '86400',
]

const messages = {
  FORBIDDEN: 'This Host or Origin is not allowed here. Use the public address of the service.',
  METHOD_NOT_ALLOWED: 'Method not allowed. Send JSON-RPC by POST.',
  BODY_TOO_LARGE: 'The body must not exceed 65536 bytes.',
  CONTENT_TYPE_NOT_SUPPORTED: 'Unsupported Media Type: Content-Type must be application/json',
  INVALID_REQUEST:
    'Invalid Request: nested deeper than 100 levels, or a batch of more than 100 messages or with an id twice.',
  PARSE_ERROR: 'Parse error: send JSON in UTF-8, without a content coding.',
  RATE_LIMITED: 'Too many requests.',
} as const satisfies Partial<Record<McpRejection, string>>

/** Sends a JSON-RPC error for a request that is not processed. `id` is that of the request, if it has exactly one. */
function sendRejection(
  response: ServerResponse,
  reason: keyof typeof messages,
  headers: Headers,
  { id = null, message = messages[reason] }: { readonly id?: string | number | null; readonly message?: string } = {},
): void {
  const [code, status] = errorCodes[reason].mcp
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id })
  const own = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))]
  if (status === 405) own.push('Allow', 'POST, OPTIONS')
  if (status === 413) own.push('Connection', 'close') // bytes were left unread
  response.writeHead(status, [...headers, ...own]).end(body)
}

function limitHeaders(quota: Quota): Headers {
  const fields = quotaHeaders(quota)
  const headers: string[] = []
  for (const name in fields) headers.push(name, fields[name] ?? '')
  if (!quota.allowed) headers.push('Retry-After', String(quota.resetSeconds))
  return headers
}
