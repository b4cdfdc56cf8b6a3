/**
 * Brings the index from its cursor to the head of the chain (spec §2.5). It reads finalized blocks in ranges, newer ones one by one, and
 * back to the last common block where the chain was reorganised.
 */
import type { BlockId } from '../../domain/chain.ts'
import type { IndexCursor, IndexRepair, IndexStore } from '../../domain/chain-index.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { RetryingSource } from './retrying-source.ts'
import type { Block } from '../rpc/block.ts'
import type { Backfill } from './backfill.ts'
import { type BlockRun, mostBlocks, present, type ReadBlocks, reorganised } from './realtime.ts'

type SyncOptions = Readonly<{
  source: RetryingSource
  store: IndexStore
  backfill: Backfill
  readBlocks: ReadBlocks
  /** The block of the contract's first log, or any before. */
  startBlock: bigint
  confirmations: bigint
  seen: Seen
  onMove: (cursor: IndexCursor) => void
  /** Checked between two ranges. */
  isOver: () => boolean
  /** Unix milliseconds. */
  now: () => number
  log: Log
}>

/** `time` is in unix milliseconds; `depth` is the number of blocks taken back. */
export type Rewind = Readonly<{ time: number; depth: bigint; to: bigint }>

/** Outlives a leader: the newest head less the confirmations, the last rewind. */
export type Seen = { head: bigint | null; rewound: Rewind | null }

/** `superseded`: another instance leads, or the database is at another block than this one. */
type Progress = 'at head' | 'more to do' | 'superseded'

/** The synchronisation of one leader. */
export type Sync = ReturnType<typeof createSync>

/** Blocks older than this count as final where the provider has no `finalized` tag. */
const finalDepth = 10_000n
/** Hashes of so many blocks are kept in any case. */
const keptDepth = 256n
/** A head that stays lower for longer is a reorganisation, not a lagging provider. */
const lagMs = 15_000
/** Age after which the finalized block is read again. */
const finalMs = 60_000
/** Blocks compared at once in the search for a common one. */
const comparedAtOnce = 64

