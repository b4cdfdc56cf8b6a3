/** Records of the index of the registry (spec §2.9, §4.9), shared by the indexer, the database and the comparison with the chain. */
import type { Hex } from '@touchstone/verdict'
import type { BlockId } from './chain.ts'
import type { AssetEvent } from './registry-event.ts'

/** The block up to which the index is complete; number −1 before the first. `time` is the block's, in unix seconds. */
export type IndexCursor = BlockId & Readonly<{ time: bigint }>

/** Moves the index from one block of the chain to a later one, or to another branch. */
export type IndexStep = Readonly<{
  epoch: bigint
  /** The cursor that the step begins at. A step is not written where the database is at another block. */
  from: BlockId
  /** Everything above this block is taken back first; `null` in a step forward. */
  rewindTo: bigint | null
  /** All events after the cursor, or after `rewindTo`, up to `to`, in the order of the chain. */
  events: readonly AssetEvent[]
  /** Blocks whose hashes and times are kept, `to` among them: a reorganisation can be followed back to them. */
  blocks: readonly IndexCursor[]
  to: IndexCursor
}>

/** A repair replaces events of the index; it was found at the block `at`. Stored events at the places of `lost` are replaced by them. */
export type IndexRepair = Readonly<{
  at: BlockId
  lost: readonly AssetEvent[]
  forged: readonly AssetEvent[]
  tokens: readonly string[]
}>

/**
 * The database as the indexer writes it. Every method that takes an epoch is one transaction, `arrive` several; it returns false, and
 * changes nothing more, when a later leader has raised the epoch.
 */
export type IndexStore = Readonly<{
  /** Returns `null` before the first leader. */
  cursor: () => Promise<IndexCursor | null>
  /** Raises the epoch. Returns `null` when the index belongs to another contract. Throws where it has events above its cursor. */
  lead: (contract: Hex) => Promise<Readonly<{ epoch: bigint; cursor: IndexCursor }> | null>
  /** Returns false also when the cursor is not at `from`. A promoted standby may lack the last step. */
  apply: (step: IndexStep) => Promise<boolean>
  /**
   * Notes that the head is reached: from here on every event is announced. Each leader calls it until it succeeds. After a rebuild it
   * compares all registrations and announcements first; `isOver` ends that with false.
   */
  arrive: (epoch: bigint, isOver: () => boolean) => Promise<boolean>
  /** Returns kept blocks from this number down, the highest first. */
  kept: (from: bigint, limit: number) => Promise<readonly BlockId[]>
  /** Expires offers and deletes old rows; of the blocks below `keepFrom` only a few are kept. */
  prune: (options: Readonly<{ epoch: bigint; keepFrom: bigint }>) => Promise<boolean>
  /** Replaces events, and writes the tokens and their transfers again as their stored events say. */
  repair: (epoch: bigint, repair: IndexRepair) => Promise<boolean>
  /** Keeps how many tokens differ from the chain, unless a later leader has raised the epoch. */
  noteDifferences: (epoch: bigint, differences: number) => Promise<void>
  /** Returns `null` before the first comparison. */
  differences: () => Promise<number | null>
  /** Deletes everything that came from the chain, and ends the epoch. */
  clear: (epoch: bigint) => Promise<boolean>
}>

export type TransferStatus = 'PENDING' | 'CONFIRMED' | 'FAILED'

/**
 * A token of the index. `pending` is its open offer; `expiry` is in unix seconds; hashes are `null` for none. `strayed` names the fields
 * that are not as its stored events say.
 */
export type IndexedToken = Readonly<{
  tokenId: bigint
  owner: Hex
  state: number
  flags: number
  metadataHash: Hex | null
  tagHash: Hex | null
  pending: Readonly<{ to: Hex; nonce: bigint; expiry: bigint }> | null
  strayed: readonly string[]
}>

/** Tokens in one snapshot with the block `at` which they hold. `products` is the number of all tokens by the sums of the index. */
export type TokenPage = Readonly<{ at: BlockId; products: bigint; tokens: readonly IndexedToken[] }>

/** Reads tokens of the index; `null` where there is no index. */
export type TokenPages = Readonly<{
  /** Returns at most `limit` tokens with ids above `after`, in the order of their ids. */
  after: (after: bigint, limit: number) => Promise<TokenPage | null>
  /** Returns about `count` tokens, chosen at random. */
  sample: (count: number) => Promise<TokenPage | null>
  /** Returns the stored events of a range of blocks (both included), in the order of the chain. */
  events: (from: bigint, to: bigint) => Promise<readonly AssetEvent[]>
  /** Returns those of the tokens that the index lacks. */
  missing: (tokenIds: readonly string[]) => Promise<readonly string[]>
}>

/** The last second of the year 9999, which every reader of times can write; chains name later ones. */
const lastSecond = 253_402_300_799n

/** Returns unix seconds that fit a column of the index. */
export function clampSeconds(time: bigint): bigint {
  return time < lastSecond ? time : lastSecond
}
