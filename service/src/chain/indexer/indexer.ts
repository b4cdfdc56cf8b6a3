/**
 * Keeps the index of the chain up to date (spec §2.9, §4.9, §6): one instance leads and writes, the others wait for its lock.
 * Every failure is retried; the index always holds at the block it names, which may be older than the head.
 */
import type { Hex } from '@touchstone/verdict'
import type { IndexCursor, IndexStore } from '../../domain/chain-index.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { singleFlight } from '../../lib/async/single-flight.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { reasonOf, ServiceError } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { createBackfill } from './backfill.ts'
import { createIndexCheck, type IndexCheckOptions } from './check.ts'
import { createBlockReader } from './realtime.ts'
import { createRetryingSource, type RetryingSource } from './retrying-source.ts'
import { createSync, type Rewind, type Seen, type Sync } from './sync.ts'

export type IndexerOptions = Readonly<{
  source: RetryingSource
  store: IndexStore
  contract: Hex
  /** The block of the contract's first log, or any before. */
  startBlock: bigint
  lock: LeaderLock
  /** Pause between two reads of the head; `wake` ends it. */
  pollMs: number
  /** Blocks that the index stays behind the head. */
  confirmations?: bigint
  /** Logs wanted in one answer of the backfill; 8 MiB hold about 11,000. */
  rangeLogs?: number
  /** Pause between two attempts of a follower to take the lock. */
  lockPollMs?: number
  /** Pause between two searches of the leader for expired offers. */
  pruneMs?: number
  /** Compares the index with the chain while this instance leads; left out: never. */
  check?: IndexCheckOptions
  /** Other work that one process does for all, in short steps. The leader calls it beside its search for expired offers. */
  housekeeping?: () => Promise<void>
  /** Unix milliseconds. */
  now?: () => number
  log: Log
}>

/** Takes the lock of the leader; `null` while another instance holds it. `lost` resolves when it is held no longer. */
type LeaderLock = () => Promise<HeldLock | null>
type HeldLock = Readonly<{ lost: Promise<void>; release: () => Promise<void> }>

/** `head` and `fault` are what this instance saw while it led; `indexed.time` is in unix seconds, `rewound.time` in milliseconds. */
export type IndexStatus = Readonly<{
  role: 'leader' | 'follower'
  indexed: IndexCursor | null
  head: bigint | null
  lagBlocks: bigint | null
  lagSeconds: number | null
  rewound: Rewind | null
  fault: string | null
  /** Tokens that the last comparison of any leader with the chain found to differ; `null` before the first. */
  differences: number | null
  /** Since this instance leads; `null` where another one does. */
  repairs: number | null
}>

type CatchUp = Readonly<{ led: boolean; indexed: bigint }>

export type Indexer = ReturnType<typeof createIndexer>

const followerPollMs = 20
const longestBackoffMs = 10_000
/** Failures in a row after which `catchUp` gives up. */
const mostFailures = 6

