/**
 * The sale of one proof, step by step (spec §4.8): ledger, facilitator's check, chain read, signature, one durable write, settlement.
 * Nothing is charged before the proof is stored, and once it is stored nothing stops: a buyer who hangs up finds it by retrying.
 */
import { randomUUID } from 'node:crypto'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { GatewayFault, refuse, within, type ErrorCode, type Outcome } from './answers.ts'
import type { Attest } from './attest.ts'
import type { Facilitator } from './facilitator.ts'
import { payloadOf, paymentOf, type Ledger, type PaymentKey, type PaymentRow } from './ledger.ts'
import type { Count } from './metrics.ts'
import { signatureRefusal, termsRefusal, timeRefusal } from './payment-checks.ts'
import type { PaymentChain } from './payment-chain.ts'
import type { Payment, Presented } from './payment.ts'
import type { Purchase } from './purchase.ts'
import { settlingOf, settlingSeconds, type Settlement } from './settlement.ts'
import type { Terms } from './terms.ts'

/** A claim covers the steps up to the durable write: at most 5 s, 8 s and 2 s. */
const claimSeconds = 30
const verifyMs = 5_000
const ledgerMs = 6_000
const chainMs = 5_000
const pollMs = 400
/** A clock further off than this many seconds cannot tell which payments have expired. */
const clockTolerance = 60n

export type Sale = {
  readonly presented: Presented
  readonly purchase: Purchase
  /** A moment of `performance.now()` after which nobody listens any more. */
  readonly until: number
  /** Whether the buyer has hung up: before the durable write that ends the sale. */
  readonly gone: () => boolean
}
export type Sales = ReturnType<typeof createSales>

