/**
 * POST {base_url}/claim: a page after a fresh tap makes its visitor the owner of the item. It has two requests: one for what the wallet
 * signs, one with the signature. The page has the ticket for it, so that another site cannot send them.
 */
import type { Hono } from 'hono'
import type { Claims } from '../../../ownership/claims.ts'
import { claimPath } from '../../../pages/ownership/wallet-form.ts'
import type { TapTickets } from '../../../tap/tap-ticket.ts'
import type { Env, RequestHelpers, RouteSite } from '../request.ts'
import { accountIn, deadlineIn, signatureIn, stepRoute, type TakeStep, textIn } from './signed-step.ts'

export type ClaimSite = RouteSite & {
  /** Undefined where visitors cannot claim items. */
  readonly pageClaims: { readonly claims: Claims; readonly tickets: TapTickets } | undefined
}

export function claimRoute(app: Hono<Env>, helpers: RequestHelpers, { pageClaims, tapLimiter }: ClaimSite): void {
  stepRoute(app, helpers, claimPath, {
    limiter: tapLimiter,
    refusals: {},
    take: pageClaims && takeClaim(pageClaims),
  })
}

function takeClaim({ claims, tickets }: NonNullable<ClaimSite['pageClaims']>): TakeStep {
  return async (body, { done, refuse }, requestId) => {
    const claimant = accountIn(body, 'account')
    if (claimant === null) return refuse('invalid')
    const tap = await tickets.parse(textIn(body, 'ticket'))
    if (tap === null) return refuse('expired')
    const [signature, deadline] = [signatureIn(body), deadlineIn(body)]
    if (signature === undefined) {
      const terms = await claims.terms({ ...tap, claimant })
      return terms === null ? refuse('taken') : done({ ...terms, deadline: String(terms.deadline) })
    }
    if (deadline === null || signature === null) return refuse('invalid')
    const outcome = await claims.claim({ ...tap, claimant, deadline, signature }, requestId)
    return typeof outcome === 'string' ? refuse(outcome) : done(outcome)
  }
}
