/** The parts of a request: its target, its header fields and its id. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomInt } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

export type RequestTarget = {
  readonly path: string
  /** The text after the question mark, or ''. Never log it: it may hold a cryptogram. */
  readonly query: string
}

/**
 * Splits a request target as it comes over the wire (RFC 9112 §3.2), because URL parsers remove dot segments and decode.
 * An absolute target loses its origin (RFC 9112 §3.2.2); an empty path is `/`.
 */
export function parseRequestTarget(target: string): RequestTarget {
  const at = target.indexOf('?')
  const path = pathOf(at < 0 ? target : target.slice(0, at))
  return { path, query: at < 0 ? '' : target.slice(at + 1) }
}

function pathOf(text: string): string {
  return text.startsWith('/') ? text : text.replace(/^https?:\/\/[^/]*/i, '') || '/'
}

/**
 * Returns a header by its lower-case name. Fields that were sent twice are joined by a comma, as `request.headers` joins them. Node builds
 * `request.headers` on its first use, so that it is read only when the raw fields hold the name.
 */
export function getHeader(request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>, name: string): string | undefined {
  const { rawHeaders } = request
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index] ?? ''
    if (field.length !== name.length || field.toLowerCase() !== name) continue
    const value = request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  return undefined
}

/** Returns whether a request names its host once (RFC 9112 §3.2). HTTP/1.0 may leave it out, as load balancers do. */
export function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let fields = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index] ?? ''
    if (field.length === 4 && field.toLowerCase() === 'host') fields += 1
  }
  return fields === 1 || (fields === 0 && httpVersion === '1.0')
}

/** `X-Request-Id` names one request in its response and in the log. */
const acceptable = /^[\w.-]{1,64}$/

/** Returns the client's id when it is short and plain, so that one id runs through both systems. Otherwise it makes a new one. */
export function requestIdFor(given: string | undefined): string {
  return given !== undefined && acceptable.test(given) ? given : newRequestId()
}

const start = randomInt(2 ** 40).toString(36)
/**
 * Odd, so that the counter passes all 31-bit values before it repeats. Random, so that ids do not reveal the number of requests. V8 writes
 * larger numbers as text in four times the time.
 */
const step = randomInt(2 ** 31) | 1
let last = 0

/** Returns an id for work that no request of a client has named, such as an operation on a socket. */
export function newRequestId(): string {
  last = (last + step) & 0x7fff_ffff
  return `${start}-${last}` // base 36 would take ten times as long
}

/** Returns the id that the response carries, for the log. A response without one gets one. */
export function requestIdOf(response: ServerResponse): string {
  const set = response.getHeader('x-request-id')?.toString()
  if (set !== undefined || response.headersSent) return set ?? ''
  const id = newRequestId()
  response.setHeader('X-Request-Id', id)
  return id
}

const running = new AsyncLocalStorage<string>()

/** Runs work for the request of this id. The work may log `runningRequestId`, also after it has waited. */
export function runForRequest<T>(id: string, work: () => T): T {
  return running.run(id, work)
}

/** Returns the id of the request that is worked for; undefined outside `runForRequest`. */
export function runningRequestId(): string | undefined {
  return running.getStore()
}

export function identified(listener: RequestListener): RequestListener {
  return (request, response) => {
    const id = requestIdFor(getHeader(request, 'x-request-id'))
    response.setHeader('X-Request-Id', id)
    runForRequest(id, () => listener(request, response))
  }
}
