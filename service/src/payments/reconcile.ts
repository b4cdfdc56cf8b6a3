/**
 * Continues payments that no living process works on, at each start and in intervals. Checks paid ones against reorganisations: the
 * authorization is submitted again where a transfer is no longer in the chain. Any number of processes may run it.
 */
import type { Hex } from '@touchstone/verdict'
import { LRUCache } from 'lru-cache'
import type { BlockId } from '../domain/chain.ts'
import { eachConcurrently } from '../lib/async/concurrency.ts'
import { singleFlight } from '../lib/async/single-flight.ts'
import { reasonOf } from '../lib/errors.ts'
import type { RpcClient } from '../chain/rpc/client.ts'
import type { Slot, NonceSlots } from './facilitator/slots.ts'
import { findReceipt } from './facilitator/tracker.ts'
import { mostPruned } from './ledger/ledger.ts'
import type { RecentBlock } from './ledger/rechecks.ts'
import type { PaymentRow } from './ledger/table.ts'
import { toSettling, type PaymentComponents, type Settlement, type Settling } from './settlement.ts'

const rowsPerPass = 200
/** Days for which rows of payments that were not paid are kept. */
const otherDays = 7
const pruneMs = 3_600_000
/** Milliseconds to the next pruning where more may be left. */
const pruneAgainMs = 60_000
/** Milliseconds between two looks at settlements that count as lost, and at rejected payments. */
const endedMs = 300_000
/** A block with payments is looked at again when they have been settled for so many seconds. */
const recheckAges = [8, 30, 110]
/** A pass looks back over two hours at most. The first one looks back over ten minutes, because no process may have run before. */
const [mostRecheckSeconds, firstRecheckSeconds] = [7_200, 600]
/** Payments of a removed block that are submitted again at the same time. They share transactions. */
const atOnce = 50

type ReconcilerOptions = PaymentComponents & {
  readonly settlement: Settlement
  readonly slots: NonceSlots
  readonly rpc: RpcClient
  readonly intervalMs: number
  /** Days for which paid rows are kept for accounting. */
  readonly paidDays: number
}

