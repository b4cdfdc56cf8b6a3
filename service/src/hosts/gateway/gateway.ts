/** The payment-gated gateway {gateway_url} (spec §4.7, §4.8): its routes on a plain node:http listener, open to every origin, and the jobs beside it. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { checksumAddress, type Hex, type PublishedKey } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import type { Verdicts } from '../../assets/verdicts.ts'
import { mostDrained, readBody, type BodyFailure } from '../../http/body.ts'
import type { ClientKey } from '../../http/client-ip.ts'
import { getHeader, parseRequestTarget, requestIdOf } from '../../http/request.ts'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import { runtime } from '../../http/responses.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { isDatabaseUnavailable, reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { attestationDocument, createAttest, signerOf, type AttestationKey } from '../../payments/attestation/attest.ts'
import { createChannelClaims, type ClaimOptions } from '../../payments/channels/claims.ts'
import { parseVoucher } from '../../payments/channels/presented.ts'
import { createChannelSales, type ChannelSales } from '../../payments/channels/sale.ts'
import { createChannelReads } from '../../payments/channels/state.ts'
import type { ChannelFigures } from '../../payments/channels/store.ts'
import { createCheckout, type Checkout } from '../../payments/checkout.ts'
import {
  errors,
  ledgerMs,
  paymentFailure,
  GatewayFault,
  within,
  type PaymentErrorCode,
  type PaymentOutcome,
} from '../../payments/errors.ts'
import { createLocalFacilitator } from '../../payments/facilitator/local.ts'
import { createRemoteFacilitator } from '../../payments/facilitator/remote.ts'
import type { NonceSlots } from '../../payments/facilitator/slots.ts'
import type { PaymentLedger } from '../../payments/ledger/ledger.ts'
import { createPaymentChain } from '../../payments/on-chain.ts'
import { parseOrder } from '../../payments/order.ts'
import { createReconciler } from '../../payments/reconcile.ts'
import { createSelfCheck, type SelfCheck, type SelfCheckOptions } from '../../payments/self-check.ts'
import { createCounts, createSettlement, type PaymentComponents, type Settlement } from '../../payments/settlement.ts'
import { decodePayment } from '../../payments/x402/payment.ts'
import { channelTerms, createPaymentRequired, paymentDocument, type PaymentTerms } from '../../payments/x402/terms.ts'
import {
  briefly,
  cacheable,
  onceEnded,
  sendPaymentError,
  sendJsonText,
  sendOutcome,
  sendPreflight,
} from './responses.ts'
import { createStatusRoute } from './status.ts'

export type GatewayOptions = {
  readonly terms: PaymentTerms
  /** Allows a price above 0.10 USDC. */
  readonly allowHighPrice?: boolean
  /** Sends the 402 header of x402 version 2. Default: true. */
  readonly v2Header?: boolean
  /** The core contract, for the self-check and the domain of the typed signature. */
  readonly contract: Hex
  readonly verdicts: Pick<Verdicts, 'answer'>
  readonly ledger: PaymentLedger
  readonly slots: NonceSlots
  /** Payment channels; `accounts` authorize claims, the first one for new channels. Needs accounts of the facilitator. */
  readonly channels?: Pick<ClaimOptions, 'store' | 'accounts' | 'claimUnits' | 'intervalMs'> | undefined
  readonly rpc: SelfCheckOptions['rpc']
  readonly isIndexFaulty?: SelfCheckOptions['isIndexFaulty']
  readonly takesWrites?: SelfCheckOptions['takesWrites']
  /** `accounts` pay the gas of settlements and do nothing else; `url` is a facilitator of another operator. */
  readonly facilitator:
    | { readonly accounts: readonly LocalAccount[]; readonly walletFactories: readonly Hex[] }
    | { readonly url: string; readonly headersFile?: string | null }
  readonly keys: {
    readonly active: () => AttestationKey
    /** Returns every key ever used or announced. A list that may be old is not returned: then it rejects. */
    readonly published: () => readonly PublishedKey[] | Promise<readonly PublishedKey[]>
    /** Runs before each signature. Left out: no other process changes the keys. */
    readonly refresh?: () => Promise<void>
  }
  /** Counts requests without a well-formed payment. */
  readonly limiter?: RateLimiter | undefined
  /** Counts payments that were refused. A client that has used it up cannot pay before the window ends. */
  readonly refusals?: RateLimiter | undefined
  readonly clientKey: ClientKey
  /** Days for which paid payments are kept for accounting. Default: ten years. */
  readonly retentionDays?: number
  readonly log: Log
  /** Milliseconds; for tests. */
  readonly now?: () => number
  /** Interval in which unfinished payments are reconciled. Default: a second. */
  readonly reconcileMs?: number
  readonly deadlines?: PaymentComponents['deadlines']
  /** Default: 10 s, less than the timeout of the listener, whose answer has no message. */
  readonly bodyTimeoutMs?: number
}

