/** A facilitator checks and executes payments, in this process or behind a URL. Its reports are advice; the chain decides (on-chain.ts). */
import type { Hex } from '@touchstone/verdict'
import { GatewayFault, type PaymentErrorCode } from '../errors.ts'
import type { BlockId } from '../../domain/chain.ts'
import type { PaymentChain } from '../on-chain.ts'
import type { Payment } from '../x402/payment.ts'
import type { Call } from './call-batch.ts'

type Verified = { readonly ok: true } | { readonly ok: false; readonly error: PaymentErrorCode }

/**
 * How settling went. `sent`: whether a transaction may be pending; reverted: one was mined and moved nothing. `paid`: the transfer, where the
 * facilitator has seen it on chain. `transaction`: the hash that a remote facilitator names. `rejection`: why none was sent.
 * `retryAfter`: seconds until it may be.
 */
export type SettlementReport = {
  readonly sent: 'no' | 'perhaps' | 'reverted' | 'mined'
  readonly paid?: { readonly transaction: Hex; readonly block: BlockId }
  readonly transaction?: Hex
  readonly rejection?: PaymentErrorCode | undefined
  readonly retryAfter?: number
}

export type Facilitator = AsyncDisposable & {
  /** Throws when no verdict was possible. */
  readonly verify: (payment: Payment) => Promise<Verified>
  /** `settlement` is the row of the transaction that an earlier process sent for this payment. */
  readonly settle: (payment: Payment, settlement: bigint | null) => Promise<SettlementReport>
  /** Returns whether it serves this scheme and network. Throws when it does not answer. */
  readonly supports: () => Promise<boolean>
  /** Sends a call in a transaction with others, and resolves when it is mined or was not sent. A remote facilitator cannot. */
  readonly execute?: (call: Omit<Call, 'gasLimit'>) => Promise<'sent' | 'rejected'>
  /** Follows transactions that no living process follows. */
  readonly adopt: () => Promise<void>
}

/** Returns an error of the buyer. Throws `payment_unavailable` when there is none, and when the provider serves another chain. */
export async function buyerError(
  error: PaymentErrorCode | undefined,
  chain: Pick<PaymentChain, 'isRightChain'>,
): Promise<PaymentErrorCode> {
  if (error === undefined || !(await chain.isRightChain()))
    throw new GatewayFault('payment_unavailable', { cause: 'the facilitator gave no reason of the buyer’s' })
  return error
}
