/**
 * Takes a payment from `settling` to an end (spec §4.8). A transfer may be pending, so that only the chain decides. While it does not,
 * the row stays `settling` and the same authorization is settled again, which its nonce makes harmless. A buyer does not wait for that.
 */
import { checksumAddress, type Hex } from '@touchstone/verdict'
import { type BlockId, chainName } from '../domain/chain.ts'
import { withDeadline } from '../lib/async/deadline.ts'
import { backoff, retry } from '../lib/async/retry.ts'
import { sleep } from '../lib/async/sleep.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { withPayment } from './attestation/attest.ts'
import { chainMs, paymentFailure, GatewayFault, within, type PaymentErrorCode, type PaymentOutcome } from './errors.ts'
import type { Facilitator, SettlementReport } from './facilitator/facilitator.ts'
import type { PaymentLedger } from './ledger/ledger.ts'
import { parsePayload, type PaymentRow } from './ledger/table.ts'
import { paymentName, type PaymentKey } from './key.ts'
import type { PaymentChain, AuthorizationStatus } from './on-chain.ts'
import type { Payment } from './x402/payment.ts'
import type { PaymentTerms } from './x402/terms.ts'

type Proof = Extract<PaymentOutcome, { readonly kind: 'proof' }>

/** A row that this process holds. `transaction` and `settlement`: what an earlier process sent for it. */
export type Settling = {
  readonly key: PaymentKey
  readonly payment: Payment
  readonly proof: string
  readonly fromBlock: bigint
  readonly transaction: Hex | null
  readonly settlement: bigint | null
}

/** A transfer that was sent for a payment is in no block of so many seconds before the payment came. */
const clockSkewSeconds = 60n
/**
 * Longest pause between two tries of a payment, in milliseconds. It is the pause of one that is too late to be executed. Before that a pause is
 * about a quarter of the time since the first try, so that a facilitator which refuses for an hour is asked some eighty times.
 */
const mostPauseMs = 60_000
/** Longest lag of the chain behind a receipt, in milliseconds. */
const lagMs = 4_000

/** Counts for the metrics: sales by outcome, `units` of the token that were paid, `gas` and `lostGas` in wei. */
export function createCounts() {
  const counted = {
    offers: 0,
    settled: 0,
    pending: 0,
    reconciled: 0,
    refused: 0,
    replayed: 0,
    faults: 0,
    deposits: 0,
    vouchers: 0,
    units: 0,
    gas: 0,
    lostGas: 0,
  }
  return {
    count: (what: keyof typeof counted, amount = 1n): void => {
      counted[what] += Number(amount)
    },
    figures: () => {
      const { units, gas, lostGas, ...sales } = counted
      return { sales, units, gas, lostGas }
    },
  }
}

/** Milliseconds: 5 s for the facilitator to verify, and 15 s that a buyer waits for the settlement. */
type PaymentDeadlines = {
  readonly verifyMs?: number
  readonly settleMs?: number
  /** Time after which the chain is asked about a payment whose transaction is not mined. Default: 20 s. */
  readonly followMs?: number
  /** Seconds of the chain after which a transaction without a receipt is lost, where its nonce counts as used. Default: a minute. */
  readonly missingSeconds?: number
  /** Seconds for which the block of a paid payment is checked. Default: two minutes. */
  readonly recheckSeconds?: number
}

/** The components that checkout, settlement and reconciliation share. */
export type PaymentComponents = {
  readonly ledger: PaymentLedger
  readonly chain: PaymentChain
  readonly facilitator: Facilitator
  readonly terms: PaymentTerms
  readonly count: ReturnType<typeof createCounts>['count']
  readonly log: Log
  readonly deadlines?: PaymentDeadlines | undefined
}

export type Settlement = ReturnType<typeof createSettlement>

/**
 * `ended` resolves to undefined where this process ends first. `undecided` resolves after the present try, or the next one, has left the
 * outcome unknown. `retry` ends the pause before the next one.
 */
