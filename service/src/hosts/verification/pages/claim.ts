/**
 * POST {base_url}/claim: a page that was shown after a fresh tap makes its visitor the owner of the item, in two requests: one for what the
 * wallet signs, one with the signature. The page has the ticket for it, so that another site cannot send them.
 */
import type { Context, Hono } from 'hono'
import type { Hex } from '@touchstone/verdict'
import { parseAddress } from '../../../domain/address.ts'
import { readWebBody } from '../../../http/body.ts'
import type { RateLimiter } from '../../../http/rate-limit/limiter.ts'
import { requestIdOf } from '../../../http/request.ts'
import { methodRefused, quotaHeaders } from '../../../http/responses.ts'
import { parseJsonObject } from '../../../lib/json.ts'
import type { Claims } from '../../../ownership/claims.ts'
import { claimPath } from '../../../pages/item/ownership.ts'
import type { TapTickets } from '../../../tap/tap-ticket.ts'
import type { Env, Headers, RequestHelpers } from '../request.ts'

export type ClaimSite = {
  /** Undefined where visitors cannot claim items. */
  readonly pageClaims: { readonly claims: Claims; readonly tickets: TapTickets } | undefined
  readonly tapLimiter?: RateLimiter | undefined
}

/** A ticket, an address and the signature of a contract wallet in hex. */
const maxBytes = 16_384
const longestSignature = 4_096

/** Why nothing was claimed, as the page words it, with the status of the answer. */
const refusals = {
  off: 404,
  invalid: 400,
  expired: 400,
  unsigned: 400,
  taken: 409,
  limited: 429,
  refused: 503,
} as const

export function claimRoute(app: Hono<Env>, helpers: RequestHelpers, { pageClaims, tapLimiter }: ClaimSite): void {
  app.all(claimPath, async (c) => {
    const quota = await helpers.consume(c, tapLimiter)
    const headers = quotaHeaders(quota)
    if (c.req.method !== 'POST') return methodRefused('POST', headers)
    const refuse = (reason: keyof typeof refusals) => answer(refusals[reason], { reason }, headers)
    if (pageClaims === undefined) return refuse('off')
    const { claims, tickets } = pageClaims
    if (quota?.allowed === false) return refuse('limited')
    const body = isOwnScript(c) ? await bodyOf(c.req.raw) : null
    const claimant = parseAddress(textIn(body, 'claimant'))
    if (body === null || claimant === null || BigInt(claimant) === 0n) return refuse('invalid')
    const tap = tickets.parse(textIn(body, 'ticket'))
    if (tap === null) return refuse('expired')
    try {
      if (body['signature'] === undefined) {
        const terms = await claims.terms({ ...tap, claimant })
        if (terms === null) return refuse('taken')
        return answer(200, { ...terms, deadline: String(terms.deadline) }, headers)
      }
      const deadline = textIn(body, 'deadline')
      const signature = textIn(body, 'signature').toLowerCase()
      if (!/^\d{1,12}$/.test(deadline) || !isSignature(signature)) return refuse('invalid')
      const signed = { ...tap, claimant, deadline: BigInt(deadline), signature }
      const outgoing = c.env?.outgoing
      const outcome = await claims.claim(signed, outgoing && requestIdOf(outgoing))
      return typeof outcome === 'string' ? refuse(outcome) : answer(200, outcome, headers)
    } catch (error) {
      const { status } = helpers.faultOf(error, c)
      return answer(status, { reason: 'refused' }, headers)
    }
  })
}

/** An answer for the page of this host only: without CORS, no script of another origin reads it. */
function answer(status: number, body: unknown, headers: Headers): Response {
  const fixed = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
  return new Response(JSON.stringify(body), { status, headers: { ...fixed, ...headers } })
}

/** Returns whether the script of a page of this host sends JSON: no form can, and browsers say where a request comes from. */
function isOwnScript(c: Context<Env>): boolean {
  const isJson = /^application\/json\s*(?:;|$)/i.test(c.req.header('content-type') ?? '')
  return isJson && ['same-origin', 'none'].includes(c.req.header('sec-fetch-site') ?? 'none')
}

async function bodyOf(request: Request): Promise<Record<string, unknown> | null> {
  const body = await readWebBody(request, { maxBytes, timeoutMs: 5_000 })
  return body.ok ? parseJsonObject(body.text) : null
}

function textIn(body: Record<string, unknown> | null, name: string): string {
  const value = body?.[name]
  return typeof value === 'string' ? value : ''
}

function isSignature(text: string): text is Hex {
  return text.length <= 2 + 2 * longestSignature && /^0x(?:[0-9a-f]{2})+$/.test(text)
}
