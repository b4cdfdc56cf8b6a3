/**
 * `X-Request-Id`: the name of one request in its answer and in the log. A client's own is kept when it is short and plain, so that the
 * same id runs through its system and ours; anything else is replaced.
 */
import { randomInt } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

const plain = /^[\w.-]{1,64}$/

/** The client's id if it may be told again, else a new one: of no meaning, and different in every process. */
export function requestIdFor(given: string | undefined): string {
  return given !== undefined && plain.test(given) ? given : newRequestId()
}

const start = randomInt(2 ** 40).toString(36)
/** Odd, so that the counter runs through all 32 bits before an id comes back, and does not count for others. */
const step = randomInt(2 ** 31) | 1
let last = 0

function newRequestId(): string {
  last = (last + step) >>> 0
  return `${start}-${last}` // in base 36 it would take ten times as long
}

/** Names the request before the listener answers it. */
export function identified(listener: RequestListener): RequestListener {
  return (request: IncomingMessage, response: ServerResponse) => {
    const given = request.headers['x-request-id']
    response.setHeader('X-Request-Id', requestIdFor(typeof given === 'string' ? given : undefined))
    listener(request, response)
  }
}