export type Gateway = AsyncDisposable & {
  readonly onRequest: RequestListener
  /** Reconciles unfinished payments now, instead of within `reconcileMs`. */
  readonly reconcile: () => Promise<void>
  /** Claims what is due of the payment channels now, instead of within a minute. */
  readonly claim: () => Promise<void>
  readonly check: () => Promise<void>
  readonly metrics: () => Promise<GatewayFigures>
}

/** The figures of a gateway: counters since the start, and what is true now. Amounts are in the token's units and in wei. */
type GatewayFigures = {
  readonly sales: Readonly<Record<string, number>>
  /** By error code; an offer (402 `payment_required`) is none. */
  readonly refused: Readonly<Record<string, number>>
  readonly units: number
  readonly gas: number
  readonly lostGas: number
  /** Ether of the facilitator's accounts by address, as the last self-check found it. */
  readonly balances: Readonly<Record<string, number>>
  /** Undefined while the database does not answer. */
  readonly oldestPendingSeconds: number | undefined
  /** Undefined where there are none, and while the database does not answer. */
  readonly channels: ChannelFigures | undefined
}

/** Runs the first self-check before it resolves, and starts the first reconciliation. Neither has to succeed. */
export async function openGateway(given: GatewayOptions): Promise<Gateway> {
  const { asset, payTo } = given.terms
  const channels = given.channels && channelTerms(given.channels.accounts, given.terms.price)
  const addresses = { asset: checksumAddress(asset), payTo: checksumAddress(payTo) }
  const options = { ...given, terms: { ...given.terms, ...addresses, channels } }
  const { terms, verdicts, ledger, rpc, keys, log, now, reconcileMs = 1_000, allowHighPrice = false } = options
  const { retentionDays: paidDays = 3_650 } = options
  await using opened = new AsyncDisposableStack()
  const { count, figures } = createCounts()
  const refused: Record<string, number> = {}
  const balances: Record<string, number> = {}
  const slots: NonceSlots = {
    ...options.slots,
    async mined(slot, found) {
      await options.slots.mined(slot, found)
      count('gas', found.gasUsed * found.gasPrice + found.l1Fee)
    },
  }
  const chain = createPaymentChain({ rpc, asset: terms.asset, now })
  const facilitator =
    'url' in options.facilitator
      ? createRemoteFacilitator({ ...options.facilitator, terms, chain })
      : createLocalFacilitator({ ...options.facilitator, rpc, chain, slots, terms, log, ...options.deadlines })
  const key = keys.active
  const shared = { ledger, chain, facilitator, terms, count, log, deadlines: options.deadlines }
  const settlement = createSettlement(shared)
  const currentKey = async () => {
    await keys.refresh?.()
    return key()
  }
  const attest = createAttest({ verdicts, key: currentKey, now })
  const checkout = createCheckout({ ...shared, settlement, attest, now })
  const deposits = createCheckout({ ...shared, settlement, attest: async (_, stored = '{}') => stored, now })
  const readChannels = createChannelReads({ rpc, heads: chain.heads })
  const through = options.channels && { ...options.channels, readChannels, facilitator, log }
  const sales = through && channels && createChannelSales({ ...shared, ...through, deposits, attest, channels })
  opened.defer(async () => {
    await Promise.all([checkout.idle(), deposits.idle()])
    settlement.stop()
    await facilitator[Symbol.asyncDispose]()
    await settlement.idle()
  })
  const reconciler = opened.use(
    createReconciler({ ...shared, slots, rpc, settlement, paidDays, intervalMs: reconcileMs }),
  )
  const claims = through && opened.use(createChannelClaims(through))
  const accounts = 'accounts' in options.facilitator ? options.facilitator.accounts : []
  const facilitatorAddresses = accounts.map(({ address }) => address)
  const onBalance = (address: Hex, balance: bigint) => (balances[address] = Number(balance))
  const checked = { ...options, ...shared, heads: chain.heads, key, facilitatorAddresses, onBalance, allowHighPrice }
  const selfCheck = opened.use(createSelfCheck(checked))
  await selfCheck.run()
  reconciler.pass().catch((error: unknown) => log.warn('payments are not reconciled', { reason: reasonOf(error) }))
  const rest = opened.move()
  return {
    onRequest: createListener(options, { chain, settlement, checkout, sales, selfCheck, count, refused }),
    reconcile: reconciler.pass,
    claim: async () => claims?.pass(),
    check: selfCheck.run,
    metrics: async () => ({
      ...figures(),
      refused,
      balances,
      channels: through && (await withDeadline(through.store.figures(), figureMs).catch(() => undefined)),
      oldestPendingSeconds: await withDeadline(ledger.oldestPending(), figureMs).catch(() => undefined),
    }),
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

/** The longest wait of a scrape for the database. */
const figureMs = 2_000

/** Longest time to a response. A checkout in progress then goes on, and a retry gets its result. */
const answerMs = 28_000

/** JSON is parsed under any content type, because some clients lose theirs when they retry. Excess is drained, so that the client reads the 413. */
const bodyLimits = { maxBytes: 16 * 1024, drainBytes: mostDrained }

const bodyFailures = {
  'too-large': 'body_too_large',
  'too-slow': 'body_too_slow',
  encoded: 'invalid_body',
  'not-utf8': 'invalid_body',
  aborted: 'invalid_body',
} as const satisfies Readonly<Record<BodyFailure, PaymentErrorCode>>

type Decoded = ReturnType<typeof decodePayment>

type Parts = Pick<PaymentComponents, 'chain' | 'count'> & {
  readonly checkout: Checkout
  readonly sales: ChannelSales | undefined
  readonly selfCheck: SelfCheck
  readonly settlement: Settlement
  readonly refused: Record<string, number>
}

function createListener(options: GatewayOptions, parts: Parts): RequestListener {
  const { chain, settlement, checkout, sales, selfCheck, count, refused } = parts
  const { terms, v2Header, contract, keys, clientKey, ledger, limiter, refusals, log, bodyTimeoutMs = 10_000 } = options
  const required = createPaymentRequired(terms, v2Header)
  const payments = paymentDocument(terms)
  const statusRoute = createStatusRoute({ ...options, chain, settlement, limiter, client: clientOf, toErrorCode })
  const reads: Readonly<Record<string, (response: ServerResponse) => void>> = {
    '/health': (response) =>
      sendJsonText(response, healthBody(selfCheck, keys.active), { 'Cache-Control': 'no-store' }),
    '/.well-known/x402': (response) => sendJsonText(response, payments, cacheable),
    '/.well-known/x402.json': (response) => sendJsonText(response, payments, cacheable),
    '/.well-known/attestation.json': (response) => {
      keyList().then((list) => sendJsonText(response, list, briefly), onFault(response))
    },
  }

  async function keyList(): Promise<string> {
    return attestationDocument(contract, await within(ledgerMs, 'keys_unavailable', Promise.resolve(keys.published())))
  }

  function route(request: IncomingMessage, response: ServerResponse): void {
    const { path } = parseRequestTarget(request.url ?? '/')
    const method = request.method ?? ''
    if (path === '/verify') return verifyRoute(request, response)
    if (path.startsWith('/payments/')) return statusRoute(request, response, path)
    const read = Object.hasOwn(reads, path) ? reads[path] : undefined
    if (read === undefined) return sendPaymentError(response, 'not_found')
    if (method === 'OPTIONS') return sendPreflight(response, 'GET, HEAD, OPTIONS')
    if (method !== 'GET' && method !== 'HEAD')
      return sendPaymentError(response, 'method_not_allowed', { Allow: 'GET, HEAD, OPTIONS' })
    read(response)
  }

  function clientOf(request: IncomingMessage): string {
    return clientKey(request.socket.remoteAddress, getHeader(request, 'x-forwarded-for'))
  }

  function verifyRoute(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === 'OPTIONS') return sendPreflight(response, 'POST, OPTIONS')
    if (request.method !== 'POST') return sendPaymentError(response, 'method_not_allowed', { Allow: 'POST, OPTIONS' })
    sell(request, response).catch(onFault(response))
  }

  async function sell(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const client = clientOf(request)
    const decoded = decodePayment(getHeader(request, 'x-payment'), getHeader(request, 'payment-signature'))
    const quota = await (isPayment(decoded) ? refusals?.exhausted(client) : limiter?.take(client))
    if (response.destroyed) return // the client disconnected while the quota was counted
    if (quota?.allowed === false) return send(response, paymentFailure('rate_limited'), quota.resetSeconds)
    if (!selfCheck.ready()) return send(response, paymentFailure('not_ready'))
    const outcome = await answer(request, response, decoded).catch((error: unknown) =>
      paymentFailure(toErrorCode(error, requestIdOf(response))),
    )
    if (outcome.kind === 'error') countError(outcome, client, decoded)
    send(response, outcome)
  }

  function send(response: ServerResponse, outcome: PaymentOutcome, retryAfter?: number): void {
    if (outcome.kind === 'error' && outcome.error !== 'payment_required')
      refused[outcome.error] = (refused[outcome.error] ?? 0) + 1
    onceEnded(response, (isSent) => noteDelivery(outcome, isSent))
    sendOutcome(response, outcome, required, retryAfter)
  }

  /** A payment counts as refused where its client hangs up before it is stored: check and signatures were for nothing. */
  function countError(
    { error, isAbandoned }: PaymentOutcome & { kind: 'error' },
    client: string,
    decoded: Decoded,
  ): void {
    if (error === 'payment_required') return count('offers')
    if (errors[error].status >= 500 && isAbandoned === undefined) return
    count('refused')
    if (isPayment(decoded)) void refusals?.take(client)
  }

  async function answer(request: IncomingMessage, response: ServerResponse, decoded: Decoded): Promise<PaymentOutcome> {
    const body = await readBody(request, { ...bodyLimits, timeoutMs: bodyTimeoutMs })
    if (!body.ok) {
      if (!request.complete) response.shouldKeepAlive = false // unread bytes would precede the next request
      return paymentFailure(bodyFailures[body.because])
    }
    const parsed = parseOrder(body.text)
    if (parsed.kind === 'error') return paymentFailure(parsed.error)
    if (decoded.kind === 'none')
      return paymentFailure((await selfCheck.canSell()) ? 'payment_required' : 'payment_unavailable')
    if (parsed.kind === 'probe') return paymentFailure('invalid_asset_id')
    if (decoded.kind === 'error') return paymentFailure(decoded.error)
    const until = performance.now() + answerMs
    const asked = { order: parsed.order, until, closed: signalOf(response) }
    if (decoded.kind === 'payment') return answerInTime(checkout.buy({ presented: decoded, ...asked }), response)
    if (sales === undefined) return paymentFailure('unsupported_scheme')
    const voucher = parseVoucher(decoded.payload, decoded.accepted, decoded.identifier)
    return voucher === null
      ? paymentFailure('invalid_payload')
      : answerInTime(sales.buy({ voucher, ...asked }), response)
  }

  /** The checkout goes on after the deadline; a later fault is still logged. */
  function answerInTime(outcome: Promise<PaymentOutcome>, response: ServerResponse): Promise<PaymentOutcome> {
    let isLate = false
    outcome.then(
      (ended) => isLate && noteDelivery(ended, false),
      (error: unknown) => isLate && toErrorCode(error, requestIdOf(response)),
    )
    return withDeadline(outcome, answerMs, {
      onTimeout: () => {
        isLate = true
        return paymentFailure('settlement_pending')
      },
    })
  }

  /** A proof that did not reach the buyer answers the next payment of the same payer for the same request. That ends its mark. */
  function noteDelivery(outcome: PaymentOutcome, isSent: boolean): void {
    if (outcome.kind === 'proof')
      noted(outcome, isSent).catch((error: unknown) => {
        log.warn('it is not noted whether a proof was delivered', { isSent, reason: reasonOf(error) })
      })
  }

  async function noted({ key, delivers, recorded, wasDelivered }: PaymentOutcome & { kind: 'proof' }, isSent: boolean) {
    await recorded
    if (isSent && recorded) await ledger.delivered(key)
    if (isSent && delivers) await ledger.setUndelivered(delivers, false)
    if (!isSent && !wasDelivered) await settlement.markUndelivered(key)
  }

  function toErrorCode(error: unknown, requestId: string): PaymentErrorCode {
    count('faults')
    const fault = isDatabaseUnavailable(error) ? 'ledger_unavailable' : 'internal_error'
    const code = error instanceof GatewayFault ? error.error : fault
    log[code === 'internal_error' ? 'error' : 'warn']('sale failed', { code, reason: reasonOf(error), requestId })
    return code
  }

  /** An exception that nothing catches would end the process. */
  function onFault(response: ServerResponse) {
    return (error: unknown) => sendPaymentError(response, toErrorCode(error, requestIdOf(response)))
  }

  return (request, response) => {
    response.on('error', () => {})
    try {
      route(request, response)
    } catch (error) {
      onFault(response)(error)
    }
  }
}

/** A payment through a channel is one too, whatever its payload. */
function isPayment({ kind }: Decoded): boolean {
  return kind === 'payment' || kind === 'channel'
}

function signalOf(response: ServerResponse): AbortSignal {
  const closing = new AbortController()
  if (response.destroyed) closing.abort()
  response.once('close', () => closing.abort())
  return closing.signal
}

/** Makes the body of /health (spec §2.6, §4.7) from the last self-check, so that a request causes no RPC. */
function healthBody(selfCheck: SelfCheck, key: () => AttestationKey): string {
  const results = [...selfCheck.results()]
  const degraded = results.some(([, { state }]) => state !== 'ok')
  return JSON.stringify({
    status: selfCheck.ready() ? (degraded ? 'degraded' : 'ok') : 'not_ready',
    timestamp: new Date().toISOString(),
    runtime,
    attestation_signer: signerOf(key),
    checks: Object.fromEntries(results.map(([name, { state, message }]) => [name, { ok: state === 'ok', message }])),
  })
}
