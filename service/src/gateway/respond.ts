/** Bodies and headers of the gateway (spec §4.7, §4.8): open to every origin, nothing stored by caches. */
import type { ServerResponse } from 'node:http'
import { checksumAddress } from '@touchstone/verdict'
import { errors, messageOf, retryAfterOf, statusOf, type ErrorCode, type Outcome } from './answers.ts'
import type { Offer } from './offer.ts'
import { caipNetwork, chainName } from './terms.ts'

type Headers = Readonly<Record<string, string>>

const always: Headers = { 'Access-Control-Allow-Origin': '*', 'X-Content-Type-Options': 'nosniff' }

/** Of every answer of /verify: browsers may read the payment headers, and no cache answers one buyer with another's proof. */
const ofVerify: Headers = {
  ...always,
  'Content-Type': 'application/json',
  'Access-Control-Expose-Headers': 'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, X-Request-Id',
  'Cache-Control': 'no-store',
  Vary: 'X-PAYMENT, PAYMENT-SIGNATURE',
}

/** Clients of both generations send the last one too, as a request header. */
export const preflightHeaders: Headers = {
  ...always,
  'Access-Control-Allow-Methods': 'POST, OPTIONS',
  'Access-Control-Allow-Headers': 'Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, Access-Control-Expose-Headers',
  'Access-Control-Max-Age': '86400',
  Vary: 'Access-Control-Request-Headers',
}

/** Answers POST /verify. `retryAfter` (seconds) overrules that of the code. */
export function sendOutcome(
  response: ServerResponse,
  outcome: Outcome,
  offers: ReadonlyMap<ErrorCode, Offer>,
  retryAfter?: number,
): void {
  if (outcome.kind === 'proof') {
    const { body, transaction, payer } = outcome
    return write(response, 200, body, { ...ofVerify, ...receipts(transaction, payer) })
  }
  const { error } = outcome
  const offer = offers.get(error)
  const wait = retryAfter ?? retryAfterOf(error)
  write(response, statusOf(error), offer?.body ?? errorBody(error), {
    ...ofVerify,
    ...(offer !== undefined && offer.header !== '' && { 'PAYMENT-REQUIRED': offer.header }),
    ...(wait !== undefined && { 'Retry-After': String(wait) }),
  })
}

/** An error of any other path, or of a wrong method. */
export function sendError(response: ServerResponse, error: ErrorCode, headers: Headers = {}): void {
  write(response, statusOf(error), errorBody(error), { ...ofVerify, ...headers })
}

export function sendJson(response: ServerResponse, body: string, headers: Headers = {}): void {
  write(response, 200, body, { ...always, 'Content-Type': 'application/json', ...headers })
}

const bodies = new Map(
  (Object.keys(errors) as ErrorCode[]).map((error) => [error, JSON.stringify({ error, message: messageOf(error) })]),
)

function errorBody(error: ErrorCode): string {
  return bodies.get(error) ?? ''
}

/** The settlement as both generations of buyers read it. */
function receipts(transaction: string, payer: string): Headers {
  const receiptOn = (network: string) =>
    Buffer.from(
      JSON.stringify({ success: true, transaction, network, payer: checksumAddress(payer as `0x${string}`) }),
    ).toString('base64')
  return { 'X-PAYMENT-RESPONSE': receiptOn(chainName), 'PAYMENT-RESPONSE': receiptOn(caipNetwork) }
}

function write(response: ServerResponse, status: number, body: string, headers: Headers): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...headers, 'Content-Length': String(Buffer.byteLength(body)) }).end(body)
}
