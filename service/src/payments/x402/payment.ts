/**
 * A payment on the wire. It is `X-PAYMENT` (x402 version 1) or `PAYMENT-SIGNATURE` (version 2), both the base64 of a JSON object around the
 * same EIP-3009 authorization (spec §4.8, §5). Here are its decoding and the checks that need no RPC.
 */
import { domainSeparator, type Hex } from '@touchstone/verdict'
import { keccak256, stringToHex } from 'viem/utils'
import { z } from 'zod'
import { caipNetwork, chainName } from '../../domain/chain.ts'
import { isObject, parseJsonObject, type JsonObject } from '../../lib/json.ts'
import type { PaymentErrorCode } from '../errors.ts'
import { channelScheme, type Deposit } from '../channels/channel.ts'
import { account, amountOf, anyBytes, hexOfLength } from './fields.ts'
import { parsePaymentIdentifier } from './identifier.ts'
import { maxTimeoutSeconds, requirementsV2, tokenDomain, type PaymentTerms } from './terms.ts'
import { memoizeLast } from '../../lib/memoize.ts'
import { recoverSigner } from '../../lib/secp256k1.ts'
import { encodeAddress, encodeWord } from '../../lib/words.ts'

/** An EIP-712 `TransferWithAuthorization` of the payment token with its signature; hex in lower case, times in unix seconds. */
export type Payment = {
  readonly from: Hex
  readonly to: Hex
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
  readonly signature: Hex
  /** The channel that it pays into, instead of the seller: it is a `ReceiveWithAuthorization` of the collector then. */
  readonly deposit?: Deposit | undefined
}
/** `accepted` are the terms that a version 2 buyer sends back, and `identifier` its name for this purchase. */
export type Presented = {
  readonly payment: Payment
  readonly accepted?: JsonObject | undefined
  readonly identifier?: string | undefined
}
type Decoded =
  | ({ readonly kind: 'payment' } & Presented)
  /** A payment through a channel, whose payload is not read yet. */
  | {
      readonly kind: 'channel'
      readonly payload: unknown
      readonly accepted: JsonObject
      readonly identifier: string | undefined
    }
  | { readonly kind: 'none' }
  | { readonly kind: 'error'; readonly error: PaymentErrorCode }

const maxHeaderLength = 8_192

/** Decodes the payment of a request from its two headers. Version 2 wins when both are present. */
export function decodePayment(xPayment: string | undefined, paymentSignature: string | undefined): Decoded {
  const text = (paymentSignature ?? xPayment)?.trim()
  if (text === undefined) return { kind: 'none' }
  // Standard base64, padding optional. Two headers of one name arrive joined by a comma, which is not base64.
  const isBase64 = text.length <= maxHeaderLength && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
  const envelope = isBase64 ? parseJsonObject(Buffer.from(text, 'base64').toString('utf8')) : null
  if (envelope === null) return failed('invalid_payload')
  return paymentSignature === undefined ? decodeV1(envelope) : decodeV2(envelope)
}

function decodeV1({ x402Version, scheme, network, payload }: JsonObject): Decoded {
  if (x402Version !== 1) return failed('invalid_x402_version')
  if (scheme !== 'exact') return failed('unsupported_scheme')
  if (network !== chainName) return failed('invalid_network')
  return decodePayload(payload)
}

function decodeV2(envelope: JsonObject): Decoded {
  const { x402Version, accepted, payload } = envelope
  if (x402Version !== 2) return failed('invalid_x402_version')
  if (!isObject(accepted)) return failed('invalid_payment_requirements')
  const { scheme, network } = accepted
  if (scheme !== 'exact' && scheme !== channelScheme) return failed('unsupported_scheme')
  if (network !== caipNetwork) return failed('invalid_network')
  const identifier = parsePaymentIdentifier(envelope)
  if (identifier === null) return failed('invalid_payment_identifier')
  if (scheme === 'exact') return decodePayload(payload, { accepted, identifier })
  return { kind: 'channel', payload, accepted, identifier }
}

function decodePayload(payload: unknown, more: Omit<Presented, 'payment'> = {}): Decoded {
  const { data: payment } = paymentSchema.safeParse(payload)
  return payment === undefined ? failed('invalid_payload') : { kind: 'payment', payment, ...more }
}

