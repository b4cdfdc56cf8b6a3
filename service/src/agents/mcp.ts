/**
 * POST {base_url}/mcp: the three read-only tools over MCP (spec §4.3), both eras on one endpoint without sessions. Order: Host and Origin,
 * method, body, budget; then the fast path, or the SDK for all that is not plain.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { reasonOf } from '../errors.ts'
import type { ClientKey } from '../http/client-key.ts'
import { takeMany, type Budget, type RateLimiter } from '../http/rate-limit.ts'
import { requestIdFor } from '../http/request-id.ts'
import type { Log } from '../log.ts'
import { readJson } from './mcp-body.ts'
import { answerPreflight, createMcpEdge, limitHeaders, plain, refuse, type Headers } from './mcp-edge.ts'
import { createFastPath, type FastPath } from './mcp-fast.ts'
import type { McpIdentity } from './mcp-protocol.ts'
import { acceptsBoth, createRecogniser } from './mcp-request.ts'
import { createSdkFetch, createSdkHandler } from './mcp-server.ts'
import type { Tools } from './tools.ts'

const path = '/mcp'

export type McpListener = {
  readonly tools: Tools
  readonly identity: McpIdentity
  /** Budget of tool calls; left out: no limit. A batch draws one for each of its calls. */
  readonly limiter?: RateLimiter | undefined
  /** Budget of every other request, such as a handshake or a list; left out: no limit. */
  readonly otherLimiter?: RateLimiter | undefined
  readonly clientKey: ClientKey
  /** Origins of browser pages that may ask, besides the host's own and loopback; `*` is all. */
  readonly origins?: readonly string[]
  readonly log: Log
}

/** Answers `/mcp`; everything else goes to `router`. */
export function mcpListener(options: McpListener, router: RequestListener): RequestListener {
  const { tools, identity, origins = [], limiter, otherLimiter, clientKey, log } = options
  const edge = createMcpEdge({ baseUrl: identity.baseUrl, origins })
  const recognise = createRecogniser()
  const fetch = createSdkFetch(tools, identity)
  const viaSdk = createSdkHandler(fetch, log)
  let fast: FastPath | undefined // until it is there, the SDK answers
  createFastPath(tools, fetch).then(
    (made) => (fast = made),
    (error: unknown) => log.error('mcp fast path not made', { reason: reasonOf(error) }),
  )

  function take(request: IncomingMessage, calls: number): Budget | Promise<Budget> | undefined {
    const client = clientKey(request.socket.remoteAddress, request.headers['x-forwarded-for'] as string | undefined)
    if (calls === 0) return otherLimiter?.take(client)
    return limiter && takeMany(limiter, client, calls)
  }

  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
    body: unknown,
    shared: Headers,
  ): Promise<void> {
    const taken = take(request, callsIn(body))
    const budget = taken instanceof Promise ? await taken : taken
    const headers = budget === undefined ? shared : [...shared, ...limitHeaders(budget)]
    if (budget?.allowed === false) return refuse(response, 'limited', headers, idOf(body))
    const asked = fast && recognise(request.headers, body)
    if (fast && asked) return send(response, headers, await fast(asked))
    for (let at = 0; at < headers.length; at += 2) response.setHeader(headers[at] ?? '', headers[at + 1] ?? '')
    if (acceptsBoth(request.headers.accept)) request.headers.accept = 'application/json, text/event-stream'
    await viaSdk(request, response, body)
  }

  function post(request: IncomingMessage, response: ServerResponse, headers: Headers): void {
    if (!isJson(request.headers['content-type'])) return refuse(response, 'content type', headers)
    readJson(request, (body) => {
      if (body.ok)
        answer(request, response, body.value, headers).catch((error: unknown) => {
          log.error('mcp request failed', { reason: reasonOf(error) })
          response.destroy()
        })
      else if (body.because === 'gone') response.destroy()
      else refuse(response, body.because, headers)
    })
  }

  return (request, response) => {
    const { url = '', method } = request
    if (!url.startsWith(path) || (url.length > path.length && url[path.length] !== '?'))
      return router(request, response)
    const admitted = edge.admit(request)
    const requestId = requestIdFor(request.headers['x-request-id'] as string | undefined)
    const headers = [...(admitted ?? plain), 'X-Request-Id', requestId]
    if (admitted === null) refuse(response, 'forbidden', headers)
    else if (method === 'POST') post(request, response, headers)
    else if (method === 'OPTIONS') answerPreflight(response, headers)
    else refuse(response, 'method', headers)
  }
}

function isJson(contentType = ''): boolean {
  return contentType === 'application/json' || /^application\/json[ \t]*(?:;|$)/i.test(contentType)
}

/** Tool calls in a message or a batch of them. */
function callsIn(body: unknown): number {
  const isCall = (message: unknown) => (message as { method?: unknown } | null)?.method === 'tools/call'
  return Array.isArray(body) ? body.filter(isCall).length : Number(isCall(body))
}

/** The id of a single request, for a refusal. */
function idOf(body: unknown): string | number | null {
  const id = Array.isArray(body) ? undefined : (body as { id?: unknown } | null)?.id
  return typeof id === 'string' || typeof id === 'number' ? id : null
}

/** ASCII is cheaper as Latin-1. */
function send(response: ServerResponse, headers: Headers, body: string): void {
  const length = Buffer.byteLength(body)
  response
    .writeHead(200, [...headers, 'Content-Type', 'application/json', 'Content-Length', String(length)])
    .end(body, length === body.length ? 'latin1' : 'utf8')
}
