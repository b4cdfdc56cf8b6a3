/**
 * The answers of POST {gateway_url}/verify that carry no proof (spec §4.8, §7), and the deadlines that lead to them. Codes, statuses and
 * messages come from the error table.
 */
import type { Hex } from '@touchstone/verdict'
import { withDeadline } from '../lib/async/deadline.ts'
import { sleep } from '../lib/async/sleep.ts'
import { errorRows, type GatewayCode } from '../lib/error-codes.ts'
import type { PaymentKey } from './key.ts'

export type PaymentErrorCode = GatewayCode

type ErrorAnswer = Readonly<{ error: PaymentErrorCode; status: number; message: string; retryAfter?: number }>

/** 402 is only for what the buyer can mend by paying (again). An unknown outcome is 503, and the same header is tried again. */
export const errors = Object.fromEntries(
  errorRows.flatMap(({ gateway, meaning }) => (gateway ? [[gateway.error, { message: meaning, ...gateway }]] : [])),
) as unknown as Readonly<Record<PaymentErrorCode, ErrorAnswer>>

/** `transaction`: the transfer, or null while none was sent. `channel`: what a purchase through a channel did to it. */
export type PaymentReceipt = { readonly key: PaymentKey; readonly transaction: Hex | null; readonly channel?: object }

/**
 * The result of a checkout: the bytes of the proof, or an error code. A pending settlement has a receipt too. `wasDelivered`: an earlier
 * response had this proof. `recorded` resolves once this process has stored it in the ledger. `delivers` is marked as not delivered until
 * this response has been sent. `corrective` replaces the header of a 402, and `retryAfter` (seconds) that of the code. `isAbandoned`: the client hung up before its payment was stored.
 */
export type PaymentOutcome =
  | ({
      readonly kind: 'proof'
      readonly body: string
      readonly wasDelivered?: boolean
      readonly recorded?: Promise<unknown>
      readonly delivers?: PaymentKey | undefined
    } & PaymentReceipt)
  | {
      readonly kind: 'error'
      readonly error: PaymentErrorCode
      readonly receipt?: PaymentReceipt
      readonly retryAfter?: number
      readonly corrective?: string
      readonly isAbandoned?: true
    }

/** The outcome of one attempt; `retry` while another process or request is at work on the same payment. */
export type Attempted = PaymentOutcome | 'retry'

/** Creates attempts that are at work once for each name. A request for the same purchase joins. One for another purchase tries again later. */
export function createSharedAttempts<Request extends { readonly closed: AbortSignal }>(
  isSame: (one: Request, other: Request) => boolean,
) {
  const underway = new Map<string, { readonly request: Request; readonly outcome: Promise<Attempted> }>()
  return {
    isIdle: () => underway.size === 0,
    async attempt(name: string, request: Request, sell: () => Promise<Attempted>): Promise<Attempted> {
      const first = underway.get(name)
      if (first === undefined) {
        const outcome = sell().finally(() => underway.delete(name))
        underway.set(name, { request, outcome })
        return outcome
      }
      const ended = await first.outcome
      const isPending = ended !== 'retry' && ended.kind === 'error' && ended.error === 'settlement_pending'
      // Only the client that began it has disconnected.
      const isLeft = isPending && first.request.closed.aborted && !request.closed.aborted
      return isLeft || !isSame(first.request, request) ? 'retry' : ended
    },
  }
}

export function paymentFailure(error: PaymentErrorCode, receipt?: PaymentReceipt): PaymentOutcome {
  return { kind: 'error', error, ...(receipt && { receipt }) }
}

/** The client hung up before its payment was stored, so that no answer is read. */
export const abandoned: PaymentOutcome = { kind: 'error', error: 'settlement_pending', isAbandoned: true }

/** A dependency of the gateway failed. `error` is the answer to the buyer; `cause` is for the log only. */
export class GatewayFault extends Error {
  readonly error: PaymentErrorCode

  constructor(error: PaymentErrorCode, options?: { cause?: unknown }) {
    super(error, options)
    this.name = 'GatewayFault'
    this.error = error
  }
}

/** Errors whose answer says that nothing was charged. */
export const uncharged: ReadonlySet<unknown> = new Set(
  errorRows.flatMap(({ gateway }) => (gateway?.uncharged === true ? [gateway.error] : [])),
)

/** Returns whether the buyer would read in the answer that nothing was charged. */
export function saysUncharged(fault: unknown): boolean {
  return fault instanceof GatewayFault && uncharged.has(fault.error)
}

/** A purchase waits this long for one statement of the ledger, and for one answer of the chain. */
export const ledgerMs = 6_000
export const chainMs = 5_000

/** Returns the result of `work`, or throws a fault with this code when it fails or takes longer. */
export function within<T>(milliseconds: number, error: PaymentErrorCode, work: Promise<T>): Promise<T> {
  return withDeadline(work, milliseconds).catch((cause: unknown) => {
    throw cause instanceof GatewayFault ? cause : new GatewayFault(error, { cause })
  })
}

/** Repeats an attempt while its outcome is `retry`. `until` is a moment of `performance.now()`. */
export async function attemptUntil(until: number, attempt: () => Promise<Attempted>): Promise<PaymentOutcome> {
  while (performance.now() < until) {
    const outcome = await attempt()
    if (outcome !== 'retry') return outcome
    await sleep(retryMs)
  }
  return paymentFailure('settlement_pending')
}

const retryMs = 400