const paymentSchema = z
  .object({
    signature: anyBytes.transform(withUsualParity),
    authorization: z.object({
      from: account,
      to: account,
      value: amountOf(256),
      validAfter: amountOf(256),
      validBefore: amountOf(256),
      nonce: hexOfLength(32),
    }),
  })
  .transform(({ signature, authorization }): Payment => ({ ...authorization, signature }))

/** Some wallets end a signature in 0 or 1; the token accepts 27 or 28 only. */
function withUsualParity(signature: Hex): Hex {
  const parity = signature.length === 132 ? Number.parseInt(signature.slice(130), 16) : 27
  return parity > 1 ? signature : `0x${signature.slice(2, 130)}${(27 + parity).toString(16)}`
}

const failed = (error: PaymentErrorCode): Decoded => ({ kind: 'error', error })

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

/**
 * Returns an error when a 65-byte signature is not the payer's. Other lengths belong to smart wallets, which only the chain can check.
 * This check comes before the facilitator's, whose library reports a bad signature when the provider is unreachable.
 */
export function checkSignature(payment: Payment, terms: PaymentTerms): PaymentErrorCode | undefined {
  if (payment.signature.length !== 132) return undefined
  return recoverSigner(paymentDigest(payment, terms), payment.signature) === payment.from
    ? undefined
    : 'invalid_signature'
}

const transferFields = transferTypes.TransferWithAuthorization.map(({ type, name }) => `${type} ${name}`).join(',')
const transferTypeHash = keccak256(stringToHex(`TransferWithAuthorization(${transferFields})`))
const receiveTypeHash = keccak256(stringToHex(`ReceiveWithAuthorization(${transferFields})`))
const separatorOf = memoizeLast((terms: PaymentTerms) => domainSeparator(tokenDomain(terms)))

/** Returns what the payer signs (EIP-712). It is encoded by hand, because the general encoder takes as long as half a signature. */
export function paymentDigest(
  { from, to, value, validAfter, validBefore, nonce, deposit }: Payment,
  terms: PaymentTerms,
): Hex {
  const struct = keccak256(
    `${deposit === undefined ? transferTypeHash : receiveTypeHash}${encodeAddress(from)}${encodeAddress(to)}${encodeWord(value)}${encodeWord(validAfter)}${encodeWord(validBefore)}${nonce.slice(2)}`,
  )
  return keccak256(`0x1901${separatorOf(terms).slice(2)}${struct.slice(2)}`)
}

/** Returns an error when the payment does not meet today's terms. */
export function checkTerms({ payment, accepted }: Presented, terms: PaymentTerms): PaymentErrorCode | undefined {
  if (payment.deposit !== undefined)
    return payment.value < (terms.channels?.minDeposit ?? payment.value + 1n) ? 'deposit_too_small' : undefined
  if (accepted !== undefined && !meetsRequirements(accepted, terms)) return 'invalid_payment_requirements'
  if (payment.to !== terms.payTo.toLowerCase()) return 'recipient_mismatch'
  return payment.value === terms.price ? undefined : 'amount_mismatch'
}

/** Compares addresses in any case and ignores the buyer's additional keys. */
function meetsRequirements(accepted: JsonObject, terms: PaymentTerms): boolean {
  const { extra: domain, ...required } = requirementsV2(terms)
  const extra = (accepted['extra'] ?? {}) as JsonObject
  return (
    Object.entries(required).every(([name, value]) => isSame(accepted[name], value)) &&
    Object.entries(domain).every(([name, value]) => extra[name] === value)
  )
}

function isSame(found: unknown, required: string | number): boolean {
  if (typeof found === 'string' && typeof required === 'string') return found.toLowerCase() === required.toLowerCase()
  return found === required
}

/** A facilitator needs this many seconds to get a transfer mined. */
const settlingSeconds = 6n

/** An authorization may hold this much longer than the terms ask for. A longer one could pay long after its sale was given up. */
const maxExtraSeconds = 3_600

/** Returns an error when the authorization is too late, too early or valid for too long. `now` is in unix seconds. */
export function checkTimes({ validAfter, validBefore }: Payment, now: bigint): PaymentErrorCode | undefined {
  if (validBefore < now + settlingSeconds) return 'authorization_expired'
  if (validBefore > now + BigInt(maxTimeoutSeconds + maxExtraSeconds)) return 'authorization_valid_too_long'
  return validAfter >= now ? 'authorization_not_yet_valid' : undefined
}
