/** Whoever checks and executes payments: in this process or by URL. What it reports is advice; the chain decides (payment-chain.ts). */
import type { Hex } from '@touchstone/verdict'
import type { ErrorCode } from './answers.ts'
import type { Payment } from './payment.ts'
import { requirementsV2, type Terms } from './terms.ts'

type Verified = { readonly ok: true } | { readonly ok: false; readonly error: ErrorCode }

/**
 * How settling went, as far as it matters when the chain says «unused». sent: whether a transaction may be on its way.
 * refusal: the transaction was certainly not sent, for this reason.
 */
export type Report = {
  readonly sent: 'no' | 'perhaps' | 'reverted' | 'mined'
  readonly refusal?: 'payment_rejected' | 'payment_unavailable' | undefined
}

/** `known` is a transaction sent earlier for this payment; `onSent` hears of each new one. */
export type SettleOptions = {
  readonly known: Hex | undefined
  readonly onSent: (hash: Hex) => Promise<void>
}

export type Facilitator = {
  /** It throws where no judgement was possible. */
  readonly verify: (payment: Payment) => Promise<Verified>
  readonly settle: (payment: Payment, options: SettleOptions) => Promise<Report>
  /** Whether it serves this scheme and network; it throws without an answer. */
  readonly supports: () => Promise<boolean>
}

/** A payment in the form of x402 version 2: version 1 carries the same authorization, and version 2 has the clean reasons. */
export function facilitatorInput(
  { from, to, value, validAfter, validBefore, nonce, signature }: Payment,
  terms: Terms,
) {
  const requirements = requirementsV2(terms, value, to)
  const authorization = {
    from,
    to,
    value: value.toString(),
    validAfter: validAfter.toString(),
    validBefore: validBefore.toString(),
    nonce,
  }
  return {
    requirements,
    payload: { x402Version: 2, accepted: requirements, payload: { signature, authorization } },
  }
}

/** The reasons of x402 libraries, of both versions, that blame the buyer. What is not here is nobody's fault but ours: 503. */
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
