/** The payment-gated gateway {gateway_url} (spec §4.7, §4.8): its routes on a plain node:http listener, open to every origin, and the jobs beside it. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { checksumAddress, type Hex, type PublishedKey } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import type { Verdicts } from '../../assets/verdicts.ts'
import { caipNetwork, chainName } from '../../domain/chain.ts'
import { readBody } from '../../http/body.ts'
import type { ClientKey } from '../../http/client-ip.ts'
import { getHeader, parseRequestTarget, requestIdOf } from '../../http/request.ts'
import type { Quota, RateLimiter } from '../../http/rate-limit/limiter.ts'
import { runtime } from '../../http/responses.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { isDatabaseUnavailable, reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { attestationDocument, createAttest, type AttestationKey } from '../../payments/attestation/attest.ts'
import { createCheckout, type Checkout } from '../../payments/checkout.ts'
import { errors, failure, GatewayFault, type ErrorCode, type Outcome } from '../../payments/errors.ts'
import { createBroadcast } from '../../payments/facilitator/broadcast.ts'
import type { Facilitator } from '../../payments/facilitator/facilitator.ts'
import { createLocalFacilitator } from '../../payments/facilitator/local.ts'
import { createRemoteFacilitator } from '../../payments/facilitator/remote.ts'
import type { Ledger } from '../../payments/ledger.ts'
import { createPaymentChain, type PaymentChain } from '../../payments/on-chain.ts'
import { parseOrder } from '../../payments/order.ts'
import { createReconciler } from '../../payments/reconcile.ts'
import { createSelfCheck, type SelfCheck, type SelfCheckOptions } from '../../payments/self-check.ts'
import { createSettlement, type Count, type PaymentDeadlines } from '../../payments/settlement.ts'
import { decodePayment } from '../../payments/x402/payment.ts'
import { createPaymentRequired, paymentDocument, type PaymentRequired, type Terms } from '../../payments/x402/terms.ts'

export type GatewayOptions = {
  readonly terms: Terms
  /** Allows a price above 0.10 USDC. */
  readonly allowHighPrice?: boolean
  /** Sends the 402 header of x402 version 2. Default: true. */
  readonly v2Header?: boolean
  /** The core contract, for the self-check and the domain of the typed signature. */
  readonly contract: Hex
  readonly verdicts: Pick<Verdicts, 'answer'>
  readonly ledger: Ledger
  readonly rpc: SelfCheckOptions['rpc']
  readonly isIndexFaulty?: SelfCheckOptions['isIndexFaulty']
  /** `account` pays the gas of settlements and does nothing else; `url` is a facilitator of another operator. */
  readonly facilitator: { readonly account: LocalAccount } | { readonly url: string }
  readonly keys: { readonly active: () => AttestationKey; readonly published: () => readonly PublishedKey[] }
  readonly limiter?: RateLimiter | undefined
  readonly clientKey: ClientKey
  readonly log: Log
  /** Milliseconds; for tests. */
  readonly now?: () => number
  readonly reconcileMs?: number
  readonly deadlines?: PaymentDeadlines
}

export type Gateway = AsyncDisposable & {
  readonly onRequest: RequestListener
  /** Reconciles unfinished payments now, instead of within five seconds. */
  readonly reconcile: () => Promise<void>
  readonly check: () => Promise<void>
  /** Returns the counters since the start. */
  readonly metrics: () => Readonly<Record<Parameters<Count>[0], number>>
}