export function createReconciler(options: ReconcilerOptions) {
  const { ledger, slots, rpc, chain, facilitator, settlement, count, log, intervalMs, paidDays } = options
  const { recheckSeconds = 120 } = options.deadlines ?? {}
  const rechecked = new LRUCache<Hex, number>({ max: 10_000 })
  let prunedAt = -Infinity
  let endedAt = -Infinity
  let everyBlock = false
  /** When a pass began that could look at every recent block. Until the next one, no block is too old. */
  let lookedAt = performance.now() - firstRecheckSeconds * 1_000

  const runPass = singleFlight(async () => {
    await facilitator.adopt()
    const rows = await ledger.adopt(rowsPerPass, undefined, settlement.own())
    await Promise.all(rows.flatMap(readRow).map(continueRow))
    const failures = await eachConcurrently([recheckBlocks, recheckEnded, prune], 1, (work) => work())
    if (failures.length > 0) throw failures[0]
  })

  async function prune(): Promise<void> {
    // A clock that is ahead makes all rows old.
    if (performance.now() - prunedAt < pruneMs || !chain.heads.isClockRight()) return
    prunedAt = performance.now()
    const deleted = await ledger.prune({ paidDays, otherDays })
    if (deleted >= mostPruned) prunedAt -= pruneMs - pruneAgainMs
  }

  /** Leaves out a row that cannot be read, which keeps no other one waiting. The error itself may quote the payment. */
  function readRow(row: PaymentRow): Settling[] {
    try {
      return [toSettling(row)]
    } catch {
      log.error('a payment of the ledger cannot be read', { nonce: row.nonce })
      return []
    }
  }

  /** Looks at all recent blocks. A look that fails is repeated by the next pass, and keeps no other block waiting. */
  async function recheckBlocks(): Promise<void> {
    const began = performance.now()
    const seconds = Math.min(recheckSeconds + (began - lookedAt) / 1_000, mostRecheckSeconds)
    const failures = await eachConcurrently(await ledger.recentBlocks(seconds), 1, recheckBlock)
    if (failures.length > 0) throw failures[0]
    lookedAt = began
  }

  /** Makes one call for a block: while it is in the chain, so are all transfers in it. */
  async function recheckBlock(block: RecentBlock): Promise<void> {
    const due = recheckAges.filter((age) => block.age >= age).length
    if (due <= (rechecked.get(block.hash) ?? 0) && !everyBlock) return
    if (!(await chain.isCanonical(block))) await recheckRemoved(block)
    else if (block.hasRemoved) await recheckPayments(block, [])
    rechecked.set(block.hash, due)
  }

  /**
   * Looks at all payments of a block that is no longer in the chain. Throws after that where a transaction of it cannot be judged, so that
   * the next pass looks again.
   */
  async function recheckRemoved(block: BlockId): Promise<void> {
    const unsure: Slot[] = []
    const unread = await eachConcurrently(await slots.minedIn(block), atOnce, (slot) =>
      moveSlot(slot, block).catch((error: unknown) => {
        unsure.push(slot)
        throw error
      }),
    )
    await slots.orphaned(block, unsure)
    await recheckPayments(block, unread)
  }

  /** Throws the first failure, or the first one of `others`. */
  async function recheckPayments(block: BlockId, others: readonly unknown[]): Promise<void> {
    const rows = await ledger.settledIn(block)
    const failures = [...(await eachConcurrently(rows.flatMap(readRow), atOnce, recheck)), ...others]
    if (failures.length > 0) throw failures[0]
  }

  /** Notes the new block of a transaction that was mined again. Throws where it is still in the removed one: providers disagree. */
  async function moveSlot(slot: Slot, { number, hash: removed }: BlockId): Promise<void> {
    const receipt = await findReceipt(rpc, slot)
    if (receipt?.block.hash === removed)
      throw new Error(`A receipt is in a block ${number} that another provider does not have.`)
    if (receipt !== undefined) await slots.moved(slot, receipt)
  }

  /** One that cannot be read keeps no other one waiting, and no later pass from its other work. */
  async function recheckEnded(): Promise<void> {
    if (performance.now() - endedAt < endedMs && !everyBlock) return
    endedAt = performance.now()
    const failures = [
      ...(await eachConcurrently(await slots.lostLately(), atOnce, recheckLost)),
      ...(await eachConcurrently(await ledger.rejected(rowsPerPass), atOnce, recheckRejected)),
      ...(await eachConcurrently((await ledger.removedLately(rowsPerPass)).flatMap(readRow), atOnce, recheck)),
    ]
    if (failures.length > 0) throw failures[0]
  }

  /**
   * Finds a settlement that was taken for lost although the chain has it. Its gas is in no sum meanwhile. A payment of it may have been sent
   * again, and be that of another settlement since.
   */
  async function recheckLost(slot: Slot): Promise<void> {
    const receipt = await findReceipt(rpc, slot)
    if (receipt === undefined || !(await chain.isCanonical(receipt.block))) return
    await slots.mined(slot, receipt)
    await recheckPayments(receipt.block, [])
  }

  /** Finds a payment that was executed after it was rejected. Its price is in no sum meanwhile. */
  async function recheckRejected(row: PaymentRow): Promise<void> {
    if ((await settlement.findPaidLater(row)) !== undefined) count('reconciled')
  }

  async function continueRow(row: Settling): Promise<void> {
    if ((await settlement.settle(row)).kind === 'proof') count('reconciled')
  }

  /** Checks that the transfer of a paid row is still in the chain, in whichever block, and notes which. */
  async function recheck(row: Settling): Promise<void> {
    let status = await settlement.statusOf(row)
    if (status.kind === 'unused') {
      log.warn('a reorganisation removed a payment; it is submitted again')
      await facilitator.settle(row.payment, null)
      status = await settlement.statusOf(row)
    }
    if (status.kind === 'paid') return ledger.moved(row.key, status)
    // One that cannot be executed now, such as without money, is no revenue. It is looked at again while its authorization is valid.
    const isRemoved = status.kind === 'unused' || status.kind === 'expired' || status.kind === 'spent'
    if (isRemoved && (await ledger.removed(row.key)))
      log.error(`a reorganisation removed a payment${status.kind === 'unused' ? '' : ' for good'}`, {
        units: row.payment.value,
      })
  }

  const timer = setInterval(() => {
    runPass().catch((error: unknown) => log.warn('payments are not reconciled', { reason: reasonOf(error) }))
  }, intervalMs).unref()

  return {
    /** Runs one whole pass over the unfinished rows, and looks at every recent block. */
    pass: async (): Promise<void> => {
      await runPass.inFlight()?.catch(() => {}) // it may have begun before the caller's payment
      everyBlock = true
      await runPass().finally(() => (everyBlock = false))
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await runPass.inFlight()?.catch(() => {})
    },
  }
}
