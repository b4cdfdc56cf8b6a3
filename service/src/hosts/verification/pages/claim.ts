/**
 * POST {base_url}/claim: a page after a fresh tap makes its visitor the owner of the item. It has two requests: one for what the wallet
 * signs, one with the signature. The page has the ticket for it, so that another site cannot send them.
 */
import type { Hono } from 'hono'
import type { RateLimiter } from '../../../http/rate-limit/limiter.ts'
import { requestIdOf } from '../../../http/request.ts'
import { methodRefused, quotaHeaders } from '../../../http/responses.ts'
import type { Claims } from '../../../ownership/claims.ts'
import { claimPath } from '../../../pages/ownership/wallet-form.ts'
import type { TapTickets } from '../../../tap/tap-ticket.ts'
import type { Env, RequestHelpers } from '../request.ts'
import { accountIn, deadlineIn, signatureIn, stepAnswer, stepBodyOf, textIn } from './signed-step.ts'

export type ClaimSite = {
  /** Undefined where visitors cannot claim items. */
  readonly pageClaims: { readonly claims: Claims; readonly tickets: TapTickets } | undefined
  readonly tapLimiter?: RateLimiter | undefined
}

/** Why nothing was claimed, as the page words it, with the status of the answer. */
const refusals = {
  off: 404,
  invalid: 400,
  expired: 400,
  unsigned: 400,
  taken: 409,
  used: 409,
  limited: 429,
  refused: 503,
} as const

export function claimRoute(app: Hono<Env>, helpers: RequestHelpers, { pageClaims, tapLimiter }: ClaimSite): void {
  app.all(claimPath, async (c) => {
    const quota = await helpers.consume(c, tapLimiter)
    const headers = quotaHeaders(quota)
    if (c.req.method !== 'POST') return methodRefused('POST', headers)
    const refuse = (reason: keyof typeof refusals) => stepAnswer(refusals[reason], { reason }, headers)
    if (pageClaims === undefined) return refuse('off')
    const { claims, tickets } = pageClaims
    if (quota?.allowed === false) return refuse('limited')
    const body = await stepBodyOf(c)
    const claimant = accountIn(body, 'account')
    if (body === null || claimant === null) return refuse('invalid')
    const tap = tickets.parse(textIn(body, 'ticket'))
    if (tap === null) return refuse('expired')
    const [signature, deadline] = [signatureIn(body), deadlineIn(body)]
    try {
      if (signature === undefined) {
        const terms = await claims.terms({ ...tap, claimant })
        if (terms === null) return refuse('taken')
        return stepAnswer(200, { ...terms, deadline: String(terms.deadline) }, headers)
      }
      if (deadline === null || signature === null) return refuse('invalid')
      const outgoing = c.env?.outgoing
      const outcome = await claims.claim({ ...tap, claimant, deadline, signature }, outgoing && requestIdOf(outgoing))
      return typeof outcome === 'string' ? refuse(outcome) : stepAnswer(200, outcome, headers)
    } catch (error) {
      const { status } = helpers.faultOf(error, c)
      return stepAnswer(status, { reason: 'refused' }, headers)
    }
  })
}
