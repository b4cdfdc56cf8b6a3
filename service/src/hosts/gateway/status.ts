/**
 * GET /payments/{payer}/{nonce}: the status of a payment (spec §4.8). It is for the holder of its payment header, and for its payer, who
 * signs a `PaymentStatus` (EIP-712) of the last five minutes. For all others there is no such payment.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Hex } from '@touchstone/verdict'
import { hashTypedData } from 'viem/utils'
import { chainId } from '../../domain/chain.ts'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import { getHeader, requestIdOf } from '../../http/request.ts'
import { readMethods } from '../../http/responses.ts'
import { constantTimeEqual } from '../../lib/bytes.ts'
import { recoverSigner } from '../../lib/secp256k1.ts'
import { parseVoucher } from '../../payments/channels/presented.ts'
import { within, type PaymentErrorCode } from '../../payments/errors.ts'
import type { PaymentKey } from '../../payments/key.ts'
import type { PaymentLedger } from '../../payments/ledger/ledger.ts'
import { parsePayload } from '../../payments/ledger/table.ts'
import type { PaymentChain } from '../../payments/on-chain.ts'
import type { Settlement } from '../../payments/settlement.ts'
import { decodePayment, type Payment } from '../../payments/x402/payment.ts'
import type { PaymentTerms } from '../../payments/x402/terms.ts'
import { onceEnded, sendPaymentError, sendPreflight, sendPrivate } from './responses.ts'

export const statusDomain = { name: 'Touchstone', version: '1', chainId } as const
export const statusTypes = {
  PaymentStatus: [
    { name: 'resource', type: 'string' },
    { name: 'payer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
    { name: 'issuedAt', type: 'uint64' },
  ],
} as const

const validSeconds = 300
/** A payer's clock may be this many seconds ahead. */
const aheadSeconds = 60
const maxSignature = 4_096
const lookMs = 5_000

type StatusOptions = {
  readonly ledger: Pick<PaymentLedger, 'find' | 'setUndelivered'>
  readonly chain: Pick<PaymentChain, 'acceptsSignature'>
  readonly settlement: Pick<Settlement, 'findPaidLater'>
  readonly terms: PaymentTerms
  readonly limiter: RateLimiter | undefined
  readonly client: (request: IncomingMessage) => string
  readonly toErrorCode: (error: unknown, requestId: string) => PaymentErrorCode
  /** Milliseconds. */
  readonly now?: (() => number) | undefined
}

export function createStatusRoute(options: StatusOptions) {
  const { ledger, chain, settlement, terms, limiter, client, toErrorCode, now = Date.now } = options

  async function answer(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const quota = await limiter?.take(client(request))
    if (quota?.allowed === false)
      return sendPaymentError(response, 'rate_limited', { 'Retry-After': String(quota.resetSeconds) })
    const [, payer, nonce] = /^\/payments\/(0x[0-9a-f]{40})\/(0x[0-9a-f]{64})$/.exec(path.toLowerCase()) ?? []
    if (payer === undefined || nonce === undefined) return sendPaymentError(response, 'not_found')
    const key = { payer: payer as Hex, nonce: nonce as Hex }
    const found = await find(key, request)
    if (found === null) return sendPaymentError(response, 'not_found')
    if (found.isDelivery && request.method === 'GET')
      onceEnded(response, (isSent) => {
        if (isSent) ledger.setUndelivered(key, false).catch((error) => toErrorCode(error, requestIdOf(response)))
      })
    sendPrivate(response, found.status)
  }

  /**
   * Returns the status as JSON, or null for a payment that is unknown or of another. `isDelivery`: with a proof that the buyer does not have.
   * A payment header proves no delivery, because a transfer shows its authorization and signature to everyone.
   */
  async function find(key: PaymentKey, request: IncomingMessage) {
    const shown = paymentsOf(request)
    const isPayer = await isSignedBy(key, getHeader(request, 'authorization'))
    if (!isPayer && shown.length === 0) return null
    const row = await within(lookMs, 'ledger_unavailable', ledger.find(key))
    if (row === undefined) return null
    const stored = parsePayload(row.payload)
    if (!isPayer && !shown.some((payment) => isSame(stored, payment))) return null
    const { state, transaction, reason } = row
    const done = state === 'done' ? { ...row, body: row.answer } : await settlement.findPaidLater(row)
    if (done !== undefined) {
      // A voucher has no transaction of its own, and a deposit buys no proof.
      const proof = stored.deposit === undefined ? `,"proof":${done.body}` : ''
      const isRemoved = state === 'done' && reason !== null ? ',"removed":true' : ''
      const status = `{"status":"done"${isRemoved},"transaction":${JSON.stringify(done.transaction)}${proof}}`
      return { status, isDelivery: isPayer && (row.undelivered || state !== 'done') }
    }
    const status = JSON.stringify({ status: state, transaction, ...(reason !== null && { reason }) })
    return { status, isDelivery: false }
  }

  /** Reads `EIP712 <issue time>.<signature>`. A signature that is not an account's is checked by the payer's contract. */
  async function isSignedBy({ payer, nonce }: PaymentKey, authorization = ''): Promise<boolean> {
    const [, time = '', sent] = /^eip712 ([1-9]\d{0,15})\.(0x(?:[0-9a-f]{2})+)$/.exec(authorization.toLowerCase()) ?? []
    const age = now() / 1000 - Number(time)
    if (sent === undefined || sent.length > maxSignature || age > validSeconds || age < -aheadSeconds) return false
    const message = { resource: terms.resource, payer, nonce, issuedAt: BigInt(time) }
    const hash = hashTypedData({ domain: statusDomain, types: statusTypes, primaryType: 'PaymentStatus', message })
    if (recoverSigner(hash, sent as Hex) === payer) return true
    return within(lookMs, 'payment_unavailable', chain.acceptsSignature(payer, hash, sent as Hex))
  }

  return (request: IncomingMessage, response: ServerResponse, path: string): void => {
    if (request.method === 'OPTIONS') return sendPreflight(response, readMethods, ['Authorization'])
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return sendPaymentError(response, 'method_not_allowed', { Allow: readMethods })
    answer(request, response, path).catch((error: unknown) =>
      sendPaymentError(response, toErrorCode(error, requestIdOf(response))),
    )
  }
}

type Shown = Pick<Payment, 'from' | 'nonce' | 'signature'>

/** Returns the payments of a request's header. A voucher may have a deposit beside it, which is a payment of its own. */
function paymentsOf(request: IncomingMessage): readonly Shown[] {
  const decoded = decodePayment(getHeader(request, 'x-payment'), getHeader(request, 'payment-signature'))
  if (decoded.kind === 'payment') return [decoded.payment]
  const voucher = decoded.kind === 'channel' ? parseVoucher(decoded.payload, decoded.accepted) : null
  if (voucher === null) return []
  const { key, signature, deposit } = voucher
  return [{ from: key.payer, nonce: key.nonce, signature }, ...(deposit === undefined ? [] : [deposit])]
}

/** Compares the signatures too: the rest of a payment is no secret. */
function isSame(one: Shown, other: Shown): boolean {
  return constantTimeEqual(toBytes(one), toBytes(other))
}

function toBytes({ from, nonce, signature }: Shown): Uint8Array {
  return Buffer.from([from, nonce, signature].join())
}
