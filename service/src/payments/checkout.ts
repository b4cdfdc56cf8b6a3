/**
 * The checkout of one proof, step by step (spec §4.8): ledger, facilitator's check, chain read, signature, one durable write, settlement.
 * Nothing is charged before the proof is stored. After that nothing stops: a buyer who disconnects gets the proof by retrying.
 */
import { randomUUID } from 'node:crypto'
import { poll, sleep } from '../lib/async/sleep.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Attest } from './attestation/attest.ts'
import { failure, GatewayFault, within, type ErrorCode, type Outcome } from './errors.ts'
import { formatPayload, parsePayload, type PaymentKey, type PaymentRow } from './ledger.ts'
import type { PaymentChain } from './on-chain.ts'
import type { Order } from './order.ts'
import { settlingSeconds, toSettling, type PaymentComponents, type Settlement } from './settlement.ts'
import { checkSignature, checkTerms, checkTimes, type Payment, type Presented } from './x402/payment.ts'

/** A claim covers the steps up to the durable write: at most 5 s, 8 s and 2 s. */
const claimSeconds = 30
const ledgerMs = 6_000
const chainMs = 5_000
const pollMs = 400
/** A clock that is off by more seconds cannot decide which payments have expired. */
const clockTolerance = 60n

export type CheckoutRequest = {
  readonly presented: Presented
  readonly order: Order
  /** A moment of `performance.now()` after which the response is sent in any case. */
  readonly until: number
  /** Returns whether the buyer has disconnected. Before the durable write that ends the checkout. */
  readonly isAborted: () => boolean
}
export type Checkout = ReturnType<typeof createCheckout>

type CheckoutOptions = PaymentComponents & {
  readonly attest: Attest
  readonly settlement: Settlement
  /** Milliseconds. */
  readonly now?: (() => number) | undefined
}