/** `now` is in milliseconds. */
export function createSales({
  ledger,
  chain,
  facilitator,
  attest,
  settlement,
  terms,
  count,
  log,
  now = Date.now,
}: {
  readonly ledger: Ledger
  readonly chain: PaymentChain
  readonly facilitator: Facilitator
  readonly attest: Attest
  readonly settlement: Settlement
  readonly terms: Terms
  readonly count: Count
  readonly log: Log
  readonly now?: () => number
}) {
  const underway = new Map<string, { readonly sale: Sale; readonly outcome: Promise<Outcome | 'again'> }>()
  const seconds = () => BigInt(Math.floor(now() / 1000))
  const recorded = <T>(work: Promise<T>) => within(ledgerMs, 'ledger_unavailable', work)

  /** Sells, joins the sale of the same payment under way, or answers from the ledger. It throws a GatewayFault. */
  async function sell(sale: Sale): Promise<Outcome> {
    const { payment } = sale.presented
    const badSignature = signatureRefusal(payment, terms)
    // A contract decides itself what its signature is; the facilitator asks it.
    const isWallet =
      badSignature !== undefined && (await within(chainMs, 'payment_unavailable', chain.hasCode(payment.from)))
    if (badSignature !== undefined && !isWallet) return refuse(badSignature)
    const key = { payer: payment.from, nonce: payment.nonce }
    while (performance.now() < sale.until) {
      const outcome = await oneLook(sale, key)
      if (outcome !== 'again') return outcome
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
    return refuse('settlement_pending')
  }

  /** 'again': another process is at work on this payment, or has just given it up. */
  async function oneLook(sale: Sale, key: PaymentKey): Promise<Outcome | 'again'> {
    const name = `${key.payer}${key.nonce}`
    const joined = underway.get(name)
    if (joined !== undefined) return isSameSale(joined.sale, sale) ? joined.outcome : refuse('payment_already_used')
    const head = chain.head() // needed only for a new payment, asked for meanwhile
    head.catch(() => {})
    const row = await recorded(ledger.find(key))
    const known = row === undefined ? undefined : answerFrom(row, sale)
    if (known !== undefined) return known
    if (row?.state === 'open' && row.claimed) return 'again'
    // Another request of this process may have begun while the ledger was asked.
    if (underway.has(name)) return oneLook(sale, key)
    const outcome = row?.state === 'settling' ? resume(row) : begin(sale, key, head)
    underway.set(name, { sale, outcome })
    return outcome.finally(() => underway.delete(name))
  }

  /** What the ledger says to a payment it knows; undefined where there is still work to do. */
  function answerFrom(row: PaymentRow, { presented, purchase }: Sale): Outcome | undefined {
    if (row.state === 'open' && !row.claimed) return undefined
    if (row.state === 'dead') return refuse(row.reason as ErrorCode)
    if (row.requestHash !== purchase.requestHash || !isSame(paymentOf(row.payload), presented.payment))
      return refuse('payment_already_used')
    if (row.state !== 'done' || row.answer === null || row.transaction === null) return undefined
    count('replayed')
    return { kind: 'proof', body: row.answer, transaction: row.transaction, payer: row.payer }
  }

  /** What the chain has decided is told at once; only who holds the claim settles. */
  async function resume(found: PaymentRow): Promise<Outcome | 'again'> {
    const claim = randomUUID()
    const row = await recorded(ledger.lease(found, claim, settlingSeconds))
    if (row === undefined) return (await settlement.look(settlingOf(found, claim))) ?? 'again'
    if (row.state === 'settling') return settlement.resume(settlingOf(row, claim))
    await recorded(ledger.free(row, claim))
    return 'again'
  }

  async function begin(
    sale: Sale,
    key: PaymentKey,
    head: ReturnType<PaymentChain['head']>,
  ): Promise<Outcome | 'again'> {
    const { presented, purchase } = sale
    const { payment } = presented
    const refusal = termsRefusal(presented, terms) ?? (await timesRefused(payment))
    if (refusal !== undefined) return refuse(refusal)
    const { number: fromBlock, timestamp } = await within(chainMs, 'payment_unavailable', head)
    // No block is from the future: a proof would carry a wrong time.
    if (seconds() + clockTolerance < timestamp)
      throw new GatewayFault('not_ready', { cause: 'this clock is behind the chain' })
    const claim = randomUUID()
    const payload = payloadOf(payment)
    const entry = { ...key, requestHash: purchase.requestHash, payload, validBefore: payment.validBefore }
    if (!(await recorded(ledger.claim(entry, claim, claimSeconds)))) return 'again'
    const proof = await proofFor(sale, payment).catch(async (error: unknown) => {
      await giveUp(key, claim)
      throw error
    })
    if (typeof proof !== 'string') {
      await giveUp(key, claim)
      return proof
    }
    // From here on the outcome of the write may be unknown, and with it whether this will be charged.
    const kept = { proof, fromBlock, seconds: settlingSeconds }
    const stored = await within(ledgerMs, 'settlement_pending', ledger.settling(key, claim, kept)).catch(
      async (error: unknown) => {
        await giveUp(key, claim)
        throw error
      },
    )
    if (!stored) return 'again'
    return settlement.settle({ key, claim, payment, proof, fromBlock, transaction: null })
  }

  /** The check and the proof at once: neither charges anything. A refused payment is told first. */
  async function proofFor({ purchase, gone }: Sale, payment: Payment): Promise<string | Outcome> {
    const made = attest(purchase)
    made.catch(() => {})
    const verified = await within(verifyMs, 'payment_unavailable', facilitator.verify(payment))
    if (!verified.ok) return refuse(verified.error)
    const proof = await made
    if (proof === null) return refuse('asset_not_found')
    return gone() ? refuse('settlement_pending') : proof
  }

  /** A wrong clock of ours is not the buyer's fault: chain time has the last word on «too late» and «too early». */
  async function timesRefused(payment: Payment): Promise<ErrorCode | undefined> {
    const ours = seconds()
    const refusal = timeRefusal(payment, ours)
    if (refusal === undefined) return undefined
    const theirs = await within(chainMs, 'payment_unavailable', chain.time())
    const apart = ours > theirs ? ours - theirs : theirs - ours
    if (apart < clockTolerance || timeRefusal(payment, theirs) !== undefined) return refusal
    throw new GatewayFault('not_ready', { cause: `this clock is ${apart} s off chain time` })
  }

  /** A row that is open is forgotten; one that is settling by now is left to whoever looks next. */
  async function giveUp(key: PaymentKey, claim: string): Promise<void> {
    await recorded(ledger.release(key, claim).then(() => ledger.free(key, claim))).catch((error: unknown) =>
      log.warn('a claim on a payment stays until it ends', { reason: reasonOf(error) }),
    )
  }

  return {
    sell,
    /** Resolves when no sale is under way, or after `withinMs`: what is settling then is looked after at the next start. */
    async idle(withinMs = 5_000): Promise<void> {
      const until = performance.now() + withinMs
      while (underway.size > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 20))
    },
    isUnderway: ({ payer, nonce }: PaymentKey) => underway.has(`${payer}${nonce}`),
  }
}

function isSameSale(one: Sale, other: Sale): boolean {
  return (
    one.purchase.requestHash === other.purchase.requestHash && isSame(one.presented.payment, other.presented.payment)
  )
}

/** The same authorization; its signature may be written in several ways. */
function isSame(one: Payment, other: Payment): boolean {
  return (['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'] as const).every(
    (name) => one[name] === other[name],
  )
}