export function createSync(options: SyncOptions, lead: Readonly<{ epoch: bigint; cursor: IndexCursor }>) {
  const { source, store, backfill, readBlocks, startBlock, confirmations, seen, onMove, isOver, now, log } = options
  const { epoch } = lead
  let cursor = lead.cursor
  let hasArrived = false
  let lowSince: number | undefined
  let final: { number: bigint; until: number } | undefined

  async function step(): Promise<Progress> {
    const target = await targetBlock()
    seen.head = target?.number ?? null
    if (target === undefined || target.number < startBlock - 1n) return 'at head'
    if (cursor.number < startBlock - 1n) return begin()
    if (target.number <= cursor.number) return stay(target)
    lowSince = undefined
    if (target.number - cursor.number > BigInt(mostBlocks)) {
      const end = await finalBelow(target.number)
      if (end - cursor.number > BigInt(mostBlocks)) return fill(end, target)
    }
    const run = await readBlocks(cursor, target)
    return run === 'forked' ? rewind(target) : move(run, target, null)
  }

  async function targetBlock(): Promise<Block | undefined> {
    const newest = await source.head()
    if (confirmations === 0n) return newest
    if (newest.number < confirmations) return undefined
    const [block] = await source.blocksAt([newest.number - confirmations])
    return present(block)
  }

  /** Starts the index of a contract at the block before its first log. */
  async function begin(): Promise<Progress> {
    const [first] = await source.blocksAt([startBlock - 1n])
    const to = present(first)
    return move({ events: [], blocks: [to], to }, null, null)
  }

  /** Handles a head that is not above the cursor. On the same branch there is nothing to do. */
  async function stay(target: Block): Promise<Progress> {
    if (target.number === cursor.number) {
      lowSince = undefined
      return target.hash === cursor.hash ? 'at head' : rewind(target)
    }
    lowSince ??= performance.now()
    const [known] = await store.kept(target.number, 1)
    const isOther = known?.number === target.number && known.hash !== target.hash
    if (!isOther && performance.now() - lowSince < lagMs) return 'at head'
    lowSince = undefined
    return rewind(target)
  }

  async function fill(end: bigint, target: Block): Promise<Progress> {
    for await (const { before, events, to } of backfill.ranges(cursor.number + 1n, end)) {
      if (isOver()) return 'more to do'
      if (before.hash !== cursor.hash) return rewind(target)
      if ((await move({ events, blocks: [to], to }, null, null)) === 'superseded') return 'superseded'
    }
    return 'more to do'
  }

  /** Takes the old branch back and writes the new one in one transaction, so that readers never see less. */
  async function rewind(target: Block): Promise<Progress> {
    const from = min(cursor.number, target.number)
    const ancestor = await commonAncestor(from)
    if (ancestor === null) {
      // Nothing is cleared before the chain id was asked for once more: another chain may answer behind the URL.
      source.doubtChain()
      if ((await commonAncestor(from)) !== null) throw chainUnavailable(reorganised)
      log.error('no block of the index is on the chain any more: it is rebuilt', { from: cursor.number })
      await store.clear(epoch)
      return 'superseded'
    }
    // One server behind a URL may still have the block that another one has replaced.
    if (ancestor.number === target.number && ancestor.hash !== target.hash) throw chainUnavailable(reorganised)
    const depth = cursor.number - ancestor.number
    seen.rewound = { time: now(), depth, to: ancestor.number }
    log.warn('the chain was reorganised', { depth, to: ancestor.number })
    if (ancestor.number === target.number) return move({ events: [], blocks: [target], to: target }, null, ancestor)
    const run = await readBlocks(ancestor, target)
    if (run === 'forked') throw chainUnavailable(reorganised)
    return move(run, target, ancestor)
  }

  /** Returns false when another instance leads. A repair that was found on another branch is left out. */
  async function repair(found: IndexRepair): Promise<boolean> {
    const [block] = await source.blocksAt([found.at.number])
    if (block?.hash !== found.at.hash || cursor.number < found.at.number) return true
    const { lost, forged, tokens } = found
    log.warn('the index is repaired', { lost: lost.length, forged: forged.length, tokens: tokens.length })
    return store.repair(epoch, found)
  }

  /** Returns the last block that the index and the chain share, among those whose hashes are kept. Returns `null` when there is none. */
  async function commonAncestor(from: bigint): Promise<BlockId | null> {
    for (let below = from; ;) {
      const kept = await store.kept(below, comparedAtOnce)
      const last = kept.at(-1)
      if (last === undefined) return null
      const blocks = (await source.blocksAt(kept.map(({ number }) => number))).map(present)
      const common = kept.find(({ hash }, index) => blocks[index]?.hash === hash)
      if (common !== undefined) return common
      below = last.number - 1n
    }
  }

  /** Writes blocks after the cursor, or after `ancestor`. With a target the result says whether it is reached. */
  async function move(run: BlockRun, target: Block | null, ancestor: BlockId | null): Promise<Progress> {
    const { events, blocks, to } = run
    const next = cursorAt(to)
    const rewindTo = ancestor?.number ?? null
    const kept = blocks.map(cursorAt)
    if (!(await store.apply({ epoch, from: cursor, rewindTo, events, blocks: kept, to: next }))) return 'superseded'
    cursor = next
    onMove(next)
    return to.number === target?.number ? 'at head' : 'more to do'
  }

  /** Returns the block up to which the chain is not expected to change, at most `head`. A provider that fails at its tag stops nothing. */
  async function finalBelow(head: bigint): Promise<bigint> {
    if (final !== undefined && performance.now() <= final.until) return min(final.number, head)
    const deep = head - finalDepth
    const known = final !== undefined && final.number > deep ? final.number : deep
    // A failure counts as long as an answer: one that takes until its deadline would hold up every step.
    const found = (await source.finalized().catch(() => known)) ?? deep
    final = { number: found, until: performance.now() + finalMs }
    return min(found, head)
  }

  return {
    cursor: () => cursor,
    repair,
    /** Keeps the result of a comparison for all instances. */
    noteDifferences: (differences: number): Promise<void> => store.noteDifferences(epoch, differences),
    /** Reads the head and moves towards it. Throws CHAIN_UNAVAILABLE and database errors; then no transaction is half done. */
    async step(): Promise<Progress> {
      const progress = await step()
      if (progress !== 'at head' || hasArrived) return progress
      hasArrived = await store.arrive(epoch, isOver)
      return hasArrived ? progress : 'superseded'
    },
    /** Returns false when another instance leads. */
    async prune(): Promise<boolean> {
      const head = seen.head ?? 0n
      return store.prune({ epoch, keepFrom: min(await finalBelow(head), head - keptDepth) })
    },
  }
}

function cursorAt({ number, hash, timestamp }: Block): IndexCursor {
  return { number, hash, time: timestamp }
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