export function createIndexer(options: IndexerOptions) {
  const closing = new AbortController()
  const source = createRetryingSource(options.source, closing.signal)
  const { store, lock, pollMs, lockPollMs = 1_000, pruneMs = 3_000, now = Date.now, log } = options
  const { startBlock, confirmations = 0n, rangeLogs = 8_000 } = options
  const contract: Hex = `0x${options.contract.slice(2).toLowerCase()}`
  const seen: Seen = { head: null, rewound: null }
  // The span of ranges that providers take outlives a leader.
  const backfill = createBackfill({ source, wantedLogs: rangeLogs, signal: closing.signal })
  const readBlocks = createBlockReader({ source, contract })
  const storedCursor = singleFlight(() => store.cursor())
  const check = options.check && createIndexCheck({ ...options.check, source, onCompared, onRepair: wake, log })
  const listening = new Set<(cursor: IndexCursor) => void>()
  let isLeader = false
  /** A leader whose last step failed has none, until it has read the cursor again. */
  let sync: Sync | undefined
  let fault: string | null = null
  let running: Promise<void> | undefined
  let waking = new AbortController()

  /** Ends the pause of the leader, or its next one: there may be something to do. */
  function wake(): void {
    waking.abort()
  }

  async function pauseOrWake(milliseconds: number): Promise<void> {
    await sleep(milliseconds, { signal: waking.signal })
    waking = new AbortController()
  }

  const pause = (milliseconds: number) => sleep(milliseconds, { signal: closing.signal })
  const isClosed = () => closing.signal.aborted

  async function run(): Promise<void> {
    for (let failures = 0; !isClosed();) {
      try {
        const held = await lock()
        if (held === null) {
          fault = null
          await pause(lockPollMs)
        } else await whileHeld(held, lead)
        failures = 0
      } catch (error) {
        note(error)
        await pause(backoffMs(++failures))
      }
    }
  }

  async function whileHeld<T>({ lost, release }: HeldLock, work: (isOver: () => boolean) => Promise<T>): Promise<T> {
    let over = false
    isLeader = true
    void lost.then(() => {
      over = true
      wake()
    })
    try {
      return await work(() => over || isClosed())
    } finally {
      isLeader = false
      sync = undefined
      await release().catch((error: unknown) => log.warn('leader lock not released', { reason: reasonOf(error) }))
    }
  }

  /** Leads until the lock is lost. After every failure the cursor is read again: a commit may have arrived unseen. */
  async function lead(isOver: () => boolean): Promise<void> {
    let prunedAt = -Infinity
    let reached: bigint | undefined
    for (let failures = 0; !isOver();) {
      try {
        sync ??= await takeLead(isOver)
        const progress = await sync.step()
        failures = 0
        if (fault !== null) log.info('index follows the chain again')
        fault = null
        if (progress === 'superseded') return
        if (progress === 'more to do') continue
        const repair = check?.next() ?? null
        if (repair !== null) {
          if (!(await sync.repair(repair))) return
          continue
        }
        if (performance.now() - prunedAt >= pruneMs) {
          prunedAt = performance.now()
          const noteFailure = (error: unknown) => log.warn('housekeeping failed', { reason: reasonOf(error) })
          if ((await sync.prune().catch(noteFailure)) === false) return
          await options.housekeeping?.().catch(noteFailure)
        }
        await pauseOrWake(pollMs)
      } catch (error) {
        note(error)
        // A step that fails half-way has brought the index forward.
        const number = sync?.cursor().number
        if (number !== reached) failures = 0
        reached = number
        sync = undefined
        await pause(backoffMs(++failures))
      }
    }
  }

  async function takeLead(isOver: () => boolean): Promise<Sync> {
    const led = await store.lead(contract)
    if (led === null)
      throw new Error(
        'The index in this database belongs to another contract; rebuild it with "touchstone index rebuild".',
      )
    onMove(led.cursor)
    return createSync(
      { source, store, backfill, readBlocks, startBlock, confirmations, seen, onMove, isOver, now, log },
      led,
    )
  }

  async function onCompared(differences: number): Promise<void> {
    await sync?.noteDifferences(differences)
  }

  function onMove(cursor: IndexCursor): void {
    for (const listen of listening) listen(cursor)
  }

  function note(error: unknown): void {
    const reason = reasonOf(error)
    if (reason !== fault) log.warn('index not brought up to date', { reason })
    fault = reason
  }

  async function status(): Promise<IndexStatus> {
    const indexed = sync?.cursor() ?? (await store.cursor())
    const head = isLeader ? seen.head : null
    const own = isLeader ? check?.status() : undefined
    const differences = own?.differences ?? (await store.differences())
    return {
      role: isLeader ? 'leader' : 'follower',
      indexed,
      head,
      lagBlocks: head === null || indexed === null ? null : head - indexed.number,
      lagSeconds: indexed === null ? null : Math.max(0, Math.round(now() / 1000) - Number(indexed.time)),
      rewound: seen.rewound,
      fault: fault ?? (differences ? 'The index differs from the chain.' : null),
      differences,
      repairs: own?.repairs ?? null,
    }
  }

  /** Waits until the index is complete to a block, at most so long; returns whether it is. `stored`: a leader here may not know of a rebuild. */
  async function until(blockNumber: bigint, withinMs: number, { stored = false } = {}): Promise<boolean> {
    const deadline = performance.now() + withinMs
    while (!isClosed()) {
      const known = stored ? undefined : sync?.cursor()
      const indexed = known ?? (await storedCursor())
      if (indexed !== null && indexed.number >= blockNumber) return true
      const left = deadline - performance.now()
      if (left <= 0) return false
      wake()
      await cursorAt(blockNumber, known === undefined ? Math.min(left, followerPollMs) : left)
    }
    return false
  }

  /** Resolves when the leader here reaches a block, or when the time is over. */
  async function cursorAt(number: bigint, withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const listen = (cursor: IndexCursor) => {
      if (cursor.number >= number || isClosed()) resolve()
    }
    listening.add(listen)
    await withDeadline(promise, withinMs, { onTimeout: () => {} })
    listening.delete(listen)
  }

  /**
   * Leads until the head is reached, or the signal aborts: a command calls it instead of `start`. `led` is false where another instance
   * leads.
   */
  async function catchUp(
    onProgress?: (indexed: bigint, head: bigint) => void,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<CatchUp> {
    const held = await lock()
    if (held === null) return { led: false, indexed: (await store.cursor())?.number ?? -1n }
    const progress = ({ number }: IndexCursor) => onProgress?.(number, seen.head ?? number)
    listening.add(progress)
    return whileHeld(held, (isOver) => toHead(isOver, signal)).finally(() => listening.delete(progress))
  }

  async function toHead(isOver: () => boolean, signal: AbortSignal): Promise<CatchUp> {
    for (let failures = 0; ;) {
      if (isOver()) throw new Error('The index was not brought up to date: another instance leads now.')
      const leading = (sync ??= await takeLead(() => isOver() || signal.aborted))
      const { number } = leading.cursor()
      if (signal.aborted) return { led: true, indexed: number }
      try {
        const progress = await leading.step()
        if (progress === 'at head') return { led: true, indexed: leading.cursor().number }
        if (progress === 'superseded') sync = undefined
      } catch (error) {
        if (leading.cursor().number !== number) failures = 0
        if (!(error instanceof ServiceError) || ++failures > mostFailures) throw error
        await sleep(backoffMs(failures), { signal: AbortSignal.any([closing.signal, signal]) })
      }
    }
  }

  return {
    /** Begins to work in the background. */
    start: () => void (running ??= run()),
    /** Reads the head at once, because there may be a new block. */
    wake,
    status,
    until,
    catchUp,
    async close(): Promise<void> {
      closing.abort()
      wake()
      onMove({ number: -1n, hash: '0x', time: 0n })
      await running
    },
  }
}

function backoffMs(failures: number): number {
  return Math.min(longestBackoffMs, 100 * 2 ** failures)
}
