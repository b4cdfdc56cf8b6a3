/** A facilitator checks and executes payments, in this process or behind a URL. Its reports are advice; the chain decides (on-chain.ts). */
import type { Hex } from '@touchstone/verdict'
import { GatewayFault, type ErrorCode } from '../errors.ts'
import type { PaymentChain } from '../on-chain.ts'
import type { Payment } from '../x402/payment.ts'
import { requirementsV2, type Terms } from '../x402/terms.ts'

type Verified = { readonly ok: true } | { readonly ok: false; readonly error: ErrorCode }

/** How settling went, for when the chain says «unused». `sent`: whether a transaction may be pending. `rejection`: why none was sent. */
export type Report = {
  readonly sent: 'no' | 'perhaps' | 'reverted' | 'mined'
  readonly rejection?: 'payment_rejected' | 'payment_unavailable' | undefined
}

/** `known` is a transaction sent earlier for this payment. `onSent` is called with the hash of each new one. */
export type SettleOptions = {
  readonly known: Hex | undefined
  readonly onSent: (hash: Hex) => Promise<void>
}

export type Facilitator = {
  /** Throws when no verdict was possible. */
  readonly verify: (payment: Payment) => Promise<Verified>
  readonly settle: (payment: Payment, options: SettleOptions) => Promise<Report>
  /** Returns whether it serves this scheme and network. Throws when it does not answer. */
  readonly supports: () => Promise<boolean>
}

/** Converts a payment to x402 version 2: version 1 carries the same authorization, and version 2 has the precise reasons. */
export function facilitatorInput({ signature, ...authorization }: Payment, terms: Terms) {
  const { to, value, validAfter, validBefore } = authorization
  const requirements = requirementsV2(terms, value, to)
  const texts = { value: String(value), validAfter: String(validAfter), validBefore: String(validBefore) }
  const signed = { ...authorization, ...texts }
  return {
    requirements,
    payload: { x402Version: 2, accepted: requirements, payload: { signature, authorization: signed } },
  }
}

/**
 * Translates a library's reason into an error of the buyer. Throws `payment_unavailable` for any other reason, after a `fault` beneath the
 * library, and when the provider serves another chain.
 */
export async function toBuyerError(
  reason: string,
  chain: Pick<PaymentChain, 'isRightChain'>,
  fault?: unknown,
): Promise<ErrorCode> {
  const error = Object.hasOwn(reasons, reason) ? reasons[reason] : undefined
  if (fault !== undefined || error === undefined || !(await chain.isRightChain()))
    throw new GatewayFault('payment_unavailable', { cause: fault ?? 'the facilitator gave no reason of the buyer’s' })
  return error
}

/** Reasons of x402 libraries, of both versions, that the buyer is responsible for. */
export const reasons: Readonly<Record<string, ErrorCode>> = {
  invalid_exact_evm_recipient_mismatch: 'recipient_mismatch',
  invalid_exact_evm_payload_recipient_mismatch: 'recipient_mismatch',
  invalid_exact_evm_authorization_value: 'amount_mismatch',
  invalid_exact_evm_payload_authorization_value: 'amount_mismatch',
  invalid_exact_evm_payload_authorization_value_mismatch: 'amount_mismatch',
  invalid_exact_evm_signature: 'invalid_signature',
  invalid_exact_evm_payload_signature: 'invalid_signature',
  invalid_exact_evm_failed_to_parse_signature: 'invalid_signature',
  eip6492_factory_not_allowed: 'payment_rejected',
  invalid_exact_evm_payload_authorization_valid_before: 'authorization_expired',
  invalid_exact_evm_payload_authorization_valid_after: 'authorization_not_yet_valid',
  invalid_exact_evm_insufficient_balance: 'insufficient_funds',
  insufficient_funds: 'insufficient_funds',
  invalid_exact_evm_nonce_already_used: 'nonce_already_used',
  invalid_exact_evm_transaction_simulation_failed: 'payment_rejected',
}
