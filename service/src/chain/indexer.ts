/**
 * Keeps the index of the chain up to date (spec §2.9, §4.9, §6): one instance leads and writes, the others wait for its lock.
 * Whatever goes wrong is tried again; the index is always true at the block it names, only older than it should be.
 */
import type { Hex } from '@touchstone/verdict'
import { ServiceError, reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { createFollowBlocks } from './indexer-blocks.ts'
import { createPause } from './indexer-pause.ts'
import { createRanges } from './indexer-ranges.ts'
import type { IndexCursor, IndexSink, LeaderLock } from './indexer-sink.ts'
import type { IndexSource } from './indexer-source.ts'
import { createWalk } from './indexer-walk.ts'
import type { Rewind, Seen, Walk } from './indexer-walk.ts'

export type IndexerOptions = Readonly<{
  source: IndexSource
  sink: IndexSink
  contract: Hex
  /** The block of the contract's first log, or any before. */
  startBlock: bigint
  lock: LeaderLock
  /** How often the head is looked at; `nudge` looks at once. */
  pollMs: number
  /** How many blocks behind the head the index stays. */
  confirmations?: bigint
  /** Events in one request while old blocks are read; an answer of 8 MiB holds about 11,000. */
  rangeLogs?: number
  /** How often one that waits asks for the lock. */
  lockPollMs?: number
  /** How often the leader looks for offers that have run out. */
  sweepMs?: number
  /** Unix milliseconds. */
  now?: () => number
  log: Log
}>

/** `head` and `fault` are what this instance saw while it led; times are unix seconds, but `rewound.time` in milliseconds. */
export type IndexStatus = Readonly<{
  role: 'leader' | 'follower'
  indexed: IndexCursor | null
  head: bigint | null
  lagBlocks: bigint | null
  lagSeconds: number | null
  rewound: Rewind | null
  fault: string | null
}>

export type CatchUp = Readonly<{ led: boolean; indexed: bigint }>

export type Indexer = Readonly<{
  /** Begins to work in the background. */
  start: () => void
  /** Looks at the head now: there may be a new block. */
  nudge: () => void
  status: () => Promise<IndexStatus>
  /** Whether the index is complete to this block, waiting for it at most so long. */
  until: (blockNumber: bigint, withinMs: number) => Promise<boolean>
  /** For a command, instead of `start`: leads until the head is reached. `led` is false where another instance leads. Throws what goes wrong. */
  catchUp: (onProgress?: (indexed: bigint, head: bigint) => void) => Promise<CatchUp>
  close: () => Promise<void>
}>

const followerPollMs = 20
const longestBackoffMs = 10_000
/** Of a command, in a row. */
const mostFailures = 6

export function createIndexer(options: IndexerOptions): Indexer {
  const { source, sink, lock, pollMs, lockPollMs = 1_000, sweepMs = 3_000, now = Date.now, log } = options
  const { startBlock, confirmations = 0n, rangeLogs = 8_000 } = options
  const contract: Hex = `0x${options.contract.slice(2).toLowerCase()}`
  const seen: Seen = { head: null, arrived: false, rewound: null }
  // What was learnt of the provider outlives a leader.
  const ranges = createRanges({ source, logs: rangeLogs })
  const follow = createFollowBlocks({ source, contract })
  const walkOptions = { source, sink, ranges, follow, startBlock, confirmations, seen, now, log }
  const pause = createPause()
  const listening = new Set<(cursor: IndexCursor) => void>()
  let walk: Walk | undefined
  let fault: string | null = null
  let running: Promise<void> | undefined
  let flight: Promise<IndexCursor | null> | undefined

  async function run(): Promise<void> {
    for (let failures = 0; !pause.closed();) {
      try {
        const held = await lock()
        if (held === null) await pause.for(lockPollMs)
        else await leading(held, lead)
        failures = 0
      } catch (error) {
        note(error)
        await pause.for(backoffMs(++failures))
      }
    }
  }

  async function leading<T>(
    { lost, release }: NonNullable<Awaited<ReturnType<LeaderLock>>>,
    work: (isOver: () => boolean) => Promise<T>,
  ): Promise<T> {
    let over = false
    void lost.then(() => {
      over = true
      pause.wake()
    })
    try {
      return await work(() => over || pause.closed())
    } finally {
      walk = undefined
      await release().catch((error: unknown) => log.warn('leader lock not released', { reason: reasonOf(error) }))
    }
  }

  /** Until the lock is lost. After every failure the cursor is read anew: a commit may have arrived unseen. */
  async function lead(isOver: () => boolean): Promise<void> {
    let sweptAt = -Infinity
    for (let failures = 0; !isOver();) {
      try {
        walk ??= await takeLead(isOver)
        const done = await walk.step()
        failures = 0
        fault = null
        if (done === 'over') return
        if (!done) continue
        if (performance.now() - sweptAt >= sweepMs) {
          sweptAt = performance.now()
          if (!(await walk.sweep())) return
        }
        await pause.for(pollMs, 'or nudge')
      } catch (error) {
        note(error)
        walk = undefined
        await pause.for(backoffMs(++failures))
      }
    }
  }

  async function takeLead(isOver: () => boolean): Promise<Walk> {
    const led = await sink.lead(contract)
    if (led === null)
      throw new Error(
        'The index in this database belongs to another contract; rebuild it with "touchstone index rebuild".',
      )
    onMove(led.cursor)
    return createWalk({ ...walkOptions, onMove, isOver }, led)
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
    const indexed = walk?.cursor() ?? (await sink.cursor())
    const { head, rewound } = walk === undefined ? { ...seen, head: null } : seen
    return {
      role: walk === undefined ? 'follower' : 'leader',
      indexed,
      head,
      lagBlocks: head === null || indexed === null ? null : head - indexed.number,
      lagSeconds: indexed === null ? null : Math.max(0, Math.round(now() / 1000) - Number(indexed.time)),
      rewound,
      fault,
    }
  }

  async function until(blockNumber: bigint, withinMs: number): Promise<boolean> {
    const deadline = performance.now() + withinMs
    while (!pause.closed()) {
      const indexed = walk?.cursor() ?? (await storedCursor())
      if (indexed !== null && indexed.number >= blockNumber) return true
      const left = deadline - performance.now()
      if (left <= 0) return false
      pause.wake()
      await cursorAt(blockNumber, walk === undefined ? Math.min(left, followerPollMs) : left)
    }
    return false
  }

  /** However many wait here for another leader, they ask together. */
  function storedCursor(): Promise<IndexCursor | null> {
    flight ??= sink.cursor().finally(() => (flight = undefined))
    return flight
  }

  /** Until the leader here gets there, or the time is over. */
  function cursorAt(number: bigint, withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(end, withinMs)
      listening.add(listen)
      function listen(cursor: IndexCursor): void {
        if (cursor.number >= number || pause.closed()) end()
      }
      function end(): void {
        clearTimeout(timer)
        listening.delete(listen)
        resolve()
      }
    })
  }

  async function catchUp(onProgress?: (indexed: bigint, head: bigint) => void): Promise<CatchUp> {
    const held = await lock()
    if (held === null) return { led: false, indexed: (await sink.cursor())?.number ?? -1n }
    const progress = ({ number }: IndexCursor) => onProgress?.(number, seen.head ?? number)
    listening.add(progress)
    return leading(held, async (isOver) => {
      for (let failures = 0; ;) {
        if (isOver()) throw new Error('The index was not brought up to date: another instance leads now.')
        walk ??= await takeLead(isOver)
        const { number } = walk.cursor()
        try {
          const done = await walk.step()
          if (done === true) return { led: true, indexed: walk.cursor().number }
          if (done === 'over') walk = undefined
        } catch (error) {
          if (walk?.cursor().number !== number) failures = 0
          if (!(error instanceof ServiceError) || ++failures > mostFailures) throw error
          await pause.for(backoffMs(failures))
        }
      }
    }).finally(() => listening.delete(progress))
  }

  return {
    start: () => void (running ??= run()),
    nudge: pause.wake,
    status,
    until,
    catchUp,
    async close() {
      pause.close()
      for (const listen of listening) listen({ number: -1n, hash: '0x', time: 0n })
      await running
    },
  }
}

function backoffMs(failures: number): number {
  return Math.min(longestBackoffMs, 100 * 2 ** failures)
}
