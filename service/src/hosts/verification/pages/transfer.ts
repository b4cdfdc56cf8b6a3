/**
 * POST {base_url}/transfer: passing an item on in the page (spec §4.9, §5). Owner and recipient take their steps in two requests each: one
 * for what the wallet signs, one with the signature.
 */
import type { Hono } from 'hono'
import { parseTransferId } from '../../../ownership/transfer-id.ts'
import type { RateLimiter } from '../../../http/rate-limit/limiter.ts'
import { requestIdOf } from '../../../http/request.ts'
import { methodRefused, quotaHeaders } from '../../../http/responses.ts'
import type { PageTransfers, Standing, TransferRefusal } from '../../../ownership/page-transfers.ts'
import { transferPath } from '../../../pages/ownership/wallet-form.ts'
import type { TapTickets } from '../../../tap/tap-ticket.ts'
import type { Env, RequestHelpers } from '../request.ts'
import { accountIn, deadlineIn, signatureIn, stepAnswer, type StepBody, stepBodyOf, textIn } from './signed-step.ts'

export type TransferSite = {
  /** Undefined where visitors cannot pass items on. */
  readonly pageTransfers: { readonly steps: PageTransfers; readonly tickets: TapTickets } | undefined
  readonly tapLimiter?: RateLimiter | undefined
}

/** Why nothing was done, as the page words it, with the status of the answer. */
const refusals = {
  off: 404,
  over: 404,
  invalid: 400,
  badTo: 400,
  self: 400,
  expired: 400,
  unsigned: 400,
  notOwner: 403,
  another: 403,
  taken: 409,
  held: 409,
  used: 409,
  standing: 409,
  limited: 429,
  refused: 503,
} as const
type Refusal = keyof typeof refusals

export function transferRoute(
  app: Hono<Env>,
  helpers: RequestHelpers,
  { pageTransfers, tapLimiter }: TransferSite,
): void {
  app.all(transferPath, async (c) => {
    const quota = await helpers.consume(c, tapLimiter)
    const headers = quotaHeaders(quota)
    if (c.req.method !== 'POST') return methodRefused('POST', headers)
    const refuse = (reason: Refusal, more = {}) => stepAnswer(refusals[reason], { reason, ...more }, headers)
    if (pageTransfers === undefined) return refuse('off')
    if (quota?.allowed === false) return refuse('limited')
    const body = await stepBodyOf(c)
    if (body === null) return refuse('invalid')
    try {
      const outgoing = c.env?.outgoing
      const outcome = await stepOf(pageTransfers, body, outgoing && requestIdOf(outgoing))
      if (typeof outcome === 'string') return refuse(outcome)
      return 'standing' in outcome
        ? refuse('standing', { transferId: outcome.standing })
        : stepAnswer(200, outcome, headers)
    } catch (error) {
      const { status } = helpers.faultOf(error, c)
      return stepAnswer(status, { reason: 'refused' }, headers)
    }
  })
}

/** Takes one step. Throws CHAIN_UNAVAILABLE. */
async function stepOf(
  { steps, tickets }: NonNullable<TransferSite['pageTransfers']>,
  body: StepBody,
  requestId: string | undefined,
): Promise<object | Standing | TransferRefusal | Refusal> {
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
  const tap = tickets.parse(textIn(body, 'ticket'))
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
