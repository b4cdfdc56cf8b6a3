/** The gateway host {gateway_url}: its routes on a plain node:http listener (spec §4.7, §4.8). */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { reasonOf } from '../errors.ts'
import type { ClientKey } from '../http/client-key.ts'
import type { Budget, RateLimiter } from '../http/rate-limit.ts'
import type { Log } from '../log.ts'
import { GatewayFault, refuse, statusOf, type ErrorCode, type Outcome } from './answers.ts'
import { healthBody } from './health.ts'
import type { AttestationKey } from './attest.ts'
import type { Count } from './metrics.ts'
import { createOffers } from './offer.ts'
import { decodePayment } from './payment.ts'
import { parsePurchase } from './purchase.ts'
import { readBody } from './request-body.ts'
import { preflightHeaders, sendError, sendJson, sendOutcome } from './respond.ts'
import type { Sales } from './sale.ts'
import type { SelfCheck } from './self-check.ts'
import { paymentDocument } from './discovery.ts'
import type { Terms } from './terms.ts'

export type GatewayHost = {
  readonly terms: Terms
  /** Whether the 402 carries the header of x402 version 2. */
  readonly offerHeader?: boolean
  readonly sales: Pick<Sales, 'sell'>
  readonly selfCheck: Pick<SelfCheck, 'results' | 'ready'>
  readonly key: () => AttestationKey
  /** The document of the attestation keys, as JSON. */
  readonly attestationDocument: () => string
  /** Left out: no limit. */
  readonly limiter?: RateLimiter | undefined
  readonly clientKey: ClientKey
  readonly count: Count
  readonly log: Log
}

/** A whole answer takes at most this long; work under way then goes on, and the retry finds it. */
const answerMs = 28_000

export function createGatewayHost(host: GatewayHost): RequestListener {
  const { sales, selfCheck, count, log, limiter } = host
  const offers = createOffers(host.terms, host.offerHeader)
  const payments = paymentDocument(host.terms)
  const reads: Readonly<Record<string, (response: ServerResponse) => void>> = {
    '/health': (response) => sendJson(response, healthBody(selfCheck, host.key), { 'Cache-Control': 'no-store' }),
    '/.well-known/x402': (response) => sendJson(response, payments, cacheable),
    '/.well-known/x402.json': (response) => sendJson(response, payments, cacheable),
    '/.well-known/attestation.json': (response) => sendJson(response, host.attestationDocument(), cacheable),
  }

  function route(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request)
    const method = request.method ?? ''
    if (path === '/verify') return verifyRoute(request, response, method)
    const read = Object.hasOwn(reads, path) ? reads[path] : undefined
    if (read === undefined) return sendError(response, 'not_found')
    if (method === 'OPTIONS') return preflight(response, 'GET, HEAD, OPTIONS')
    if (method !== 'GET' && method !== 'HEAD')
      return sendError(response, 'method_not_allowed', { Allow: 'GET, HEAD, OPTIONS' })
    read(response)
  }

  function verifyRoute(request: IncomingMessage, response: ServerResponse, method: string): void {
    if (method === 'OPTIONS') return preflight(response, 'POST, OPTIONS')
    if (method !== 'POST') return sendError(response, 'method_not_allowed', { Allow: 'POST, OPTIONS' })
    const budget = limiter?.take(host.clientKey(request.socket.remoteAddress, headerOf(request, 'x-forwarded-for')))
    if (budget instanceof Promise) void budget.then((shared) => saleRoute(request, response, shared))
    else saleRoute(request, response, budget)
  }

  function saleRoute(request: IncomingMessage, response: ServerResponse, budget: Budget | undefined): void {
    if (response.destroyed) return // the client went while its budget was asked for
    if (budget?.allowed === false) return sendOutcome(response, refuse('rate_limited'), offers, budget.resetSeconds)
    if (!selfCheck.ready()) return sendOutcome(response, refuse('not_ready'), offers)
    answer(request, response).then(
      (outcome) => {
        if (outcome.kind === 'error') countRefusal(outcome.error)
        sendOutcome(response, outcome, offers)
      },
      (error: unknown) => sendOutcome(response, refuse(faultOf(error)), offers),
    )
  }

  function countRefusal(error: ErrorCode): void {
    if (error === 'payment_required') count('offers')
    else if (statusOf(error) < 500) count('refused')
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<Outcome> {
    const text = await readBody(request)
    if (text === null) return refuse('body_too_large')
    if (text === undefined) return refuse('invalid_body') // to nobody
    const body = parsePurchase(text)
    if (body.kind === 'refused') return refuse(body.error)
    const decoded = decodePayment(headerOf(request, 'x-payment'), headerOf(request, 'payment-signature'))
    if (decoded.kind === 'none') return refuse('payment_required')
    if (body.kind === 'probe') return refuse('invalid_asset_id')
    if (decoded.kind === 'refused') return refuse(decoded.error)
    const until = performance.now() + answerMs
    const gone = () => response.destroyed || (response.socket?.destroyed ?? true)
    const sold = sales.sell({ presented: decoded, purchase: body.purchase, until, gone })
    return inTime(sold)
  }

  function faultOf(error: unknown): ErrorCode {
    count('faults')
    const code = error instanceof GatewayFault ? error.error : 'internal_error'
    log[code === 'internal_error' ? 'error' : 'warn']('sale failed', { code, reason: reasonOf(error) })
    return code
  }

  /** The sale goes on without its listener; a fault that comes too late is still logged. */
  async function inTime(sold: Promise<Outcome>): Promise<Outcome> {
    let timer: NodeJS.Timeout | undefined
    let late = false
    sold.catch((error: unknown) => late && faultOf(error))
    const deadline = new Promise<Outcome>((resolve) => {
      timer = setTimeout(() => {
        late = true
        resolve(refuse('settlement_pending'))
      }, answerMs)
    })
    return Promise.race([sold, deadline]).finally(() => clearTimeout(timer))
  }

  return (request, response) => {
    response.on('error', () => {})
    route(request, response)
  }
}

const cacheable = { 'Cache-Control': 'public, max-age=300' } as const

function preflight(response: ServerResponse, methods: string): void {
  response.writeHead(204, { ...preflightHeaders, 'Access-Control-Allow-Methods': methods }).end()
}

/** The path as it came, without its query; an absolute target is legal (RFC 9112 §3.2.2). */
function pathOf({ url = '/' }: IncomingMessage): string {
  const path = url.split('?', 1)[0] ?? '/'
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '')
}

/** A header sent twice arrives joined by a comma, whatever its name. */
function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
