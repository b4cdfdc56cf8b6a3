/**
 * The A2A agent on {base_url}: JSON-RPC at /a2a, HTTP+JSON below /a2a/v1, streams as server-sent events (A2A 1.0 §9, §11). It is public and
 * read-only, so that every origin is allowed.
 */
import type { Context, Hono } from 'hono'
import type { A2aAgent, TaskOutcome } from '../../../agents/a2a/agent.ts'
import {
  answerRest,
  answerRpc,
  findRoute,
  toRpcResponse,
  versionFault,
  type RpcId,
} from '../../../agents/a2a/bindings.ts'
import { a2aPath, a2aRestPath } from '../../../agents/a2a/card.ts'
import { httpStatusOf, isFault, toRestError, type Fault } from '../../../agents/a2a/errors.ts'
import { createEventStreams, type EventStreams } from '../../../agents/a2a/streams.ts'
import { readWebBody } from '../../../http/body.ts'
import type { RateLimiter } from '../../../http/rate-limit/limiter.ts'
import { openToAll, preflight, quotaHeaders, rateLimitMessage } from '../../../http/responses.ts'
import { retryAfterSeconds } from '../../../lib/errors.ts'
import { parseJson } from '../../../lib/json.ts'
import { rawQuery, type Env, type Headers, type RequestHelpers } from '../request.ts'

export type A2aRoutes = {
  readonly a2a: A2aAgent
  readonly a2aLimiter?: RateLimiter | undefined
  readonly a2aStreams?: EventStreams | undefined
}

/** How a binding writes results and faults. */
type Encoding = {
  readonly result: (result: object) => object
  readonly fault: (fault: Fault) => object
  readonly statusOf: (fault: Fault) => number
  readonly mediaType: string
}

const requestHeaders = 'Content-Type, A2A-Version, A2A-Extensions, X-Request-Id'

export function a2aRoutes(
  app: Hono<Env>,
  helpers: RequestHelpers,
  { a2a, a2aLimiter, a2aStreams = createEventStreams() }: A2aRoutes,
): void {
  for (const path of [a2aPath, `${a2aPath}/`]) {
    app.options(path, () => preflight('POST, OPTIONS', requestHeaders))
    app.all(path, (c) => limited(c, rpcEncoding(null), byRpc))
  }
  app.options(`${a2aRestPath}/*`, () => preflight('GET, POST, DELETE, OPTIONS', requestHeaders))
  app.all(`${a2aRestPath}/*`, (c) => limited(c, restEncoding(c), byRest))

  /** Consumes the quota of the client, and writes an unexpected error in the encoding of the binding. */
  async function limited(
    c: Context<Env>,
    encoding: Encoding,
    answer: (c: Context<Env>, encoding: Encoding, headers: Headers) => Promise<Response>,
  ): Promise<Response> {
    const quota = await helpers.consume(c, a2aLimiter)
    const headers = quotaHeaders(quota)
    if (quota?.allowed === false) {
      const fault: Fault = { fault: 'RATE_LIMITED', message: rateLimitMessage(quota) }
      return finish(c, encoding, fault, { ...headers, 'Retry-After': String(quota.resetSeconds) })
    }
    try {
      return await answer(c, encoding, headers)
    } catch (error) {
      const { code, message } = helpers.faultOf(error, c)
      const fault = { fault: code === 'DATABASE_UNAVAILABLE' ? code : 'INTERNAL_ERROR', message } as const
      return finish(c, encoding, fault, headers)
    }
  }

  async function byRpc(c: Context<Env>, encoding: Encoding, headers: Headers): Promise<Response> {
    if (c.req.method !== 'POST') return methodNotAllowed(encoding, 'POST, OPTIONS', headers)
    const body = await readJsonBody(c)
    if (isFault(body)) return finish(c, encoding, body, headers)
    const { id, outcome } = await answerRpc(a2a, body.value, versionOf(c))
    return finish(c, rpcEncoding(id), outcome, headers)
  }

  async function byRest(c: Context<Env>, encoding: Encoding, headers: Headers): Promise<Response> {
    const { method } = c.req
    const path = c.req.path.slice(a2aRestPath.length)
    const route = findRoute(path)
    if (route === null) return finish(c, encoding, { fault: 'METHOD_NOT_FOUND', message: noPath }, headers)
    const operation = route.operations[method as keyof typeof route.operations]
    if (operation === undefined)
      return methodNotAllowed(encoding, [...Object.keys(route.operations), 'OPTIONS'].join(', '), headers)
    const version = versionOf(c)
    if (version !== null) return finish(c, encoding, version, headers)
    const sent = method === 'POST' ? await readJsonBody(c, true) : { value: new URLSearchParams(rawQuery(c)) }
    if (isFault(sent)) return finish(c, encoding, sent, headers)
    return finish(c, encoding, await answerRest(a2a[operation], route.id, sent.value ?? {}), headers)
  }

  function finish(c: Context<Env>, encoding: Encoding, outcome: TaskOutcome, headers: Headers): Response {
    if ('result' in outcome) return respond(200, encoding.result(outcome.result), encoding, headers)
    if ('fault' in outcome) return respond(encoding.statusOf(outcome), encoding.fault(outcome), encoding, headers)
    const body = a2aStreams.open(helpers.clientOf(c), outcome.stream, encoding.result)
    if (body !== null) return new Response(body, { headers: { ...openToAll, ...headers, ...streamHeaders } })
    const tooManyStreams: Fault = { fault: 'RATE_LIMITED', message: 'Too many streams are open. Try again later.' }
    return finish(c, encoding, tooManyStreams, { ...headers, 'Retry-After': retryAfterSeconds })
  }
}