export function createCheckout(options: CheckoutOptions) {
  const { ledger, chain, facilitator, attest, settlement, terms, count, log, now = Date.now } = options
  const { verifyMs = 5_000 } = options.deadlines ?? {}
  const underway = new Map<
    string,
    { readonly request: CheckoutRequest; readonly outcome: Promise<Outcome | 'retry'> }
  >()
  const seconds = () => BigInt(Math.floor(now() / 1000))
  const recorded = <T>(work: Promise<T>) => within(ledgerMs, 'ledger_unavailable', work)

  /** Sells the proof, joins the checkout of the same payment, or answers from the ledger. Throws a GatewayFault. */
  async function buy(request: CheckoutRequest): Promise<Outcome> {
    const { payment } = request.presented
    const badSignature = checkSignature(payment, terms)
    // A contract defines its own signatures; the facilitator verifies them.
    const isWallet =
      badSignature !== undefined && (await within(chainMs, 'payment_unavailable', chain.hasCode(payment.from)))
    if (badSignature !== undefined && !isWallet) return failure(badSignature)
    const key = { payer: payment.from, nonce: payment.nonce }
    while (performance.now() < request.until) {
      const outcome = await attempt(request, key)
      if (outcome !== 'retry') return outcome
      await sleep(pollMs)
    }
    return failure('settlement_pending')
  }

  /** Returns 'retry' when another process is working on this payment, or has just stopped. */
  async function attempt(request: CheckoutRequest, key: PaymentKey): Promise<Outcome | 'retry'> {
    const name = nameOf(key)
    const joined = underway.get(name)
    if (joined !== undefined)
      return isSameRequest(joined.request, request) ? joined.outcome : failure('payment_already_used')
    const head = chain.head() // needed only for a new payment, read meanwhile
    head.catch(() => {})
    const row = await recorded(ledger.find(key))
    const known = row && answerFrom(row, request)
    if (known !== undefined) return known
    if (row?.state === 'open' && row.claimed) return 'retry'
    // Another request of this process may have begun while the ledger was read.
    if (underway.has(name)) return attempt(request, key)
    const outcome = row?.state === 'settling' ? resume(row) : begin(request, key, head)
    underway.set(name, { request, outcome })
    return outcome.finally(() => underway.delete(name))
  }

  /** Returns the answer of the ledger to a payment it knows; undefined where work is left. */
  function answerFrom(row: PaymentRow, { presented, order }: CheckoutRequest): Outcome | undefined {
    if (row.state === 'open' && !row.claimed) return undefined
    if (row.state === 'rejected') return failure(row.reason as ErrorCode)
    if (row.requestHash !== order.requestHash || !isSamePayment(parsePayload(row.payload), presented.payment))
      return failure('payment_already_used')
    if (row.state !== 'done' || row.answer === null || row.transaction === null) return undefined
    count('replayed')
    return { kind: 'proof', body: row.answer, transaction: row.transaction, payer: row.payer }
  }

  /** Answers at once where the chain has decided; otherwise only the holder of the claim settles. */
  async function resume(found: PaymentRow): Promise<Outcome | 'retry'> {
    const claim = randomUUID()
    const row = await recorded(ledger.lease(found, claim, settlingSeconds))
    if (row === undefined) return (await settlement.poll(toSettling(found, claim))) ?? 'retry'
    if (row.state === 'settling') return settlement.resume(toSettling(row, claim))
    await recorded(ledger.releaseClaim(row, claim))
    return 'retry'
  }

  async function begin(
    request: CheckoutRequest,
    key: PaymentKey,
    head: ReturnType<PaymentChain['head']>,
  ): Promise<Outcome | 'retry'> {
    const { presented, order } = request
    const { payment } = presented
    const error = checkTerms(presented, terms) ?? (await checkTimesOnChain(payment))
    if (error !== undefined) return failure(error)
    const { number: fromBlock, timestamp } = await within(chainMs, 'payment_unavailable', head)
    // A block from the future means that this clock is late, and a proof would carry a wrong time.
    if (seconds() + clockTolerance < timestamp)
      throw new GatewayFault('not_ready', { cause: 'this clock is behind the chain' })
    const claim = randomUUID()
    const { requestHash } = order
    const entry = { ...key, requestHash, payload: formatPayload(payment), validBefore: payment.validBefore }
    if (!(await recorded(ledger.claim(entry, claim, claimSeconds)))) return 'retry'
    try {
      const proof = await verifyAndAttest(request)
      if (typeof proof !== 'string') {
        await giveUp(key, claim)
        return proof
      }
      // From here on the outcome of the write may be unknown, and with it whether this will be charged.
      const kept = { proof, fromBlock, seconds: settlingSeconds }
      if (!(await within(ledgerMs, 'settlement_pending', ledger.settling(key, claim, kept)))) return 'retry'
      return settlement.settle({ key, claim, payment, proof, fromBlock, transaction: null })
    } catch (error) {
      await giveUp(key, claim)
      throw error
    }
  }

  /** Verifies and signs at once, because neither charges anything. An error of the payment goes first. */
  async function verifyAndAttest({ order, presented, isAborted }: CheckoutRequest): Promise<string | Outcome> {
    const attested = attest(order)
    attested.catch(() => {})
    const verified = await within(verifyMs, 'payment_unavailable', facilitator.verify(presented.payment))
    if (!verified.ok) return failure(verified.error)
    const proof = await attested
    if (proof === null) return failure('asset_not_found')
    return isAborted() ? failure('settlement_pending') : proof
  }

  /** Chain time decides whether a payment is too late or too early: a wrong clock here is not the buyer's fault. */
  async function checkTimesOnChain(payment: Payment): Promise<ErrorCode | undefined> {
    const ours = seconds()
    const error = checkTimes(payment, ours)
    if (error === undefined) return undefined
    const theirs = await within(chainMs, 'payment_unavailable', chain.time())
    const apart = ours > theirs ? ours - theirs : theirs - ours
    if (apart < clockTolerance || checkTimes(payment, theirs) !== undefined) return error
    throw new GatewayFault('not_ready', { cause: `this clock is ${apart} s off chain time` })
  }

  /** Deletes an open row. A row that is settling by now loses its claim, so that the next request continues it. */
  async function giveUp(key: PaymentKey, claim: string): Promise<void> {
    await recorded(ledger.dropOpen(key, claim).then(() => ledger.releaseClaim(key, claim))).catch((error: unknown) =>
      log.warn('a claim on a payment stays until it ends', { reason: reasonOf(error) }),
    )
  }

  return {
    buy,
    /** Resolves when no checkout is in progress, or after `withinMs`. The next start reconciles what is settling then. */
    async idle(withinMs = 5_000): Promise<void> {
      await poll(() => underway.size === 0, { everyMs: 20, timeoutMs: withinMs })
    },
    isUnderway: (key: PaymentKey) => underway.has(nameOf(key)),
  }
}

const nameOf = ({ payer, nonce }: PaymentKey) => `${payer}${nonce}`

function isSameRequest(one: CheckoutRequest, other: CheckoutRequest): boolean {
  return (
    one.order.requestHash === other.order.requestHash && isSamePayment(one.presented.payment, other.presented.payment)
  )
}

/** Compares authorizations only, because one signature can be written in several ways. */
function isSamePayment(one: Payment, other: Payment): boolean {
  return (['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'] as const).every(
    (name) => one[name] === other[name],
  )
}
