/**
 * A payment as it comes over the wire: `X-PAYMENT` (x402 version 1) or `PAYMENT-SIGNATURE` (version 2), both the base64 of a JSON object
 * around the same EIP-3009 authorization (spec §4.8, §5).
 */
import { isAddress, type Hex } from '@touchstone/verdict'
import type { ErrorCode } from './answers.ts'
import { caipNetwork, chainName } from './terms.ts'

/** An EIP-712 `TransferWithAuthorization` of the payment token with its signature; hex in lower case, times in unix seconds. */
export type Payment = {
  readonly from: Hex
  readonly to: Hex
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
  readonly signature: Hex
}
/** `accepted` are the terms a version 2 buyer says it accepted. */
export type Presented = { readonly payment: Payment; readonly accepted: Json | undefined }
export type Decoded =
  | ({ readonly kind: 'payment' } & Presented)
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly error: ErrorCode }

type Json = Readonly<Record<string, unknown>>

const longestHeader = 8_192

/** Reads the payment of a request from its two headers; version 2 wins when both are present. */
export function decodePayment(xPayment: string | undefined, paymentSignature: string | undefined): Decoded {
  const second = paymentSignature !== undefined
  const text = paymentSignature ?? xPayment
  if (text === undefined) return { kind: 'none' }
  const envelope = envelopeOf(text.trim())
  if (envelope === undefined) return refused('invalid_payload')
  return second ? decodeSecond(envelope) : decodeFirst(envelope)
}

function decodeFirst({ x402Version, scheme, network, payload }: Json): Decoded {
  if (x402Version !== 1) return refused('invalid_x402_version')
  if (scheme !== 'exact') return refused('unsupported_scheme')
  if (network !== chainName) return refused('invalid_network')
  return decodedOf(payload, undefined)
}

function decodeSecond({ x402Version, accepted, payload }: Json): Decoded {
  if (x402Version !== 2) return refused('invalid_x402_version')
  if (!isObject(accepted)) return refused('invalid_payment_requirements')
  if (accepted['scheme'] !== 'exact') return refused('unsupported_scheme')
  if (accepted['network'] !== caipNetwork) return refused('invalid_network')
  return decodedOf(payload, accepted)
}

function decodedOf(payload: unknown, accepted: Json | undefined): Decoded {
  const payment = isObject(payload) ? paymentOf(payload) : undefined
  return payment === undefined ? refused('invalid_payload') : { kind: 'payment', payment, accepted }
}

/** Standard base64, padding optional. Two headers of one name arrive joined by a comma, which is no base64. */
function envelopeOf(text: string): Json | undefined {
  if (text.length > longestHeader || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64').toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function paymentOf({ signature, authorization }: Json): Payment | undefined {
  if (!isObject(authorization)) return undefined
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  if (!isAccount(from) || !isAccount(to)) return undefined
  if (!isAmount(value) || !isAmount(validAfter) || !isAmount(validBefore)) return undefined
  if (typeof nonce !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(nonce)) return undefined
  if (typeof signature !== 'string' || !/^0x(?:[0-9a-fA-F]{2})+$/.test(signature)) return undefined
  return {
    from: lower(from),
    to: lower(to),
    value: BigInt(value),
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
    nonce: lower(nonce),
    signature: withUsualParity(lower(signature)),
  }
}

const isAccount = (value: unknown): value is string => typeof value === 'string' && isAddress(value)

/** A decimal string that fits 256 bits. */
function isAmount(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9]{1,78}$/.test(value) && BigInt(value) < 2n ** 256n
}

const lower = (text: string) => text.toLowerCase() as Hex

/** Some wallets end a signature in 0 or 1; the token takes 27 or 28 only. */
function withUsualParity(signature: Hex): Hex {
  const parity = signature.length === 132 ? Number.parseInt(signature.slice(130), 16) : 27
  return parity > 1 ? signature : `0x${signature.slice(2, 130)}${(27 + parity).toString(16)}`
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const refused = (error: ErrorCode): Decoded => ({ kind: 'refused', error })