const noPath = `A2A 1.0 has nothing at this path. Send POST ${a2aRestPath}/message:send, or GET ${a2aRestPath}/tasks/{id}.`

/** Parts of the body may be unread after these. */
const unreadStatuses: ReadonlySet<number> = new Set([408, 413])
const httpStatuses: ReadonlySet<number> = new Set([...unreadStatuses, 429, 500, 503])

/** JSON-RPC errors have status 200, except those of HTTP itself. */
function rpcEncoding(id: RpcId): Encoding {
  return {
    result: (result) => toRpcResponse(id, { result }),
    fault: (fault) => toRpcResponse(id, fault),
    statusOf: (fault) => {
      const status = httpStatusOf(fault)
      return httpStatuses.has(status) ? status : 200
    },
    mediaType: 'application/json',
  }
}

/** The protocol's own media type is sent only to a client that names it. */
function restEncoding(c: Context<Env>): Encoding {
  const named = `${c.req.header('content-type') ?? ''},${c.req.header('accept') ?? ''}`.toLowerCase()
  return {
    result: (result) => result,
    fault: toRestError,
    statusOf: httpStatusOf,
    mediaType: named.includes('application/a2a+json') ? 'application/a2a+json' : 'application/json',
  }
}

/** Checks the header, or the query parameter of the same name for clients that cannot set headers. */
function versionOf(c: Context<Env>): Fault | null {
  return versionFault(c.req.header('a2a-version') ?? new URLSearchParams(rawQuery(c)).get('A2A-Version') ?? undefined)
}

const maxBytes = 65_536

/** Reads a JSON body. An optional one may be empty; its value is undefined then. */
async function readJsonBody(c: Context<Env>, isOptional = false): Promise<{ readonly value: unknown } | Fault> {
  const body = await readWebBody(c.req.raw, { maxBytes, timeoutMs: 10_000 })
  if (!body.ok && body.because === 'too-large')
    return { fault: 'BODY_TOO_LARGE', message: `The body must not exceed ${maxBytes} bytes.` }
  if (!body.ok && body.because === 'too-slow')
    return { fault: 'BODY_TOO_SLOW', message: 'The body took too long to arrive.' }
  if (isOptional && body.ok && body.text === '') return { value: undefined }
  const type = (c.req.header('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (type !== '' && type !== 'application/json' && type !== 'application/a2a+json')
    return { fault: 'CONTENT_TYPE_NOT_SUPPORTED', message: 'Send the body as application/json.' }
  const value = body.ok ? parseJson(body.text) : undefined
  return value === undefined
    ? { fault: 'PARSE_ERROR', message: 'Send JSON in UTF-8, without a content coding.' }
    : { value }
}

const streamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no', // nginx would delay events
  'X-Content-Type-Options': 'nosniff',
}

function methodNotAllowed(encoding: Encoding, methods: string, headers: Headers): Response {
  const fault: Fault = { fault: 'METHOD_NOT_ALLOWED', message: `This address answers ${methods}.` }
  return respond(405, encoding.fault(fault), encoding, { ...headers, Allow: methods })
}

function respond(status: number, body: object, { mediaType }: Encoding, headers: Headers): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      ...openToAll,
      ...headers,
      ...(unreadStatuses.has(status) && { Connection: 'close' }),
      'Content-Type': mediaType,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    },
  })
}
