/**
 * The A2A agent on {base_url}: JSON-RPC at /a2a, HTTP+JSON below /a2a/v1, streams as server-sent events (A2A 1.0 §9, §11). Public and
 * read-only, so open to every origin.
 */
import type { Context, Hono } from 'hono'
import { a2aPath, a2aRestPath } from '../agents/agent-card.ts'
import type { A2aAgent, TaskStream } from '../agents/a2a-agent.ts'
import { httpStatusOf, isFault, restErrorOf, type Fault } from '../agents/a2a-errors.ts'
import { answerRpc, rpcFailure, rpcResult } from '../agents/a2a-jsonrpc.ts'
import { versionFault, type Done } from '../agents/a2a-operations.ts'
import { answerRest, restMethods } from '../agents/a2a-rest.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { budgetHeaders, openToAll } from '../http/respond.ts'
import { createEventStreams, type EventStreams } from './a2a-streams.ts'
import { readJsonBody } from './a2a-body.ts'
import { rawQuery, tooMany, type Edge, type Env } from './edge.ts'

export type A2aRoutes = {
  readonly a2a: A2aAgent
  readonly a2aLimiter?: RateLimiter | undefined
  /** Of all clients together. */
  readonly a2aStreams?: EventStreams | undefined
}

type Headers = Readonly<Record<string, string>>
/** How a binding writes what was done. */
type Form = {
  readonly json: (result: object) => object
  readonly fault: (fault: Fault) => readonly [status: number, body: object]
  readonly type: string
}

export function a2aRoutes(
  app: Hono<Env>,
  edge: Edge,
  { a2a, a2aLimiter, a2aStreams = createEventStreams() }: A2aRoutes,
): void {
  for (const path of [a2aPath, `${a2aPath}/`]) {
    app.options(path, () => allowed('POST, OPTIONS'))
    app.all(path, (c) => guarded(c, () => rpcForm(null), answerByRpc))
  }
  app.options(`${a2aRestPath}/*`, () => allowed('GET, POST, DELETE, OPTIONS'))
  app.all(`${a2aRestPath}/*`, (c) => guarded(c, restForm, answerByRest))

  /** Draws from the budget, and gives a fault nobody foresaw the form of its binding. */
  async function guarded(
    c: Context<Env>,
    formOf: (c: Context<Env>) => Form,
    answer: (c: Context<Env>, headers: Headers) => Promise<Response>,
  ): Promise<Response> {
    const budget = await edge.take(c, a2aLimiter)
    const headers = budgetHeaders(budget)
    if (budget?.allowed === false) {
      const wait = { ...headers, 'Retry-After': String(budget.resetSeconds) }
      const [, body] = formOf(c).fault({ fault: 'RATE_LIMITED', message: tooMany(budget) })
      return written(429, body, formOf(c).type, wait)
    }
    try {
      return await answer(c, headers)
    } catch (error) {
      const { message } = edge.faultOf(error, c)
      const [, body] = formOf(c).fault({ fault: 'INTERNAL_ERROR', message })
      return written(500, body, formOf(c).type, headers)
    }
  }

  async function answerByRpc(c: Context<Env>, headers: Headers): Promise<Response> {
    if (c.req.method !== 'POST') return refusedMethod(rpcForm(null), 'POST, OPTIONS', headers)
    const body = await readJsonBody(c)
    if (isFault(body)) return finish(rpcForm(null), body, headers)
    const { id, outcome } = await answerRpc(a2a, body.value, versionOf(c))
    return finish(rpcForm(id), outcome, headers)
  }

  async function answerByRest(c: Context<Env>, headers: Headers): Promise<Response> {
    const form = restForm(c)
    const path = c.req.path.slice(a2aRestPath.length)
    const methods = restMethods(path)
    if (methods === null) return finish(form, { fault: 'METHOD_NOT_FOUND', message: nothingHere }, headers)
    if (!methods.includes(c.req.method)) return refusedMethod(form, [...methods, 'OPTIONS'].join(', '), headers)
    const version = versionOf(c)
    if (version !== null) return finish(form, version, headers)
    const body = c.req.method === 'POST' ? await readJsonBody(c, { optional: true }) : { value: undefined }
    if (isFault(body)) return finish(form, body, headers)
    const { method } = c.req
    const query = new URLSearchParams(rawQuery(c))
    return finish(form, await answerRest(a2a, { method, path, query, body: body.value }), headers)
  }

  function finish(form: Form, outcome: Done | Fault, headers: Headers): Response {
    const done = 'stream' in outcome ? streamed(form, outcome.stream, a2aStreams, headers) : outcome
    if (done instanceof Response) return done
    if ('result' in done) return written(200, form.json(done.result), form.type, headers)
    const [status, body] = form.fault(done)
    return written(status, body, form.type, headers)
  }
}

const nothingHere = 'A2A 1.0 has nothing at this path.'
/** Bytes of a body were left unread, or may have been. */
const cutting: ReadonlySet<number> = new Set([408, 413])

/** JSON-RPC tells its errors in the body of a 200, but for those of HTTP itself. */
function rpcForm(id: string | number | null): Form {
  return {
    json: (result) => rpcResult(id, result),
    fault: (fault) => {
      const status = httpStatusOf(fault)
      const isOfHttp = fault.fault === 'METHOD_NOT_ALLOWED' || cutting.has(status)
      return [isOfHttp ? status : 200, rpcFailure(id, fault)]
    },
    type: 'application/json',
  }
}

/** A client that names the protocol's own media type gets it. */
function restForm(c: Context<Env>): Form {
  const named = `${c.req.header('content-type') ?? ''},${c.req.header('accept') ?? ''}`.toLowerCase()
  return {
    json: (result) => result,
    fault: (fault) => [httpStatusOf(fault), restErrorOf(fault)],
    type: named.includes('application/a2a+json') ? 'application/a2a+json' : 'application/json',
  }
}

/** The header, or the parameter of the same name for clients that set no headers. */
function versionOf(c: Context<Env>): Fault | null {
  return versionFault(c.req.header('a2a-version') ?? new URLSearchParams(rawQuery(c)).get('A2A-Version') ?? undefined)
}

function streamed(form: Form, stream: TaskStream, streams: EventStreams, headers: Headers): Response | Fault {
  const body = streams.open(stream, form.json)
  if (body === null) return { fault: 'RATE_LIMITED', message: 'Too many streams are open. Try again later.' }
  return new Response(body, {
    headers: {
      ...openToAll,
      ...headers,
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no', // nginx would hold events back
      'X-Content-Type-Options': 'nosniff',
    },
  })
}

function refusedMethod(form: Form, methods: string, headers: Headers): Response {
  const [status, body] = form.fault({ fault: 'METHOD_NOT_ALLOWED', message: `This address answers ${methods}.` })
  return written(status, body, form.type, { ...headers, Allow: methods })
}

function written(status: number, body: object, type: string, headers: Headers): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      ...openToAll,
      ...headers,
      ...(cutting.has(status) && { Connection: 'close' }),
      'Content-Type': type,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    },
  })
}

function allowed(methods: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      ...openToAll,
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Allow-Headers': 'Content-Type, A2A-Version, A2A-Extensions, X-Request-Id',
      'Access-Control-Max-Age': '86400',
    },
  })
}
