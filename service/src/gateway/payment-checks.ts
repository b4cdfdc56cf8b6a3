/** What can be said of a payment without asking anyone: its terms, its amount, its signature, its times. */
import { attestationSigner } from '@touchstone/verdict'
import { hashTypedData } from 'viem'
import type { ErrorCode } from './answers.ts'
import type { Payment, Presented } from './payment.ts'
import { chainId, requirementsV2, type Terms } from './terms.ts'

export const transferTypes = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** A facilitator needs this many seconds to get a transfer mined. */
const settlingSeconds = 6n

/**
 * Why this is no signature of an account, or undefined. Lengths other than 65 bytes are of smart wallets, which the chain alone can
 * judge. A dead provider makes the facilitator's library report a bad signature, so this is checked before it.
 */
export function signatureRefusal(payment: Payment, terms: Terms): ErrorCode | undefined {
  if (payment.signature.length !== 132) return undefined
  const { signature, ...message } = payment
  const digest = hashTypedData({
    domain: { name: terms.tokenName, version: terms.tokenVersion, chainId, verifyingContract: terms.asset },
    types: transferTypes,
    primaryType: 'TransferWithAuthorization',
    message,
  })
  return attestationSigner(digest, signature) === payment.from ? undefined : 'invalid_signature'
}

/** Why the payment is not what the offer asks for today, or undefined. */
export function termsRefusal({ payment, accepted }: Presented, terms: Terms): ErrorCode | undefined {
  if (accepted !== undefined && !isSameOffer(accepted, terms)) return 'invalid_payment_requirements'
  if (payment.to !== terms.payTo.toLowerCase()) return 'recipient_mismatch'
  return payment.value === terms.price ? undefined : 'amount_mismatch'
}

/** `now` is in unix seconds. */
export function timeRefusal({ validAfter, validBefore }: Payment, now: bigint): ErrorCode | undefined {
  if (validBefore < now + settlingSeconds) return 'authorization_expired'
  return validAfter >= now ? 'authorization_not_yet_valid' : undefined
}

/** Addresses count in any case; further keys of the buyer's do not matter. */
function isSameOffer(accepted: Readonly<Record<string, unknown>>, terms: Terms): boolean {
  const { extra: domain, ...wanted } = requirementsV2(terms)
  const extra = (accepted['extra'] ?? {}) as Readonly<Record<string, unknown>>
  return (
    Object.entries(wanted).every(([name, value]) => same(accepted[name], value)) &&
    Object.entries(domain).every(([name, value]) => extra[name] === value)
  )
}

function same(found: unknown, wanted: string | number): boolean {
  if (typeof found === 'string' && typeof wanted === 'string') return found.toLowerCase() === wanted.toLowerCase()
  return found === wanted
}