type Running = {
  readonly key: PaymentKey
  readonly ended: Promise<PaymentOutcome | undefined>
  undecided: PromiseWithResolvers<void>
  retry: () => void
}

export function createSettlement({ ledger, chain, facilitator, terms, count, log, deadlines }: PaymentComponents) {
  const { settleMs = 15_000 } = deadlines ?? {}
  const running = new Map<string, Running>()
  /** Paid ones of which a write into the ledger has failed. Its outcome is unknown. */
  const unrecorded = new Map<string, PaymentKey>()
  const closing = new AbortController()

  /** Settles a row of this process, or joins its settlement. Never rejects; `settlement_pending` while the work goes on after `closed`. */
  async function settle(row: Settling, closed?: AbortSignal): Promise<PaymentOutcome> {
    const { ended, undecided, retry: tryNow } = running.get(paymentName(row.key)) ?? start(row)
    tryNow()
    const left = new Promise<void>((resolve) => {
      if (closed?.aborted) resolve()
      closed?.addEventListener('abort', () => resolve())
    })
    const outcome = await withDeadline(Promise.race([ended, undecided.promise, left]), settleMs, {
      onTimeout: () => {},
    })
    if (outcome !== undefined) return outcome
    count('pending')
    return paymentFailure('settlement_pending', { key: row.key, transaction: await markUndelivered(row.key) })
  }

  /**
   * Notes that the buyer has no proof, as soon as the ledger takes that. Without the mark, the buyer's next payment is executed too. Returns the
   * newest transaction that was sent.
   */
  function markUndelivered(key: PaymentKey): Promise<Hex | null> {
    const mark = () => ledger.setUndelivered(key, true)
    return mark().catch((error: unknown) => {
      notRecorded(error)
      void untilRecorded(mark)
      return null
    })
  }

  function untilRecorded(write: () => Promise<unknown>): Promise<unknown> {
    const isRetryable = () => !closing.signal.aborted
    return retry(write, { pausesMs: backoff(500, 10_000), isRetryable, signal: closing.signal }).catch(notRecorded)
  }

  function start(row: Settling): Running {
    const name = paymentName(row.key)
    const started: Running = {
      key: row.key,
      ended: Promise.resolve()
        .then(() => run(row, started))
        .finally(() => running.delete(name)),
      undecided: Promise.withResolvers<void>(),
      retry: () => {},
    }
    running.set(name, started)
    return started
  }

  /** Tries until the chain has decided. Returns undefined where this process ends first. A row that is not there is not executed. */
  async function run(first: Settling, own: Running): Promise<PaymentOutcome | undefined> {
    let row: Settling | null = first
    for (const pauseMs of backoff(500, mostPauseMs, 1.25)) {
      const outcome = row && (await attempt(row))
      if (outcome) return outcome
      own.undecided.resolve()
      own.undecided = Promise.withResolvers<void>()
      const asked = new Promise<void>((resolve) => (own.retry = resolve))
      const isLate = BigInt(Math.floor(Date.now() / 1000)) > first.payment.validBefore
      await Promise.race([asked, sleep(isLate ? mostPauseMs : pauseMs, closing)])
      if (closing.signal.aborted) break
      const stored = await ledger.find(first.key).catch((error: unknown) => (notRecorded(error), null))
      const ended = stored === null ? undefined : outcomeOf(stored)
      if (ended) return ended
      row = stored ? toSettling(stored) : null
    }
    return ledger.release(first.key).then(() => undefined, notRecorded)
  }

  /** Returns the outcome of a row that has ended, where the database lost the answer to that. */
  function outcomeOf(stored: PaymentRow | undefined): PaymentOutcome | undefined {
    if (stored === undefined) return paymentFailure('settlement_pending') // it was deleted
    const { state, payer, nonce, reason, answer, transaction } = stored
    if (state === 'rejected') return paymentFailure(reason as PaymentErrorCode)
    if (state !== 'done' || answer === null) return undefined
    return { kind: 'proof', body: answer, transaction, key: { payer, nonce }, recorded: Promise.resolve() }
  }

  async function attempt(row: Settling): Promise<PaymentOutcome | undefined> {
    const report = await facilitator.settle(row.payment, row.settlement).catch((error: unknown): SettlementReport => {
      log.warn('the facilitator did not settle', { reason: reasonOf(error) })
      return { sent: 'perhaps' }
    })
    if (report.transaction) await ledger.setTransaction(row.key, report.transaction).catch(notRecorded)
    return report.paid ? complete(row, report.paid) : decide(row, report)
  }

  /** Asks the chain, for longer where a transaction was mined. Returns undefined while it has not decided. */
  async function decide(row: Settling, report: SettlementReport): Promise<PaymentOutcome | undefined> {
    const until = performance.now() + (report.sent === 'mined' ? lagMs : 0)
    for (;;) {
      const status = await look(row)
      const outcome = status && (await conclude(row, status, report).catch(notRecorded))
      if (outcome !== undefined || performance.now() > until || closing.signal.aborted) return outcome
      await sleep(250, closing)
    }
  }

  /** Returns what the chain says of the payment. `earlier` is left where no transaction is known that was sent for it. */
  async function statusOf({ key, payment, fromBlock }: Settling): Promise<AuthorizationStatus> {
    const status = await chain.transferStatus(payment, fromBlock)
    if (status.kind !== 'earlier') return status
    const own = await ledger.sentFor(key, status.transaction) // the row that was read before may not have it yet
    // A remote facilitator may name a transaction of before. One that this service signed is younger, whatever the clock of the database says.
    if (own.isSigned) return { ...status, kind: 'paid' }
    if ((await chain.timeOf(status.block)) + clockSkewSeconds < own.since) return { kind: 'spent' }
    if (own.transactions.includes(status.transaction)) return { ...status, kind: 'paid' }
    return own.transactions.length > 0 ? { kind: 'spent' } : status
  }

  function look(row: Settling): Promise<AuthorizationStatus | undefined> {
    return statusOf(row).catch((error: unknown) => {
      log.warn('the chain does not show the outcome of a payment', { reason: reasonOf(error) })
      return undefined
    })
  }

  async function conclude(
    row: Settling,
    status: AuthorizationStatus,
    report: SettlementReport,
  ): Promise<PaymentOutcome | undefined> {
    switch (status.kind) {
      case 'paid':
        return complete(row, status)
      case 'spent':
        return reject(row, 'nonce_already_used')
      case 'earlier':
        // It may be our own transaction where one may have been sent whose hash is not known.
        return report.sent === 'no' ? reject(row, 'nonce_already_used') : undefined
      case 'expired':
        return reject(row, 'authorization_expired')
      case 'unknown':
        return undefined
      case 'unused':
        return concludeUnused(row, report)
    }
  }

  /** A transfer that was mined and moved nothing cost gas: it is not tried again. One that was never sent may be paid later. */
  async function concludeUnused(
    row: Settling,
    { sent, rejection, retryAfter }: SettlementReport,
  ): Promise<PaymentOutcome | undefined> {
    if (sent === 'reverted') {
      const reason = (await chain.rejectionReason(row.payment).catch(() => undefined)) ?? 'payment_rejected'
      return reason === 'nonce_already_used' ? undefined : reject(row, reason)
    }
    // A version before this one may have sent a transaction that has no row of its own.
    if (sent !== 'no' || (row.transaction !== null && row.settlement === null)) return undefined
    const reason = rejection ?? (await chain.rejectionReason(row.payment))
    if (reason === undefined || reason === 'nonce_already_used') return undefined // the next look shows what used it
    const fate = await ledger.drop(row.key)
    // A reorganisation may still execute what was sent. The row stays for that, with a reason that holds for as long.
    if (fate === 'sent' && reason === 'payment_unavailable') return undefined
    if (fate === 'sent') return reject(row, reason === 'payer_blocked' ? 'payment_rejected' : reason)
    return fate && { kind: 'error', error: reason, ...(retryAfter !== undefined && { retryAfter }) }
  }

  /** The proof does not wait for a ledger that fails: a retry gets the same bytes from the same row. */
  async function complete(row: Settling, { transaction, block }: { transaction: Hex; block: BlockId }): Promise<Proof> {
    const answer = formatAnswer(row, transaction)
    const name = paymentName(row.key)
    const record = async () => {
      const stored = await ledger.done(row.key, { transaction, answer, block })
      // Another process may have found it paid too, or another request of this one.
      if (unrecorded.delete(name) || stored.isNew) countPaid(row)
      return stored.answer
    }
    let recorded: Promise<unknown> = Promise.resolve()
    const body = await record().catch((error: unknown) => {
      notRecorded(error)
      unrecorded.set(name, row.key)
      recorded = untilRecorded(record)
      return answer
    })
    return { kind: 'proof', body, transaction, key: row.key, recorded }
  }

  function countPaid({ payment }: Settling): void {
    count(payment.deposit === undefined ? 'settled' : 'deposits')
    if (payment.deposit === undefined) count('units', payment.value)
  }

  function formatAnswer({ payment, proof }: Settling, transaction: Hex): string {
    const payer = checksumAddress(payment.from)
    const amount = payment.value.toString()
    return withPayment(proof, { success: true, transaction, payer, network: chainName, amount, asset: terms.asset })
  }

  async function reject(row: Settling, reason: PaymentErrorCode): Promise<PaymentOutcome> {
    count('lostGas', await ledger.reject(row.key, reason))
    return paymentFailure(reason)
  }

  function notRecorded(error: unknown): undefined {
    log.error('the ledger of payments fails', { reason: reasonOf(error) })
    return undefined
  }

  return {
    settle,
    statusOf,
    markUndelivered,
    /** Returns the outcome where the chain has decided already; sends nothing. */
    async poll(row: Settling): Promise<PaymentOutcome | undefined> {
      const status = await look(row)
      return status?.kind === 'paid' ? complete(row, status) : undefined
    },
    /**
     * Returns the outcome of a rejected payment that was executed all the same. A failed transaction shows its authorization to everyone, and
     * while that is valid anyone may execute it. A reorganisation may execute one that was sent, also where it had expired or its nonce was
     * used. The buyer has no answer yet. Throws a GatewayFault where the chain does not show it.
     */
    async findPaidLater(row: PaymentRow): Promise<Proof | undefined> {
      const isOver = row.reason === 'authorization_expired' || row.reason === 'nonce_already_used'
      if (row.state !== 'rejected' || row.proof === null) return undefined
      if (isOver && (row.transaction === null || !row.isRecent)) return undefined
      const rejected = toSettling(row)
      const status = await within(chainMs, 'settlement_pending', statusOf(rejected))
      if (status.kind === 'unknown') throw new GatewayFault('settlement_pending', { cause: 'no log of the payment' })
      if (status.kind !== 'paid') return undefined
      const outcome = await complete(rejected, status)
      if (rejected.payment.deposit === undefined) await markUndelivered(rejected.key)
      return outcome
    },
    isRunning: (key: PaymentKey) => running.has(paymentName(key)),
    /** Returns the payments that this process works on. */
    own: (): PaymentKey[] => [...[...running.values()].map(({ key }) => key), ...unrecorded.values()],
    /** Leaves what is not decided to the next process. */
    stop: () => closing.abort(),
    /** Resolves when no settlement runs in this process any more. */
    idle: async () => {
      await Promise.allSettled([...running.values()].map(({ ended }) => ended))
    },
  }
}

/** Converts a row that is `settling` or `done`. */
export function toSettling(row: PaymentRow): Settling {
  const { payer, nonce, payload, proof, fromBlock, transaction, settlement } = row
  if (proof === null || fromBlock === null) throw new Error('A settling row has no proof.')
  return { key: { payer, nonce }, payment: parsePayload(payload), proof, fromBlock, transaction, settlement }
}
