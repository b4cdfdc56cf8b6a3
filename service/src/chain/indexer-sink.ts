/**
 * What the indexer needs of the database (spec §2.9, §4.9): steps that are written whole or not at all, and by one leader only.
 * `store/index-sink.ts` fits it.
 */
import type { Hex } from '@touchstone/verdict'
import type { AssetEvent } from './events.ts'

export type IndexPlace = Readonly<{ number: bigint; hash: Hex }>

/** The block to which the index is complete; number −1 before the first. `time` is the block's, in unix seconds. */
export type IndexCursor = IndexPlace & Readonly<{ time: bigint }>

/** From one place of the chain to the next. */
type IndexStep = Readonly<{
  epoch: bigint
  /** Everything above this number is taken back first. */
  rewindTo: bigint | null
  /** All events after the cursor, or after `rewindTo`, up to `to`, in their order. */
  events: readonly AssetEvent[]
  /** Blocks of this step to which a reorganisation can be followed back, `to` among them. */
  blocks: readonly IndexPlace[]
  to: IndexCursor
  /** Unix seconds; subscribers do not hear of what happened before. */
  announceSince: bigint
}>

export type IndexSink = Readonly<{
  cursor: () => Promise<IndexCursor | null>
  /** Raises the epoch, so that no earlier leader can write. `null`: the index is another contract's. */
  lead: (contract: Hex) => Promise<Readonly<{ epoch: bigint; cursor: IndexCursor }> | null>
  /** All in one transaction. False, and nothing has changed: the epoch is over. So do the others. */
  apply: (step: IndexStep) => Promise<boolean>
  /** Kept blocks with this number or a lower one, the highest first. */
  kept: (from: bigint, limit: number) => Promise<readonly IndexPlace[]>
  /** What time changes: offers that have run out, old rows. Blocks below `keepFrom` may be forgotten, but for a few. */
  sweep: (now: Readonly<{ epoch: bigint; keepFrom: bigint }>) => Promise<boolean>
  /** Forgets all that came from the chain, and ends the epoch. */
  clear: (epoch: bigint) => Promise<boolean>
}>

/** Whoever holds it leads; `null`: somebody else does. `lost` resolves when it is held no longer. */
export type LeaderLock = () => Promise<Readonly<{ lost: Promise<void>; release: () => Promise<void> }> | null>
