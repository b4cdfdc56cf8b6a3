/**
 * What stands in front of every MCP request: who may ask, from which page, and how a refusal looks. A page of another site reaches a local
 * server under its own host name (DNS rebinding), so both `Host` and `Origin` are compared with what is known.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Budget } from '../http/rate-limit.ts'
import { budgetHeaders, exposedHeaders } from '../http/respond.ts'

/** Names and values in turn, the form that `writeHead` takes fastest. */
export type Headers = readonly string[]
export type McpEdge = {
  /** CORS headers of the answer, or null where `Host` or `Origin` is not known. */
  readonly admit: (request: IncomingMessage) => Headers | null
}

const loopback = ['localhost', '127.0.0.1', '[::1]']

/** `origins` are those of browser pages that may ask besides the host's own and loopback; `*` opens it to all. */
export function createMcpEdge({
  baseUrl,
  origins,
}: {
  readonly baseUrl: string
  readonly origins: readonly string[]
}): McpEdge {
  const { hostname, origin: own } = new URL(baseUrl)
  const hosts = new Set([hostname, ...loopback])
  const listed = new Set([own, ...origins])
  const isListed = (origin: string) =>
    listed.has('*') ||
    listed.has(origin) ||
    loopback.includes(/^http:\/\/(\[::1\]|[^:/]+)(?::\d{1,5})?$/.exec(origin)?.[1] ?? '')
  return {
    admit({ headers: { host = '', origin } }) {
      if (!hosts.has(nameIn(host))) return null
      if (origin === undefined) return plain
      return isListed(origin) ? crossOrigin(origin) : null
    },
  }
}

/** Host name without its port, in lower case. */
function nameIn(host: string): string {
  return (/^(\[[\da-f:.]*\]|[^:]*)(?::\d{1,5})?$/i.exec(host)?.[1] ?? '').toLowerCase()
}

/** Of every answer; to an unknown origin no others. */
export const plain: Headers = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']

function crossOrigin(origin: string): Headers {
  const open = [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Expose-Headers',
    exposedHeaders,
    'Vary',
    'Origin',
  ]
  return [...plain, ...open]
}

export function answerPreflight(response: ServerResponse, headers: Headers): void {
  response.writeHead(204, [...headers, ...preflight]).end()
}

const preflight: Headers = [
  'Access-Control-Allow-Methods',
  'POST',
  'Access-Control-Allow-Headers',
  'content-type, mcp-protocol-version, mcp-method, mcp-name, x-request-id',
  'Access-Control-Max-Age',
  '86400',
]

/** Why a request was not even looked at, as a JSON-RPC error. */
const refusals = {
  forbidden: [403, -32_000, 'This Host or Origin is not known here.'],
  method: [405, -32_000, 'Method not allowed. Send JSON-RPC by POST.'],
  large: [413, -32_000, 'The body must not exceed 65536 bytes.'],
  'content type': [415, -32_000, 'Unsupported Media Type: Content-Type must be application/json'],
  'not JSON': [400, -32_700, 'Parse error: the body is not JSON.'],
  limited: [429, -32_000, 'Too many requests.'],
} as const

/** `id` is the request's own, where there is exactly one. */
export function refuse(
  response: ServerResponse,
  because: keyof typeof refusals,
  headers: Headers,
  id: string | number | null = null,
): void {
  const [status, code, message] = refusals[because]
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id })
  const own = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))]
  if (status === 405) own.push('Allow', 'POST, OPTIONS')
  if (status === 413) own.push('Connection', 'close') // bytes were left unread
  response.writeHead(status, [...headers, ...own]).end(body)
}

/** What a client learns of its budget. */
export function limitHeaders(budget: Budget): Headers {
  const fields = budgetHeaders(budget)
  const headers: string[] = []
  for (const name in fields) headers.push(name, fields[name] ?? '')
  if (!budget.allowed) headers.push('Retry-After', String(budget.resetSeconds))
  return headers
}
