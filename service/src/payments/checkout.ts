/**
 * The checkout of one proof, step by step (spec §4.8): ledger, facilitator's check, chain read, signature, one durable write, settlement.
 * Nothing is charged before the proof is stored. After that nothing stops: a buyer who disconnects gets the proof by retrying.
 */
import { poll } from '../lib/async/sleep.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Attest } from './attestation/attest.ts'
import { renewed } from './attestation/renewal.ts'
import {
  abandoned,
  attemptUntil,
  chainMs,
  createSharedAttempts,
  paymentFailure,
  ledgerMs,
  saysUncharged,
  within,
  type Attempted,
  type PaymentErrorCode,
  type PaymentOutcome,
} from './errors.ts'
import type { Head } from './heads.ts'
import { nameOfAnswered, type FoundRow } from './ledger/intake.ts'
import { parsePayload, type PaymentRow } from './ledger/table.ts'
import { paymentName, type PaymentKey } from './key.ts'
import type { Order } from './order.ts'
import { toSettling, type PaymentComponents, type Settlement } from './settlement.ts'
import { checkSignature, checkTerms, checkTimes, paymentDigest, type Payment, type Presented } from './x402/payment.ts'

export type CheckoutRequest = {
  readonly presented: Presented
  readonly order: Order
  /** A moment of `performance.now()` after which the response is sent in any case. */
  readonly until: number
  /** Aborts when the buyer has disconnected. Before the durable write that ends the checkout; later the proof counts as not delivered. */
  readonly closed: AbortSignal
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
  const shared = createSharedAttempts(isSameRequest)
  const seconds = () => BigInt(Math.floor(now() / 1000))
  const recorded = <T>(work: Promise<T>) => within(ledgerMs, 'ledger_unavailable', work)

  /** Sells the proof, joins the checkout of the same payment, or answers from the ledger. Throws a GatewayFault. */
  async function buy(request: CheckoutRequest): Promise<PaymentOutcome> {
    const { payment } = request.presented
    const badSignature = checkSignature(payment, terms)
    return attemptUntil(request.until, async () => {
      try {
        if (badSignature !== undefined && !(await isOfWallet(payment))) return paymentFailure(badSignature)
        return await shared.attempt(paymentName(keyOf(request)), request, () => sell(request))
      } catch (fault) {
        if (saysUncharged(fault) && (await isStored(request))) return 'retry'
        throw fault
      }
    })
  }

  /** Looks again: another process may have stored a payment since the first look. */
  async function isStored(request: CheckoutRequest): Promise<boolean> {
    return (await recorded(ledger.find(keyOf(request)))) !== undefined
  }

  /** A contract defines its own signatures; the facilitator verifies them. It has verified the one in the ledger. */
  async function isOfWallet(payment: Payment): Promise<boolean> {
    const row = await recorded(ledger.find({ payer: payment.from, nonce: payment.nonce }))
    const stored = row && parsePayload(row.payload)
    if (stored?.signature === payment.signature && isSamePayment(stored, payment)) return true
    // A stored payment may be charged.
    const unanswered = row === undefined ? 'payment_unavailable' : 'settlement_pending'
    return within(chainMs, unanswered, chain.hasCode(payment.from))
  }

  /** Returns 'retry' when another process is working on this payment, or has just stopped. */
  async function sell(request: CheckoutRequest): Promise<Attempted> {
    const { requestHash } = request.order
    const { identifier } = request.presented
    const head = chain.heads.headOnTime() // needed only for a new payment, read meanwhile
    head.catch(() => {})
    const row = await recorded(ledger.find({ ...keyOf(request), requestHash, identifier }))
    const isTheirs = row !== undefined && (await isOfPayer(row, request.presented.payment))
    return isTheirs ? resume(row, request) : begin(request, head)
  }

  /** Another payment of a payer is for the payer only. The header of the same one may have been sent by anyone, and buys nothing new. */
  async function isOfPayer(row: PaymentRow, payment: Payment): Promise<boolean> {
    if (row.nonce === payment.nonce) return true
    // A payment to another seller is public on the chain once it was executed.
    if (payment.to !== terms.payTo.toLowerCase() && payment.deposit === undefined) return false
    // So may one be that has expired: a transaction that failed shows it. Its payer cannot use it up any more.
    const { timestamp } = await within(chainMs, 'payment_unavailable', chain.heads.head())
    if (payment.validBefore <= seconds() || payment.validBefore <= timestamp) return false
    // So is one to this seller through another service.
    if (await within(chainMs, 'payment_unavailable', chain.isUsed(payment, 'latest'))) return false
    if (payment.signature.length === 132 && checkSignature(payment, terms) === undefined) return true
    // A wallet that has spent its money can still ask for what it paid.
    const digest = paymentDigest(payment, terms)
    const accepted = chain.acceptsSignature(payment.from, digest, payment.signature)
    if (await within(chainMs, 'payment_unavailable', accepted)) return true
    return (await within(verifyMs, 'payment_unavailable', facilitator.verify(payment))).ok
  }

  /** Answers from the ledger, or continues what an earlier request or process left. The row may be of an earlier authorization. */
  async function resume(row: FoundRow, { presented, order, closed }: CheckoutRequest): Promise<Attempted> {
    const { payment, identifier } = presented
    const isSame = row.nonce === payment.nonce
    if (isSame && !isSamePayment(parsePayload(row.payload), payment))
      return paymentFailure(row.state === 'rejected' ? 'nonce_already_used' : 'payment_already_used')
    if (row.state === 'rejected')
      return (await findPaidLater(row, order)) ?? paymentFailure(row.reason as PaymentErrorCode)
    if (row.requestHash !== order.requestHash)
      return paymentFailure(isSame || identifier === undefined ? 'payment_already_used' : 'payment_identifier_used')
    const stored = await proceed(row, closed)
    // How another payment failed is no answer to this one, which is sold now.
    if (!isSame && stored !== 'retry' && stored.kind === 'error' && stored.error !== 'settlement_pending')
      return 'retry'
    // A repeat of the same payment leaves the mark, because a transfer shows its authorization and signature to everyone.
    if (isSame || stored === 'retry' || stored.kind !== 'proof') return stored
    const outcome = row.isOther ? await renewed(stored, order, options) : stored
    if (outcome === 'retry' || outcome.kind !== 'proof') return outcome
    // From here on this payment and its identifier bring this answer, and are not charged. A deposit is made where that other is too small.
    if (row.isOther && payment.deposit === undefined) {
      const names = [nameOfAnswered(payment.nonce), ...(identifier === undefined ? [] : [identifier])]
      if (!(await recorded(ledger.identify(row, ...names)))) {
        await recorded(ledger.setUndelivered(row, false)) // it has answered as many payments as it can be bound to
        return 'retry'
      }
    }
    return row.undelivered ? { ...outcome, delivers: outcome.key } : outcome
  }

  /** Returns the outcome of a rejected payment that was executed later, for the same request. */
  async function findPaidLater(row: PaymentRow, { requestHash }: Order) {
    return row.requestHash === requestHash ? settlement.findPaidLater(row) : undefined
  }

  async function proceed(row: PaymentRow, closed: AbortSignal): Promise<Attempted> {
    const { payer, nonce } = row
    if (row.state === 'done' && row.answer !== null) {
      count('replayed')
      const wasDelivered = !row.undelivered
      return { kind: 'proof', body: row.answer, transaction: row.transaction, key: { payer, nonce }, wasDelivered }
    }
    if (settlement.isRunning(row)) return settlement.settle(toSettling(row), closed)
    const [adopted] = await recorded(ledger.adopt(1, { payer, nonce }, settlement.own()))
    if (adopted !== undefined) return settlement.settle(toSettling(adopted), closed)
    return (await settlement.poll(toSettling(row))) ?? 'retry'
  }

  async function begin(request: CheckoutRequest, head: Promise<Head>): Promise<Attempted> {
    const { presented, order, closed } = request
    const { payment } = presented
    if (settlement.isRunning(keyOf(request))) return 'retry' // its row was deleted, so that it ends
    const error = checkTerms(presented, terms) ?? (await checkTimesOnChain(payment))
    if (error !== undefined) return refuse(request, paymentFailure(error))
    const { number: fromBlock } = await within(chainMs, 'payment_unavailable', head)
    const proof = await verifyAndAttest(request)
    if (typeof proof !== 'string') return refuse(request, proof)
    const key = keyOf(request)
    const { requestHash } = order
    const tokenId = payment.deposit === undefined ? order.tokenId : null
    const entry = { ...key, tokenId, requestHash, payment, proof, fromBlock, identifier: presented.identifier }
    // From here on the outcome of the write may be unknown, and with it whether this will be charged.
    const inserting = ledger.insert(entry)
    const isInserted = await within(ledgerMs, 'settlement_pending', inserting).catch((fault: unknown) => {
      void leave(key, inserting)
      throw fault
    })
    if (!isInserted) return 'retry'
    return settlement.settle({ key, payment, proof, fromBlock, transaction: null, settlement: null }, closed)
  }

  /** Refuses a new payment. Where another process sells it, its transfer uses the payment up. */
  async function refuse(request: CheckoutRequest, refusal: PaymentOutcome): Promise<Attempted> {
    return (await isStored(request)) ? 'retry' : refusal
  }

  /** Gives a row that may have been stored to the next process that looks, once its write has ended. */
  async function leave(key: PaymentKey, inserting: Promise<unknown>): Promise<void> {
    await inserting.catch(() => {})
    if (settlement.isRunning(key)) return // this process has looked already
    await ledger.release(key).catch((error: unknown) => {
      log.warn('a payment that may have been stored is settled later', { reason: reasonOf(error) })
    })
  }

  /** Verifies and signs at once, because neither charges anything. An error of the payment goes first. */
  async function verifyAndAttest({ order, presented, closed }: CheckoutRequest): Promise<string | PaymentOutcome> {
    const attested = attest(order)
    attested.catch(() => {})
    const verified = await within(verifyMs, 'payment_unavailable', facilitator.verify(presented.payment))
    if (!verified.ok) return paymentFailure(verified.error)
    const proof = await attested
    if (proof === null) return paymentFailure('asset_not_found')
    return closed.aborted ? abandoned : proof
  }

  /** Returns whether a payment is too late or too early. A wrong clock here is not the buyer's fault. */
  async function checkTimesOnChain(payment: Payment): Promise<PaymentErrorCode | undefined> {
    const error = checkTimes(payment, seconds())
    if (error !== undefined) await within(chainMs, 'payment_unavailable', chain.heads.requireClock())
    return error
  }

  return {
    buy,
    /** Resolves when no checkout is in progress, or after five seconds. The next start reconciles what is settling then. */
    async idle(): Promise<void> {
      await poll(shared.isIdle, { everyMs: 20, timeoutMs: 5_000 })
    },
  }
}

function keyOf({ presented: { payment } }: CheckoutRequest): PaymentKey {
  return { payer: payment.from, nonce: payment.nonce }
}

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
