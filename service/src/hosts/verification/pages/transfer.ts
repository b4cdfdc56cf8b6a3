/**
 * POST {base_url}/transfer: passing an item on in the page (spec §4.9, §5). Owner and recipient take their steps in two requests each: one
 * for what the wallet signs, one with the signature.
 */
import type { Hono } from 'hono'
import { parseTransferId } from '../../../ownership/transfer-id.ts'
import type { PageTransfers, Standing, TransferRefusal } from '../../../ownership/page-transfers.ts'
import { transferPath } from '../../../pages/ownership/wallet-form.ts'
import type { TapTickets } from '../../../tap/tap-ticket.ts'
import type { Env, RequestHelpers, RouteSite } from '../request.ts'
import { accountIn, deadlineIn, signatureIn, type StepBody, stepRoute, type TakeStep, textIn } from './signed-step.ts'

export type TransferSite = RouteSite & {
  /** Undefined where visitors cannot pass items on. */
  readonly pageTransfers: { readonly steps: PageTransfers; readonly tickets: TapTickets } | undefined
}

/** Why nothing was done, besides the reasons of every step. */
const refusals = {
  over: 404,
  badTo: 400,
  self: 400,
  notOwner: 403,
  another: 403,
  held: 409,
  standing: 409,
} as const

export function transferRoute(
  app: Hono<Env>,
  helpers: RequestHelpers,
  { pageTransfers, tapLimiter }: TransferSite,
): void {
  stepRoute(app, helpers, transferPath, {
    limiter: tapLimiter,
    refusals,
    take: pageTransfers && takeStep(pageTransfers),
  })
}

function takeStep(site: NonNullable<TransferSite['pageTransfers']>): TakeStep<keyof typeof refusals> {
  return async (body, { done, refuse }, requestId) => {
    const outcome = await stepOf(site, body, requestId)
    if (typeof outcome === 'string') return refuse(outcome)
    return 'standing' in outcome ? refuse('standing', { transferId: outcome.standing }) : done(outcome)
  }
}

/** Takes one step. Throws CHAIN_UNAVAILABLE. */
async function stepOf(
  { steps, tickets }: NonNullable<TransferSite['pageTransfers']>,
  body: StepBody,
  requestId: string | undefined,
): Promise<object | Standing | TransferRefusal | 'invalid' | 'expired' | 'badTo'> {
  const step = textIn(body, 'step')
  const account = accountIn(body, 'account')
  const signature = signatureIn(body)
  if (account === null || signature === null) return 'invalid'
  if (body['transferId'] !== undefined && step !== 'offer') {
    const transferId = parseTransferId(textIn(body, 'transferId'))
    if (transferId === null) return 'over'
    const input = { transferId, account }
    if (step === 'accept')
      return signature === undefined ? steps.acceptTerms(input) : steps.accept({ ...input, signature }, requestId)
    if (step === 'withdraw')
      return signature === undefined ? steps.cancelTerms(input) : steps.cancel({ ...input, signature }, requestId)
    return 'invalid'
  }
  if (step !== 'offer' && step !== 'withdraw') return 'invalid'
  const tap = await tickets.parse(textIn(body, 'ticket'))
  if (tap === null) return 'expired'
  if (step === 'withdraw') {
    const input = { ...tap, account }
    return signature === undefined ? steps.withdrawalTerms(input) : steps.withdraw({ ...input, signature }, requestId)
  }
  const to = accountIn(body, 'to')
  if (to === null) return 'badTo'
  const input = { ...tap, account, to }
  if (signature === undefined) return steps.offerTerms(input)
  const deadline = deadlineIn(body)
  return deadline === null ? 'invalid' : steps.offer({ ...input, deadline, signature }, requestId)
}