/** Runs the first self-check before it resolves, and starts the first reconciliation. Neither has to succeed. */
export async function openGateway(given: GatewayOptions): Promise<Gateway> {
  const { asset, payTo } = given.terms
  const options = { ...given, terms: { ...given.terms, asset: checksumAddress(asset), payTo: checksumAddress(payTo) } }
  const { terms, verdicts, ledger, rpc, keys, log, now, reconcileMs = 5_000, allowHighPrice = false } = options
  await using opened = new AsyncDisposableStack()
  const counters = { offers: 0, settled: 0, pending: 0, reconciled: 0, refused: 0, replayed: 0, faults: 0 }
  const count: Count = (what) => (counters[what] += 1)
  const chain = createPaymentChain({ rpc, asset: terms.asset })
  const facilitator = openFacilitator(options, chain)
  const key = keys.active
  const shared = { ledger, chain, facilitator, terms, count, log, deadlines: options.deadlines }
  const settlement = createSettlement(shared)
  const checkout = createCheckout({ ...shared, settlement, attest: createAttest({ verdicts, key, now }), now })
  opened.defer(() => checkout.idle())
  const { isUnderway } = checkout
  const reconciler = opened.use(createReconciler({ ...shared, settlement, isUnderway, intervalMs: reconcileMs }))
  const facilitatorAddress = 'account' in options.facilitator ? options.facilitator.account.address : null
  const selfCheck = opened.use(createSelfCheck({ ...options, ...shared, key, facilitatorAddress, allowHighPrice }))
  await selfCheck.run()
  reconciler.pass().catch((error: unknown) => log.warn('payments are not reconciled', { reason: reasonOf(error) }))
  const rest = opened.move()
  return {
    onRequest: createListener(options, { checkout, selfCheck, count }),
    reconcile: reconciler.pass,
    check: selfCheck.run,
    metrics: () => ({ ...counters }),
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

function openFacilitator(
  { facilitator, rpc, terms, ledger, deadlines }: GatewayOptions,
  chain: PaymentChain,
): Facilitator {
  if ('url' in facilitator) return createRemoteFacilitator({ ...facilitator, terms, chain })
  const { account } = facilitator
  const broadcast = createBroadcast({ rpc, account, lock: ledger.locked })
  return createLocalFacilitator({ rpc, chain, account, terms, broadcast, receiptMs: deadlines?.receiptMs })
}

/** Longest time to a response. A checkout in progress then goes on, and a retry gets its result. */
const answerMs = 28_000

/** JSON is parsed under any content type, because some clients lose theirs when they retry. Excess is drained, so that the client reads the 413. */
const bodyLimits = { maxBytes: 16 * 1024, drainBytes: 4 * 1024 * 1024 }

type Parts = { readonly checkout: Checkout; readonly selfCheck: SelfCheck; readonly count: Count }

function createListener(options: GatewayOptions, { checkout, selfCheck, count }: Parts): RequestListener {
  const { terms, v2Header, contract, keys, clientKey, limiter, log } = options
  const required = createPaymentRequired(terms, v2Header)
  const payments = paymentDocument(terms)
  const reads: Readonly<Record<string, (response: ServerResponse) => void>> = {
    '/health': (response) => sendJson(response, healthBody(selfCheck, keys.active), { 'Cache-Control': 'no-store' }),
    '/.well-known/x402': (response) => sendJson(response, payments, cacheable),
    '/.well-known/x402.json': (response) => sendJson(response, payments, cacheable),
    '/.well-known/attestation.json': (response) =>
      sendJson(response, attestationDocument(contract, keys.published()), cacheable),
  }

  function route(request: IncomingMessage, response: ServerResponse): void {
    const { path } = parseRequestTarget(request.url ?? '/')
    const method = request.method ?? ''
    if (path === '/verify') return verifyRoute(request, response, method)
    const read = Object.hasOwn(reads, path) ? reads[path] : undefined
    if (read === undefined) return sendError(response, 'not_found')
    if (method === 'OPTIONS') return sendPreflight(response, 'GET, HEAD, OPTIONS')
    if (method !== 'GET' && method !== 'HEAD')
      return sendError(response, 'method_not_allowed', { Allow: 'GET, HEAD, OPTIONS' })
    read(response)
  }

  function verifyRoute(request: IncomingMessage, response: ServerResponse, method: string): void {
    if (method === 'OPTIONS') return sendPreflight(response, 'POST, OPTIONS')
    if (method !== 'POST') return sendError(response, 'method_not_allowed', { Allow: 'POST, OPTIONS' })
    const client = clientKey(request.socket.remoteAddress, getHeader(request, 'x-forwarded-for'))
    const quota = limiter?.take(client)
    if (quota instanceof Promise) void quota.then((shared) => checkoutRoute(request, response, shared))
    else checkoutRoute(request, response, quota)
  }

  function checkoutRoute(request: IncomingMessage, response: ServerResponse, quota: Quota | undefined): void {
    if (response.destroyed) return // the client disconnected while the quota was counted
    if (quota?.allowed === false) return send(failure('rate_limited'), quota.resetSeconds)
    if (!selfCheck.ready()) return send(failure('not_ready'))
    answer(request, response).then(
      (outcome) => {
        if (outcome.kind === 'error') countError(outcome.error)
        send(outcome)
      },
      (error: unknown) => send(failure(toErrorCode(error, requestIdOf(response)))),
    )

    function send(outcome: Outcome, retryAfter?: number): void {
      sendOutcome(response, outcome, required, retryAfter)
    }
  }

  function countError(error: ErrorCode): void {
    if (error === 'payment_required') count('offers')
    else if (errors[error].status < 500) count('refused')
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<Outcome> {
    const body = await readBody(request, bodyLimits)
    if (!body.ok) {
      if (!request.complete) response.shouldKeepAlive = false // unread bytes would precede the next request
      return failure(body.because === 'too-large' ? 'body_too_large' : 'invalid_body')
    }
    const parsed = parseOrder(body.text)
    if (parsed.kind === 'error') return failure(parsed.error)
    const decoded = decodePayment(getHeader(request, 'x-payment'), getHeader(request, 'payment-signature'))
    if (decoded.kind === 'none')
      return failure((await selfCheck.canSell()) ? 'payment_required' : 'payment_unavailable')
    if (parsed.kind === 'probe') return failure('invalid_asset_id')
    if (decoded.kind === 'error') return failure(decoded.error)
    const until = performance.now() + answerMs
    const isAborted = () => response.destroyed || (response.socket?.destroyed ?? true)
    const outcome = checkout.buy({ presented: decoded, order: parsed.order, until, isAborted })
    return answerInTime(outcome, requestIdOf(response))
  }

  /** The checkout goes on after the deadline; a later fault is still logged. */
  function answerInTime(outcome: Promise<Outcome>, requestId: string): Promise<Outcome> {
    let isLate = false
    outcome.catch((error: unknown) => isLate && toErrorCode(error, requestId))
    return withDeadline(outcome, answerMs, {
      onTimeout: () => {
        isLate = true
        return failure('settlement_pending')
      },
    })
  }

  function toErrorCode(error: unknown, requestId: string): ErrorCode {
    count('faults')
    const fault = isDatabaseUnavailable(error) ? 'ledger_unavailable' : 'internal_error'
    const code = error instanceof GatewayFault ? error.error : fault
    log[code === 'internal_error' ? 'error' : 'warn']('sale failed', { code, reason: reasonOf(error), requestId })
    return code
  }

  return (request, response) => {
    response.on('error', () => {})
    route(request, response)
  }
}

/** Makes the body of /health (spec §2.6, §4.7) from the last self-check, so that a request causes no RPC. */
function healthBody(selfCheck: SelfCheck, key: () => AttestationKey): string {
  const results = [...selfCheck.results()]
  const degraded = results.some(([, { state }]) => state !== 'ok')
  return JSON.stringify({
    status: selfCheck.ready() ? (degraded ? 'degraded' : 'ok') : 'not_ready',
    timestamp: new Date().toISOString(),
    runtime,
    attestation_signer: checksumAddress(key().address),
    checks: Object.fromEntries(results.map(([name, { state, message }]) => [name, { ok: state === 'ok', message }])),
  })
}

type Headers = Readonly<Record<string, string>>

const cacheable: Headers = { 'Cache-Control': 'public, max-age=300' }

const commonHeaders: Headers = { 'Access-Control-Allow-Origin': '*', 'X-Content-Type-Options': 'nosniff' }

/** Browsers may read the payment headers, and no cache serves one buyer's proof to another. */
const verifyHeaders: Headers = {
  ...commonHeaders,
  'Content-Type': 'application/json',
  'Access-Control-Expose-Headers': 'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, X-Request-Id',
  'Cache-Control': 'no-store',
  Vary: 'X-PAYMENT, PAYMENT-SIGNATURE',
}

function sendPreflight(response: ServerResponse, methods: string): void {
  response
    .writeHead(204, {
      ...commonHeaders,
      'Access-Control-Allow-Methods': methods,
      // Clients of both generations send the last one too, as a request header.
      'Access-Control-Allow-Headers': 'Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, Access-Control-Expose-Headers',
      'Access-Control-Max-Age': '86400',
      Vary: 'Access-Control-Request-Headers',
    })
    .end()
}

/** Sends the answer of POST /verify. `retryAfter` (seconds) replaces that of the error code. */
function sendOutcome(
  response: ServerResponse,
  outcome: Outcome,
  required: ReadonlyMap<ErrorCode, PaymentRequired>,
  retryAfter?: number,
): void {
  if (outcome.kind === 'proof')
    return write(response, 200, outcome.body, {
      ...verifyHeaders,
      ...receiptHeaders(outcome.transaction, outcome.payer),
    })
  const { error } = outcome
  const requirements = required.get(error)
  const wait = retryAfter ?? errors[error].retryAfter
  write(response, errors[error].status, requirements?.body ?? errorBodies.get(error) ?? '', {
    ...verifyHeaders,
    ...(requirements !== undefined && requirements.header !== '' && { 'PAYMENT-REQUIRED': requirements.header }),
    ...(wait !== undefined && { 'Retry-After': String(wait) }),
  })
}

/** Sends the error of any other path, or of a wrong method. */
function sendError(response: ServerResponse, error: ErrorCode, headers: Headers = {}): void {
  write(response, errors[error].status, errorBodies.get(error) ?? '', { ...verifyHeaders, ...headers })
}

const errorBodies = new Map(
  Object.values(errors).map(({ error, message }) => [error, JSON.stringify({ error, message })] as const),
)

function sendJson(response: ServerResponse, body: string, headers: Headers): void {
  write(response, 200, body, { ...commonHeaders, 'Content-Type': 'application/json', ...headers })
}

/** Returns the settlement as both generations of buyers read it. */
function receiptHeaders(transaction: string, payer: string): Headers {
  const receiptFor = (network: string) => {
    const receipt = { success: true, transaction, network, payer: checksumAddress(payer as Hex) }
    return Buffer.from(JSON.stringify(receipt)).toString('base64')
  }
  return { 'X-PAYMENT-RESPONSE': receiptFor(chainName), 'PAYMENT-RESPONSE': receiptFor(caipNetwork) }
}

function write(response: ServerResponse, status: number, body: string, headers: Headers): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...headers, 'Content-Length': String(Buffer.byteLength(body)) }).end(body)
}
