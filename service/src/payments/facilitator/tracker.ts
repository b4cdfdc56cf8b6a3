/**
 * Follows the transactions that were sent until each is in a block (spec §4.8). It takes one look at the newest block for all of them,
 * receipts for those that may be in it. A transaction that stays out is sent again; the lowest nonce may be replaced by another one
 * (replacement.ts), so that none is stuck.
 */
import type { Hex } from '@touchstone/verdict'
import { requireQuantity } from '../../chain/rpc/answer.ts'
import type { RpcClient } from '../../chain/rpc/client.ts'
import type { Fees } from '../../chain/transactions/transaction.ts'
import { eachConcurrently } from '../../lib/async/concurrency.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { Head, Heads } from '../heads.ts'
import { type LoggedEvent } from '../on-chain.ts'
import { type Refusal, sendRefusalOf, type Stuck } from './replacement.ts'
import type { MinedSlot, Signed, Slot, NonceSlots } from './slots.ts'

export type Receipt = MinedSlot & {
  readonly transaction: Hex
  /** Null for a batch, which is a creation. */
  readonly to: Hex | null
  readonly logs: readonly LoggedEvent[]
}
/** lost: another transaction has the nonce, so that this one will never be in a block. The other one may be a transfer of nothing. */
export type Tracked = Receipt | 'lost'
/** `validBefore`: from this chain time on, the transaction would only cost gas. */
export type Tracking = { readonly slot: Slot; readonly validBefore: bigint }

type TrackerOptions = {
  readonly rpc: RpcClient
  readonly heads: Pick<Heads, 'head' | 'fees'>
  readonly slots: NonceSlots
  /** Signs the transaction that replaces the one of a slot at these fees of the chain. Undefined: it stays. */
  readonly resign: (slot: Slot, fees: Fees, stuck: Stuck) => Promise<Signed | undefined>
  /** Sends a transfer of nothing under this nonce, unless a transaction of another process has it. */
  readonly fillGap: (sender: Hex, nonce: number) => Promise<void>
  readonly send: (raw: Hex) => Promise<void>
  readonly log: Log
  /**
   * Pauses between two looks: after one that was made, and longer after one that failed. `againMs`: the first pause, of those that double, after
   * which receipts are looked for at the same block again. A provider may have them later than the block. `stuckMs`: the time after which a
   * transaction counts as stuck where no blocks come.
   */
  readonly pauses?: Readonly<Record<'pollMs' | 'failedMs' | 'againMs' | 'stuckMs', number>>
  /** Seconds of the chain that a provider may lag behind the count with a receipt. */
  readonly missingSeconds?: number | undefined
}

const defaultPauses = { pollMs: 75, failedMs: 500, againMs: 500, stuckMs: 15_000 }
/** Blocks after which a transaction counts as stuck. */
const stuckBlocks = 3n
const receiptsAtOnce = 8
const abandonedSeconds = 600n

/**
 * `since` is the chain time of the first look that found it in no block. `movedAt` is 0 while the receipt is not read: whether it is stuck
 * is unknown then. `missingSince` is the chain time since which its nonce counts as used. `refusal`: of the last time that it was sent.
 */
type Entry = Tracking &
  PromiseWithResolvers<Tracked> & {
    slot: Slot
    since: bigint
    movedAt: bigint
    movedMs: number
    missingSince: bigint | undefined
    refusal: Refusal | undefined
  }

