/** The responses of the gateway (spec §4.8): bodies, CORS, caching and the receipts of both generations of x402. */
import type { ServerResponse } from 'node:http'
import { checksumAddress } from '@touchstone/verdict'
import { caipNetwork, chainName } from '../../domain/chain.ts'
import { errors, type PaymentErrorCode, type PaymentOutcome, type PaymentReceipt } from '../../payments/errors.ts'
import type { PaymentRequired } from '../../payments/x402/terms.ts'

type Headers = Readonly<Record<string, string>>

export const cacheable: Headers = { 'Cache-Control': 'public, max-age=300' }
/** A copy of the keys is stale as soon as one is switched or revoked. */
export const briefly: Headers = { 'Cache-Control': 'public, max-age=30' }

const commonHeaders: Headers = { 'Access-Control-Allow-Origin': '*', 'X-Content-Type-Options': 'nosniff' }

/** Browsers may read the payment headers, and no cache serves one buyer's proof to another. */
const verifyHeaders: Headers = {
  ...commonHeaders,
  'Content-Type': 'application/json',
  'Access-Control-Expose-Headers': 'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, X-Request-Id',
  'Cache-Control': 'no-store',
  Vary: 'X-PAYMENT, PAYMENT-SIGNATURE',
}

/** Clients of both generations send the last one too, as a request header. */
const buyerHeaders = ['Content-Type', 'X-PAYMENT', 'PAYMENT-SIGNATURE', 'Access-Control-Expose-Headers']

export function sendPreflight(response: ServerResponse, methods: string, headers: readonly string[] = []): void {
  response
    .writeHead(204, {
      ...commonHeaders,
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Allow-Headers': [...buyerHeaders, ...headers].join(', '),
      'Access-Control-Max-Age': '86400',
      Vary: 'Access-Control-Request-Headers',
    })
    .end()
}

/** Sends what only the buyer may read. */
export function sendPrivate(response: ServerResponse, body: string): void {
  write(response, 200, body, { ...verifyHeaders, Vary: 'X-PAYMENT, PAYMENT-SIGNATURE, Authorization' })
}

/** Sends the answer of POST /verify. `retryAfter` (seconds) replaces that of the error code. */
export function sendOutcome(
  response: ServerResponse,
  outcome: PaymentOutcome,
  required: ReadonlyMap<PaymentErrorCode, PaymentRequired>,
  retryAfter?: number,
): void {
  if (outcome.kind === 'proof')
    return write(response, 200, outcome.body, {
      ...verifyHeaders,
      ...receiptHeaders(outcome, { success: true }),
    })
  const { error } = outcome
  const requirements = required.get(error)
  const header = outcome.corrective ?? requirements?.header ?? ''
  const wait = retryAfter ?? outcome.retryAfter ?? errors[error].retryAfter
  write(response, errors[error].status, requirements?.body ?? errorBodies.get(error) ?? '', {
    ...verifyHeaders,
    ...(header !== '' && { 'PAYMENT-REQUIRED': header }),
    ...(wait !== undefined && { 'Retry-After': String(wait) }),
    ...(outcome.receipt && receiptHeaders(outcome.receipt, { success: false, errorReason: error })),
  })
}

/** Sends the error of any other path, or of a wrong method. */
export function sendPaymentError(response: ServerResponse, error: PaymentErrorCode, headers: Headers = {}): void {
  const wait = errors[error].retryAfter
  const retry = wait !== undefined && { 'Retry-After': String(wait) }
  write(response, errors[error].status, errorBodies.get(error) ?? '', { ...verifyHeaders, ...retry, ...headers })
}

const errorBodies = new Map(
  Object.values(errors).map(({ error, message }) => [error, JSON.stringify({ error, message })] as const),
)

export function sendJsonText(response: ServerResponse, body: string, headers: Headers): void {
  write(response, 200, body, { ...commonHeaders, 'Content-Type': 'application/json', ...headers })
}

/** Returns the settlement as both generations of buyers read it. The transaction is empty while none was sent. */
function receiptHeaders(
  { transaction, key, channel: extra }: PaymentReceipt,
  result: { readonly success: boolean; readonly errorReason?: PaymentErrorCode },
): Headers {
  const receiptFor = (network: string) => {
    const payer = checksumAddress(key.payer)
    const receipt = { ...result, transaction: transaction ?? '', network, payer, ...(extra && { extra }) }
    return Buffer.from(JSON.stringify(receipt)).toString('base64')
  }
  return { 'X-PAYMENT-RESPONSE': receiptFor(chainName), 'PAYMENT-RESPONSE': receiptFor(caipNetwork) }
}

/** Calls `then` when the response has ended: with whether it was sent, or its connection broke before. */
export function onceEnded(response: ServerResponse, then: (isSent: boolean) => void): void {
  if (response.destroyed) then(false)
  else response.once('close', () => then(response.writableFinished))
}

function write(response: ServerResponse, status: number, body: string, headers: Headers): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...headers, 'Content-Length': String(Buffer.byteLength(body)) }).end(body)
}
