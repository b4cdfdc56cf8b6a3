/**
 * How the index gets from where it is to the head of the chain (spec §2.5): old blocks in ranges, new ones one after another,
 * and back to the last common block where the chain was reorganised.
 */
import type { Log } from '../log.ts'
import { blocksAtOnce } from './indexer-blocks.ts'
import type { FollowBlocks, Following } from './indexer-blocks.ts'
import { commonAncestor } from './indexer-fork.ts'
import type { Ranges } from './indexer-ranges.ts'
import type { IndexCursor, IndexPlace, IndexSink } from './indexer-sink.ts'
import { untold } from './indexer-source.ts'
import type { IndexSource } from './indexer-source.ts'
import type { Block } from './source.ts'

export type WalkOptions = Readonly<{
  source: IndexSource
  sink: IndexSink
  ranges: Ranges
  follow: FollowBlocks
  /** The block of the contract's first log, or any before. */
  startBlock: bigint
  confirmations: bigint
  seen: Seen
  onMove: (cursor: IndexCursor) => void
  /** Asked between two ranges. */
  isOver: () => boolean
  /** Unix milliseconds. */
  now: () => number
  log: Log
}>

/** `time` is in unix milliseconds; `depth` how many blocks were taken back. */
export type Rewind = Readonly<{ time: number; depth: bigint; to: bigint }>

/** What all leaders of one instance have seen: the newest head, less the confirmations, whether it was ever reached, the last rewind. */
export type Seen = { head: bigint | null; arrived: boolean; rewound: Rewind | null }

/** One leader's way. */
export type Walk = Readonly<{
  cursor: () => IndexCursor
  /**
   * Looks at the head and goes towards it. True when it is reached, false when there is more to do, `over` when another leads.
   * Throws CHAIN_UNAVAILABLE and whatever the database throws; then nothing is half done.
   */
  step: () => Promise<boolean | 'over'>
  /** False when another leads. */
  sweep: () => Promise<boolean>
}>

/** Without a tag, blocks older than this are taken for final. */
const finalDepth = 10_000n
/** Kept in any case. */
const keptDepth = 256n
/** Seconds before the first head is reached; what happened earlier is not news. */
const newsSeconds = 600n
/** A head that stays lower for so long is no provider that lags: the chain has gone back. */
const lagMs = 15_000
/** How often the leader asks how far the chain is final. */
const finalMs = 60_000

export function createWalk(options: WalkOptions, lead: Readonly<{ epoch: bigint; cursor: IndexCursor }>): Walk {
  const { source, sink, ranges, follow, startBlock, confirmations, seen, onMove, isOver, now, log } = options
  const { epoch } = lead
  let cursor = lead.cursor
  let lowSince: number | undefined
  let final: { number: bigint; until: number } | undefined

  async function step(): Promise<boolean | 'over'> {
    const target = await targetBlock()
    seen.head = target?.number ?? null
    if (target === undefined || target.number < startBlock - 1n) return true
    if (cursor.number < startBlock - 1n) return begin()
    if (target.number <= cursor.number) return stay(target)
    lowSince = undefined
    if (target.number - cursor.number > BigInt(blocksAtOnce)) {
      const end = await finalBelow(target.number)
      if (end - cursor.number > BigInt(blocksAtOnce)) return walkRanges(end, target)
    }
    const following = await follow(cursor, target)
    return following === 'forked' ? back(target) : append(following, target, null)
  }

  async function targetBlock(): Promise<Block | undefined> {
    const newest = await source.head()
    if (confirmations === 0n || newest.number < confirmations) return confirmations === 0n ? newest : undefined
    const [block] = await source.blocksAt([newest.number - confirmations])
    return block ?? untoldBlock()
  }

  /** The index of a contract begins at the block before its first one. */
  async function begin(): Promise<boolean | 'over'> {
    const [block] = await source.blocksAt([startBlock - 1n])
    return move({ events: [], blocks: [block ?? untoldBlock()], to: block ?? untoldBlock() }, null)
  }

  /** The head is not above the cursor. On the same branch there is nothing to do. */
  async function stay(target: Block): Promise<boolean | 'over'> {
    if (target.number === cursor.number) {
      lowSince = undefined
      return target.hash === cursor.hash ? true : back(target)
    }
    lowSince ??= performance.now()
    const [known] = await sink.kept(target.number, 1)
    const isOther = known?.number === target.number && known.hash !== target.hash
    if (!isOther && performance.now() - lowSince < lagMs) return true
    lowSince = undefined
    return back(target)
  }

  async function walkRanges(end: bigint, target: Block): Promise<boolean | 'over'> {
    for await (const { before, events, to } of ranges.between(cursor.number + 1n, end)) {
      if (isOver()) return false
      if (before.hash !== cursor.hash) return back(target)
      const moved = await move({ events, blocks: [to], to }, null)
      if (moved === 'over') return moved
    }
    return false
  }

  /** The new branch is written in the transaction that takes the old one back, so that no reader sees less than before. */
  async function back(target: Block): Promise<boolean | 'over'> {
    const ancestor = await commonAncestor({ source, kept: sink.kept, from: min(cursor.number, target.number) })
    if (ancestor === null) {
      log.error('no block of the index is on the chain any more: it is rebuilt', { from: cursor.number })
      await sink.clear(epoch)
      return 'over'
    }
    const depth = cursor.number - ancestor.number
    seen.rewound = { time: now(), depth, to: ancestor.number }
    log.warn('the chain was reorganised', { depth, to: ancestor.number })
    if (ancestor.number === target.number) {
      return move({ events: [], blocks: [target], to: target }, ancestor)
    }
    const following = await follow(ancestor, target)
    if (following === 'forked') throw untold('the chain moved while it was followed')
    return append(following, target, ancestor)
  }

  async function append(following: Following, target: Block, from: IndexPlace | null): Promise<boolean | 'over'> {
    const moved = await move(following, from)
    return moved === 'over' ? moved : following.to.number === target.number
  }

  async function move({ events, blocks, to }: Following, from: IndexPlace | null): Promise<false | 'over'> {
    const next: IndexCursor = { number: to.number, hash: to.hash, time: to.timestamp }
    const announceSince = seen.arrived ? 0n : BigInt(Math.floor(now() / 1000)) - newsSeconds
    const rewindTo = from === null ? null : from.number
    if (!(await sink.apply({ epoch, rewindTo, events, blocks, to: next, announceSince }))) return 'over'
    cursor = next
    onMove(next)
    return false
  }

  /** Blocks up to here are not expected to change. */
  async function finalBelow(head: bigint): Promise<bigint> {
    if (final === undefined || performance.now() > final.until) {
      final = { number: (await source.finalized()) ?? head - finalDepth, until: performance.now() + finalMs }
    }
    return min(final.number, head)
  }

  return {
    cursor: () => cursor,
    async step() {
      const done = await step()
      if (done === true) seen.arrived = true
      return done
    },
    async sweep() {
      const head = seen.head ?? 0n
      return sink.sweep({ epoch, keepFrom: min(await finalBelow(head), head - keptDepth) })
    },
  }
}

function untoldBlock(): never {
  throw untold('a provider lacks a block below its head')
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
