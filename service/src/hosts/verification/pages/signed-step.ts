/** Requests of a page's own script that carry what a wallet signed. They are JSON in, JSON out, for this host's pages only. */
import type { Context, Hono } from 'hono'
import type { Hex } from '@touchstone/verdict'
import { parseAddress } from '../../../domain/address.ts'
import type { RateLimiter } from '../../../http/rate-limit/limiter.ts'
import { requestIdOf } from '../../../http/request.ts'
import { methodRefused, quotaHeaders } from '../../../http/responses.ts'
import { parseJsonObject } from '../../../lib/json.ts'
import { readBodyOf, type Env, type Headers, type RequestHelpers } from '../request.ts'
import { isOwnPost } from './response.ts'

/** A ticket, addresses and the signature of a contract wallet in hex. */
const maxBytes = 16_384
const longestSignature = 4_096

export type StepBody = Readonly<Record<string, unknown>>

/** Refusals that every step has, with the status of the answer. The page words them. */
const commonRefusals = {
  off: 404,
  invalid: 400,
  expired: 400,
  unsigned: 400,
  taken: 409,
  used: 409,
  limited: 429,
  refused: 503,
} as const

/** Takes one step, for the requests of one path. */
export type TakeStep<Reason extends string = never> = (
  body: StepBody,
  answers: {
    readonly done: (body: object) => Response
    readonly refuse: (reason: Reason | keyof typeof commonRefusals, more?: object) => Response
  },
  requestId: string | undefined,
) => Promise<Response>

type StepRoute<Reason extends string> = {
  readonly limiter: RateLimiter | undefined
  readonly refusals: Readonly<Record<Reason, number>>
  /** Undefined where the operator does not offer the steps. */
  readonly take: TakeStep<Reason> | undefined
}

/** Serves the steps of one path. */
export function stepRoute<Reason extends string = never>(
  app: Hono<Env>,
  helpers: RequestHelpers,
  path: string,
  { limiter, refusals, take }: StepRoute<Reason>,
): void {
  const statuses = { ...commonRefusals, ...refusals }
  app.all(path, async (c) => {
    const quota = await helpers.consume(c, limiter)
    const headers = quotaHeaders(quota)
    if (c.req.method !== 'POST') return methodRefused('POST', headers)
    const answers: Parameters<TakeStep<Reason>>[1] = {
      done: (body) => stepAnswer(200, body, headers),
      refuse: (reason, more = {}) => stepAnswer(statuses[reason], { reason, ...more }, headers),
    }
    if (take === undefined) return answers.refuse('off')
    if (quota?.allowed === false) {
      const wait = { 'Retry-After': String(quota.resetSeconds) }
      return stepAnswer(statuses.limited, { reason: 'limited' }, { ...headers, ...wait })
    }
    let body: StepBody | null = null
    try {
      body = await stepBodyOf(c)
      if (body === null) return answers.refuse('invalid')
      const outgoing = c.env?.outgoing
      return await take(body, answers, outgoing && requestIdOf(outgoing))
    } catch (error) {
      const { status } = helpers.faultOf(error, c)
      // A step that is signed may have been sent before the fault.
      const reason = body?.['signature'] === undefined ? 'refused' : 'unsure'
      return stepAnswer(status, { reason }, headers)
    }
  })
}

/** Reads the body. It is null unless the script of a page of this host sends JSON: no form can, and browsers say where a request comes from. */
async function stepBodyOf(c: Context<Env>): Promise<StepBody | null> {
  if (!isOwnPost(c, ['application/json'])) return null
  const body = await readBodyOf(c, { maxBytes, timeoutMs: 5_000 })
  return body.ok ? parseJsonObject(body.text) : null
}

/** An answer for the page of this host only: without CORS, no script of another origin reads it. */
function stepAnswer(status: number, body: unknown, headers: Headers): Response {
  const fixed = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
  return new Response(JSON.stringify(body), { status, headers: { ...fixed, ...headers } })
}

export function textIn(body: StepBody, name: string): string {
  const value = body[name]
  return typeof value === 'string' ? value : ''
}

/** Returns an account in lower case; null for none, and for the zero address, which owns nothing. */
export function accountIn(body: StepBody, name: string): Hex | null {
  const address = parseAddress(textIn(body, name))
  return address === null || BigInt(address) === 0n ? null : address
}

/** Returns the signature in lower case, null where it is malformed, undefined where there is none. */
export function signatureIn(body: StepBody): Hex | null | undefined {
  if (body['signature'] === undefined) return undefined
  const text = textIn(body, 'signature').toLowerCase()
  return isSignature(text) ? text : null
}

/** Returns unix seconds, or null. */
export function deadlineIn(body: StepBody): bigint | null {
  const text = textIn(body, 'deadline')
  return /^\d{1,12}$/.test(text) ? BigInt(text) : null
}

function isSignature(text: string): text is Hex {
  return text.length <= 2 + 2 * longestSignature && /^0x(?:[0-9a-f]{2})+$/.test(text)
}
