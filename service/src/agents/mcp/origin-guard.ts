/**
 * The guard in front of every MCP request: which `Host` and `Origin` are allowed, and the responses to requests that are rejected. With DNS
 * rebinding a page of another site reaches a local server under the page's host name, so that both headers are checked.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Quota } from '../../http/rate-limit/limiter.ts'
import { exposedHeaders, quotaHeaders } from '../../http/responses.ts'
import { errorCodes, type McpRejection } from '../../lib/error-codes.ts'

/** Names and values in turn, the form that `writeHead` writes fastest. */
export type Headers = readonly string[]
/** Returns the CORS headers of the response, or null if `Host` or `Origin` is not allowed. */
export type OriginGuard = (request: IncomingMessage) => Headers | null

const loopback = ['localhost', '127.0.0.1', '[::1]']

/** Browser pages of the host itself, of loopback and of the listed origins are allowed; `*` allows all. */
export function createOriginGuard(baseUrl: string, origins: readonly string[]): OriginGuard {
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
export const basicHeaders: Headers = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']

function corsHeaders(origin: string): Headers {
  const cors = ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposedHeaders]
  return [...basicHeaders, ...cors, 'Vary', 'Origin']
}

export function sendPreflight(response: ServerResponse, headers: Headers): void {
  response.writeHead(204, [...headers, ...preflightHeaders]).end()
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
  FORBIDDEN: 'This Host or Origin is not allowed here.',
  METHOD_NOT_ALLOWED: 'Method not allowed. Send JSON-RPC by POST.',
  BODY_TOO_LARGE: 'The body must not exceed 65536 bytes.',
  CONTENT_TYPE_NOT_SUPPORTED: 'Unsupported Media Type: Content-Type must be application/json',
  PARSE_ERROR: 'Parse error: the body is not JSON.',
  RATE_LIMITED: 'Too many requests.',
} as const satisfies Partial<Record<McpRejection, string>>

/** Sends a JSON-RPC error for a request that is not processed. `id` is that of the request, if it has exactly one. */
export function sendRejection(
  response: ServerResponse,
  reason: keyof typeof messages,
  headers: Headers,
  id: string | number | null = null,
): void {
  const [code, status] = errorCodes[reason].mcp
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message: messages[reason] }, id })
  const own = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))]
  if (status === 405) own.push('Allow', 'POST, OPTIONS')
  if (status === 413) own.push('Connection', 'close') // bytes were left unread
  response.writeHead(status, [...headers, ...own]).end(body)
}

/** Returns the quota of the client as headers. */
export function limitHeaders(quota: Quota): Headers {
  const fields = quotaHeaders(quota)
  const headers: string[] = []
  for (const name in fields) headers.push(name, fields[name] ?? '')
  if (!quota.allowed) headers.push('Retry-After', String(quota.resetSeconds))
  return headers
}
