/**
 * The ledger of payments: one row per (asset, payer, nonce), which ties a payment to one request and holds its proof from before the
 * payment is executed. One authorization buys one proof for one request. The store fits these types (store/payments.ts).
 */
import type { Hex } from '@touchstone/verdict'
import type { Payment } from './payment.ts'

/** open: taken in, nothing sent. settling: proof kept, a transfer may be on its way. done: paid. dead: proven never to pay. */
type PaymentState = 'open' | 'settling' | 'done' | 'dead'
export type PaymentKey = { readonly payer: Hex; readonly nonce: Hex }

/** `payload` is the payment as JSON; `claimed` says that a process is at work on the row; `reason` is why it is dead. */
export type PaymentRow = PaymentKey & {
  readonly state: PaymentState
  readonly requestHash: string
  readonly payload: string
  readonly claimed: boolean
  readonly proof: string | null
  readonly fromBlock: bigint | null
  readonly transaction: Hex | null
  readonly reason: string | null
  readonly answer: string | null
}

type NewPayment = PaymentKey & {
  readonly requestHash: string
  readonly payload: string
  readonly validBefore: bigint
}

/** Each function is one statement. `claim` is a UUID of the caller's; a claim ends by itself after `seconds`. */
export type Ledger = {
  readonly find: (key: PaymentKey) => Promise<PaymentRow | undefined>
  /** Takes a payment in; false when a row stands in the way. An `open` row whose claim has ended does not. */
  readonly claim: (payment: NewPayment, claim: string, seconds: number) => Promise<boolean>
  /** Forgets an `open` row of this claim. */
  readonly release: (key: PaymentKey, claim: string) => Promise<void>
  /** open → settling, only while the claim is ours. */
  readonly settling: (
    key: PaymentKey,
    claim: string,
    kept: { readonly proof: string; readonly fromBlock: bigint; readonly seconds: number },
  ) => Promise<boolean>
  /** Takes over a `settling` or `done` row on which nobody is at work. */
  readonly lease: (key: PaymentKey, claim: string, seconds: number) => Promise<PaymentRow | undefined>
  readonly free: (key: PaymentKey, claim: string) => Promise<void>
  /** Remembers the newest transaction sent for a payment. */
  readonly sent: (key: PaymentKey, transaction: Hex) => Promise<void>
  /** settling → done. The first answer stays; it is returned. */
  readonly done: (key: PaymentKey, paid: { readonly transaction: Hex; readonly answer: string }) => Promise<string>
  /** settling → dead. */
  readonly dead: (key: PaymentKey, reason: string) => Promise<void>
  /** Forgets a `settling` row of this claim for which nothing was paid and nothing is on its way. */
  readonly drop: (key: PaymentKey, claim: string) => Promise<void>
  /** Rows to look at again: all `settling`, and those `done` within `recheckSeconds`; those not looked at longest first. */
  readonly unfinished: (limit: number, recheckSeconds: number) => Promise<readonly PaymentKey[]>
  /** Forgets rows settled more than `days` ago; from then on the nonce on chain refuses a replay. */
  readonly prune: (days: number) => Promise<number>
}

export function payloadOf(payment: Payment): string {
  return JSON.stringify(payment, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
}

export function paymentOf(payload: string): Payment {
  const { from, to, value, validAfter, validBefore, nonce, signature } = JSON.parse(payload) as Record<
    keyof Payment,
    string
  >
  return {
    from: from as Hex,
    to: to as Hex,
    nonce: nonce as Hex,
    signature: signature as Hex,
    value: BigInt(value),
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
  }
}
