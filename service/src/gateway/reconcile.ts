/**
 * Looks after payments until each has an end, also after a crash: settles what is `settling`, and submits a paid authorization again
 * when a reorganisation removed its transfer. Any number of processes may run it.
 */
import { randomUUID } from 'node:crypto'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Facilitator } from './facilitator.ts'
import type { Ledger, PaymentKey } from './ledger.ts'
import type { Count } from './metrics.ts'
import type { PaymentChain } from './payment-chain.ts'
import { settlingOf, settlingSeconds, type Settlement, type Settling } from './settlement.ts'

const rowsAtOnce = 50
const everyMs = 5_000
/** Rows stay this long for replays; after that the nonce on chain refuses them. */
const keptDays = 7
const pruneMs = 3_600_000
/** So long after its settlement a payment is looked at again; an authorization is rarely valid longer. */
const recheckSeconds = 120

export type Reconciler = AsyncDisposable & {
  /** One whole pass over the unfinished rows. */
  readonly pass: () => Promise<void>
}

export function createReconciler({
  ledger,
  chain,
  facilitator,
  settlement,
  isUnderway,
  count,
  log,
  intervalMs = everyMs,
}: {
  readonly ledger: Ledger
  readonly chain: Pick<PaymentChain, 'truthOf'>
  readonly facilitator: Facilitator
  readonly settlement: Settlement
  /** Whether a request is at work on the payment in this process. */
  readonly isUnderway: (key: PaymentKey) => boolean
  readonly count: Count
  readonly log: Log
  readonly intervalMs?: number
}): Reconciler {
  let running: Promise<void> | undefined
  let prunedAt = 0

  async function passOnce(): Promise<void> {
    for (const key of await ledger.unfinished(rowsAtOnce, recheckSeconds)) {
      if (isUnderway(key)) continue
      const claim = randomUUID()
      const row = await ledger.lease(key, claim, settlingSeconds)
      if (row === undefined) continue
      const settling = settlingOf(row, claim)
      if (row.state === 'done') await recheck(settling)
      else if ((await settlement.resume(settling)).kind === 'proof') count('reconciled')
    }
    if (Date.now() - prunedAt < pruneMs) return
    prunedAt = Date.now()
    await ledger.prune(keptDays)
  }

  /** A paid row: is its transfer still in the chain? */
  async function recheck(row: Settling): Promise<void> {
    const truth = await chain.truthOf(row.payment, row.fromBlock).catch(() => undefined)
    if (truth?.kind === 'unused') {
      log.warn('a reorganisation removed a payment; it is submitted again')
      const options = { known: row.transaction ?? undefined, onSent: async () => {} }
      await facilitator.settle(row.payment, options).catch(() => {})
    } else if (truth?.kind === 'expired' || truth?.kind === 'spent') {
      log.error('a reorganisation removed a payment for good', { units: row.payment.value })
    }
    await ledger.free(row.key, row.claim)
  }

  const start = () =>
    (running ??= passOnce().finally(() => {
      running = undefined
    }))
  const timer = setInterval(() => {
    start().catch((error: unknown) => log.warn('payments are not looked after', { reason: reasonOf(error) }))
  }, intervalMs).unref()

  return {
    async pass() {
      await running?.catch(() => {}) // it may have begun before the caller's payment
      return start()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await running?.catch(() => {})
    },
  }
}
