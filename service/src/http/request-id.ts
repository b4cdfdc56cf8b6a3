/** `X-Request-Id` names one request in its response and in the log. */
import { randomInt } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { getHeader } from './headers.ts'

const acceptable = /^[\w.-]{1,64}$/

/** Returns the client's id when it is short and plain, so that one id runs through both systems; else a new one. */
export function requestIdFor(given: string | undefined): string {
  return given !== undefined && acceptable.test(given) ? given : newRequestId()
}

const start = randomInt(2 ** 40).toString(36)
/** Odd, so that the counter passes all 32-bit values before it repeats; random, so that ids do not reveal the number of requests. */
const step = randomInt(2 ** 31) | 1
let last = 0

function newRequestId(): string {
  last = (last + step) >>> 0
  return `${start}-${last}` // base 36 would take ten times as long
}

/** Sets the id of each request before the listener responds. */
export function identified(listener: RequestListener): RequestListener {
  return (request, response) => {
    response.setHeader('X-Request-Id', requestIdFor(getHeader(request, 'x-request-id')))
    listener(request, response)
  }
}