export function createTracker({ pauses = defaultPauses, ...options }: TrackerOptions) {
  const { rpc, heads, slots, resign, fillGap, send, log, missingSeconds = 60 } = options
  const entries = new Map<bigint, Entry>()
  const closing = new AbortController()
  let seen: Head | undefined
  let again = { atMs: Infinity, pauseMs: pauses.againMs }
  let running: Promise<void> | undefined

  /**
   * Resolves when the transaction is in a block, or cannot be any more. Rejects when the tracker is closed. One that is followed already
   * keeps its promise.
   */
  function track(tracking: Tracking): Promise<Tracked> {
    const { pk } = tracking.slot
    const known = entries.get(pk)
    if (known !== undefined) return known.promise
    const entry: Entry = {
      ...Promise.withResolvers<Tracked>(),
      ...tracking,
      since: 0n,
      movedAt: 0n,
      movedMs: performance.now(),
      missingSince: undefined,
      refusal: undefined,
    }
    entry.promise.catch(() => {})
    entries.set(pk, entry)
    running ??= follow()
    return entry.promise
  }

  async function follow(): Promise<void> {
    let failure = '' // of the last pass, which is logged once for all in a row
    while (entries.size > 0 && !closing.signal.aborted) {
      try {
        await look()
        failure = ''
      } catch (error) {
        const reason = reasonOf(error)
        if (reason !== failure) log.warn('the settlements are not followed', { reason })
        failure = reason
        await sleep(pauses.failedMs, { signal: closing.signal })
      }
      await sleep(pauses.pollMs, { signal: closing.signal })
    }
    running = undefined // in the same turn as the last look at `entries`, so that a new one starts anew
  }

  async function look(): Promise<void> {
    const head = await heads.head(pauses.pollMs / 2)
    const all = [...entries.values()]
    const isLate = all.some(({ movedMs }) => performance.now() - movedMs > pauses.stuckMs)
    const isNew = head.hash !== seen?.hash
    const isAgain = performance.now() >= again.atMs
    // One that another process sent may be in a block that was seen before.
    const due = isNew || isAgain || isLate ? all : all.filter(({ movedAt }) => movedAt === 0n)
    if (due.length === 0) return
    seen = head
    if (isNew || isAgain) {
      const pauseMs = isNew ? pauses.againMs : 2 * again.pauseMs
      again = { atMs: performance.now() + pauseMs, pauseMs }
    }
    // One answer that cannot be read keeps no other transaction waiting.
    const failures = [...(await eachConcurrently(due, receiptsAtOnce, (entry) => lookFor(entry, head)))]
    failures.push(...(await mend(head)))
    if (failures.length > 0) throw failures[0]
  }

  async function lookFor(entry: Entry, head: Head): Promise<void> {
    const { movedAt } = entry
    entry.movedAt = 0n // so that the next pass looks again when this one fails
    const receipt = await findReceipt(rpc, entry.slot)
    if (receipt === undefined) {
      entry.since ||= head.timestamp
      entry.movedAt = movedAt === 0n ? head.number : movedAt
      return
    }
    await slots.mined(entry.slot, receipt).catch(notStored)
    entries.delete(entry.slot.pk) // not before: what is pending and not followed is adopted
    entry.resolve(receipt.to === entry.slot.sender ? 'lost' : receipt)
  }

  /**
   * Sends what is stuck again, and returns the failures. A free nonce before all that is followed is filled, because nothing behind a gap
   * is mined.
   */
  function mend(head: Head): Promise<readonly unknown[]> {
    const stuck = [...entries.values()].filter(
      ({ movedAt, movedMs }) =>
        movedAt !== 0n && (head.number >= movedAt + stuckBlocks || performance.now() - movedMs > pauses.stuckMs),
    )
    return eachConcurrently([...new Set(stuck.map(({ slot }) => slot.sender))], 1, async (sender) => {
      const count = Number(requireQuantity(await rpc('eth_getTransactionCount', [sender, 'latest'])))
      const isOwn = ({ slot }: Entry) => slot.sender === sender
      const open = [...entries.values()].filter((entry) => isOwn(entry) && entry.slot.nonce >= count)
      if (open.length > 0 && open.every(({ slot }) => slot.nonce > count)) await fillGap(sender, count)
      for (const entry of stuck.filter(isOwn)) await mendOne(entry, head, count).catch(notStored)
    })
  }

  async function mendOne(entry: Entry, head: Head, count: number): Promise<void> {
    const { slot, validBefore } = entry
    if (slot.nonce < count) {
      // A provider may have the count before it has the receipt.
      entry.missingSince ??= head.timestamp
      entry.movedMs = performance.now()
      return head.timestamp < entry.missingSince + BigInt(missingSeconds) ? undefined : lose(entry)
    }
    Object.assign(entry, { movedAt: head.number, movedMs: performance.now(), missingSince: undefined })
    if (slot.nonce > count) return isAbandoned(entry, head) ? lose(entry) : send(slot.raw)
    const { refusal } = entry
    const signed = await resign(slot, await heads.fees(), { refusal, isExpired: head.timestamp >= validBefore })
    if (signed !== undefined) entry.slot = await slots.replace(slot, signed)
    entry.refusal = undefined
    await send(entry.slot.raw).catch((error: unknown) => {
      entry.refusal = sendRefusalOf(error)
      throw error
    })
  }

  async function lose(entry: Entry): Promise<void> {
    await slots.lost(entry.slot).catch(notStored)
    entries.delete(entry.slot.pk)
    entry.resolve('lost')
  }

  /** Nothing fills the nonces before it, as after the reset of a local chain. */
  const isAbandoned = ({ since, validBefore }: Entry, { timestamp }: Head) =>
    timestamp > validBefore + abandonedSeconds && timestamp > since + abandonedSeconds

  function notStored(error: unknown): void {
    log.warn('a settlement is not mended', { reason: reasonOf(error) })
  }

  return {
    track,
    /** Returns the transaction that is followed under this row. */
    find: (pk: bigint): Promise<Tracked> | undefined => entries.get(pk)?.promise,
    size: () => entries.size,
    /** Returns the rows that are followed. */
    followed: () => [...entries.keys()],
    async [Symbol.asyncDispose]() {
      closing.abort()
      await running
      const left = [...entries.values()]
      entries.clear()
      await slots.release(left.map(({ slot }) => slot)).catch(notStored)
      for (const { reject } of left) reject(new Error('the gateway is closing'))
    },
  }
}

/** Returns the receipt of the transaction of this nonce that is in a block. */
export async function findReceipt(rpc: RpcClient, { hashes }: Pick<Slot, 'hashes'>): Promise<Receipt | undefined> {
  for (const hash of hashes.toReversed()) {
    const receipt = parseReceipt(hash, await rpc('eth_getTransactionReceipt', [hash]))
    if (receipt !== null) return receipt
  }
  return undefined
}

/** Returns null for a transaction that is in no block. Throws for an answer of another shape. */
export function parseReceipt(transaction: Hex, answer: unknown): Receipt | null {
  if (answer === null) return null
  const receipt = answer as Record<'gasUsed' | 'effectiveGasPrice' | 'blockNumber' | 'l1Fee', unknown> & {
    readonly to?: Hex | null
    readonly blockHash: Hex
    readonly logs: readonly LoggedEvent[]
  }
  return {
    transaction,
    to: (receipt.to?.toLowerCase() ?? null) as Hex | null,
    logs: receipt.logs,
    gasUsed: requireQuantity(receipt.gasUsed),
    gasPrice: requireQuantity(receipt.effectiveGasPrice),
    // Chains of the OP stack have it; a deposit and other chains do not.
    l1Fee: requireQuantity(receipt.l1Fee ?? '0x0'),
    block: { number: requireQuantity(receipt.blockNumber), hash: receipt.blockHash },
  }
}
