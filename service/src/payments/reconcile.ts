/**
 * Retries payments until each has an end, also after a crash: settles `settling` rows, and submits a paid authorization again when a
 * reorganisation removed its transfer. Any number of processes may run it.
 */
import { randomUUID } from 'node:crypto'
import { singleFlight } from '../lib/async/single-flight.ts'
import { reasonOf } from '../lib/errors.ts'
import type { PaymentKey } from './ledger.ts'
import { settlingSeconds, toSettling, type PaymentComponents, type Settlement, type Settling } from './settlement.ts'

const rowsPerPass = 50
/** Rows are kept this long for replays; after that the nonce on chain refuses them. */
const keptDays = 7
const pruneMs = 3_600_000
/** A paid row is checked again for this long after its settlement; an authorization is rarely valid longer. */
const recheckSeconds = 120

type ReconcilerOptions = PaymentComponents & {
  readonly settlement: Settlement
  /** Returns whether a request of this process is working on the payment. */
  readonly isUnderway: (key: PaymentKey) => boolean
  readonly intervalMs: number
}

export function createReconciler(options: ReconcilerOptions) {
  const { ledger, chain, facilitator, settlement, isUnderway, count, log, intervalMs } = options
  let prunedAt = 0

  const runPass = singleFlight(async () => {
    for (const key of await ledger.unfinished(rowsPerPass, recheckSeconds)) {
      if (isUnderway(key)) continue
      const claim = randomUUID()
      const row = await ledger.lease(key, claim, settlingSeconds)
      if (row === undefined) continue
      const settling = toSettling(row, claim)
      if (row.state === 'done') await recheck(settling)
      else if ((await settlement.resume(settling)).kind === 'proof') count('reconciled')
    }
    if (Date.now() - prunedAt < pruneMs) return
    prunedAt = Date.now()
    await ledger.prune(keptDays)
  })

  /** Checks that the transfer of a paid row is still in the chain. */
  async function recheck(row: Settling): Promise<void> {
    const status = await chain.transferStatus(row.payment, row.fromBlock).catch(() => undefined)
    if (status?.kind === 'unused') {
      log.warn('a reorganisation removed a payment; it is submitted again')
      const options = { known: row.transaction ?? undefined, onSent: async () => {} }
      await facilitator.settle(row.payment, options).catch(() => {})
    } else if (status?.kind === 'expired' || status?.kind === 'spent') {
      log.error('a reorganisation removed a payment for good', { units: row.payment.value })
    }
    await ledger.releaseClaim(row.key, row.claim)
  }

  const timer = setInterval(() => {
    runPass().catch((error: unknown) => log.warn('payments are not reconciled', { reason: reasonOf(error) }))
  }, intervalMs).unref()

  return {
    /** Runs one whole pass over the unfinished rows. */
    pass: async (): Promise<void> => {
      await runPass.inFlight()?.catch(() => {}) // it may have begun before the caller's payment
      return runPass()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await runPass.inFlight()?.catch(() => {})
    },
  }
}
