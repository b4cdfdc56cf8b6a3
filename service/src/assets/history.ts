/**
 * The history of a token from the index (spec §3, §4.3, `get_lifecycle_history`). Complete up to the block at which the token was read, and
 * checked against its state there. It is returned whole or not at all. No address leaves here: each becomes the commitment of
 * `owner_commitment`, and the zero address is left out.
 */
import { type AssetRecord, type Hex, type LifecycleState, lifecycleStates, ownerCommitment } from '@touchstone/verdict'
import type { RpcChainSource } from '../chain/rpc/source.ts'
import { type BlockId, chainId } from '../domain/chain.ts'
import { type AssetEvent, type eventKinds, eventNames } from '../domain/registry-event.ts'
import type { HistoryStore } from '../index/history.ts'
import { projectAssets } from '../index/project.ts'
import { reasonOf, ServiceError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { memoize } from '../lib/memoize.ts'

/** An event without its place; the members that are there follow from its type. Hashes are 32 bytes, never text. */
type EventFacts = {
  readonly type: Exclude<keyof typeof eventKinds, 'Transfer'>
  readonly fromState?: LifecycleState
  readonly toState?: LifecycleState
  /** The whole byte after the change. */
  readonly flags?: number
  /** The account whose authority was used. */
  readonly actorCommitment?: Hex
  readonly fromCommitment?: Hex
  readonly toCommitment?: Hex
  readonly metadataHash?: Hex
  readonly tagHash?: Hex
}

/** `timestamp` is the block's, in unix seconds. */
export type HistoryEvent = EventFacts &
  Pick<AssetEvent, 'blockNumber' | 'blockHash' | 'logIndex' | 'transactionHash' | 'timestamp'>

/**
 * Every event up to `block`, the oldest first; none for a token that does not exist. It is not available when the index has not come
 * to the block or cannot be read, or when its events do not lead from the mint to the record at the block.
 */
export type History =
  | { readonly available: true; readonly block: BlockId; readonly events: readonly HistoryEvent[] }
  | { readonly available: false; readonly block: BlockId; readonly reason: HistoryGap }
type HistoryGap = 'INDEX_BEHIND' | 'INDEX_UNAVAILABLE' | 'INDEX_MISMATCH'

/** The record of a token, with the block at which it was read. */
type Reading = {
  readonly asset: {
    /** A verdict has no owner. */
    readonly record: Pick<AssetRecord, 'state' | 'flags'> & Partial<Pick<AssetRecord, 'owner'>>
    readonly metadataHash: Hex | null
  }
  readonly block: BlockId
}

/** Reads the history up to the block of `reading`, or of the newest one. Throws CHAIN_UNAVAILABLE when the state cannot be read. */
export type Histories = (tokenId: bigint, reading?: Reading) => Promise<History>

/** Milliseconds to wait for an index that is behind. */
const indexWaitMs = 300
/** A history with more events is not available: a part of it would be taken for the whole. */
const mostEvents = 1_000

type HistoriesOptions = {
  readonly assets: {
    readonly read: (tokenId: bigint) => Promise<Reading>
    readonly emitsChanges: () => Promise<boolean>
  }
  readonly index: { readonly until: (blockNumber: bigint, withinMs: number) => Promise<boolean> }
  readonly store: Pick<HistoryStore, 'of'>
  readonly contract: Hex
  readonly log: Log
}

export function createHistories({ assets, index, store, contract, log }: HistoriesOptions): Histories {
  async function rowsUpTo(tokenId: bigint, block: BlockId): Promise<readonly AssetEvent[] | HistoryGap> {
    if (!(await index.until(block.number, indexWaitMs))) return 'INDEX_BEHIND'
    const indexed = await store.of(tokenId, mostEvents + 1, block.number)
    if (!holdsAt(block, indexed)) return 'INDEX_BEHIND'
    if (indexed.rows.length > mostEvents) throw new Error(`the token has more than ${mostEvents} events`)
    return indexed.rows.filter(({ blockNumber }) => blockNumber <= block.number)
  }

  return async (tokenId, reading) => {
    const { asset, block } = reading ?? (await assets.read(tokenId))
    if (asset.record.state === 0) return { available: true, block, events: [] }
    const emitsChanges = await assets.emitsChanges()
    const rows = await rowsUpTo(tokenId, block).catch((error: unknown): HistoryGap => {
      log.warn('history not read', { tokenId, reason: reasonOf(error) })
      return 'INDEX_UNAVAILABLE'
    })
    if (typeof rows === 'string') return { available: false, block, reason: rows }
    const events = toEvents(rows, { contract, tokenId })
    const isWhole = events[0]?.type === 'AssetMinted' && leadsTo(asset.record.state, events)
    if (isWhole && endsAt(asset, rows, emitsChanges)) return { available: true, block, events }
    log.warn('history does not lead to the present record', { tokenId, block: block.number })
    return { available: false, block, reason: 'INDEX_MISMATCH' }
  }
}

/** A record with the unix time of its last change. */
type TimedReading = {
  readonly asset: { readonly record: Pick<AssetRecord, 'state' | 'timestamp'> }
  readonly block: BlockId
}

/** Reads the changes of state up to the block of `reading`, the oldest first. They are null where they are not certain. */
export type StateChanges = (tokenId: bigint, reading: TimedReading) => Promise<readonly HistoryEvent[] | null>

/**
 * Reads the changes of state alone, for where the history is not available. They are complete also while the index is behind the block, once
 * it has passed the second of the record's last change: blocks may share a second, but time never goes back on one branch.
 */
export function createStateChanges({
  store,
  source,
  contract,
  log,
}: Pick<HistoriesOptions, 'contract' | 'log'> & {
  readonly store: Pick<HistoryStore, 'changes'>
  readonly source: Pick<RpcChainSource, 'blocksAt'>
}): StateChanges {
  /** Returns whether the chain has all these blocks, so that the higher ones come after the lower ones. */
  async function areOnChain(blocks: readonly BlockId[]): Promise<boolean> {
    const found = await source.blocksAt(blocks.map(({ number }) => number))
    return blocks.every(({ hash }, index) => found[index]?.hash === hash)
  }

  return async (tokenId, { asset: { record }, block }) => {
    try {
      const indexed = await store.changes(tokenId, mostEvents, block.number)
      if (indexed === null || !agrees(block, indexed)) return null
      const { cursor, rows } = indexed
      const isBehind = cursor.number < block.number
      if (isBehind && (cursor.time <= record.timestamp || !(await areOnChain([cursor, block])))) return null
      if (rows.some(({ timestamp }) => timestamp > record.timestamp)) return null // of another branch
      const events = toEvents(rows, { contract, tokenId })
      return leadsTo(record.state, events) ? events : null
    } catch (error) {
      log.warn('changes of state not read', { tokenId, reason: reasonOf(error) })
      return null
    }
  }
}

type Indexed = Awaited<ReturnType<HistoryStore['of']>>

/** Returns whether the index is complete up to a block. It may be on another branch than the block, behind it or ahead of it. */
function holdsAt(block: BlockId, indexed: Indexed): indexed is NonNullable<Indexed> {
  return indexed !== null && indexed.cursor.number >= block.number && agrees(block, indexed)
}

/** Returns whether no hash says that the index is on another branch than the block. */
function agrees(block: BlockId, indexed: NonNullable<Indexed>): boolean {
  const kept = { number: block.number, hash: indexed.hashAt ?? block.hash }
  const places = [
    indexed.cursor,
    kept,
    ...indexed.rows.map((row) => ({ number: row.blockNumber, hash: row.blockHash })),
  ]
  return !places.some(({ number, hash }) => number === block.number && hash !== block.hash)
}

export type Minters = ReturnType<typeof createMinters>

export function createMinters({
  assets,
  index,
  store,
}: Pick<HistoriesOptions, 'assets' | 'index'> & {
  readonly store: Pick<HistoryStore, 'of' | 'mintersOf'>
}) {
  /**
   * Returns the account that minted each token: one of `accounts`, or null for any other. A token without a mint in the index is left out.
   * Throws HISTORY_UNAVAILABLE when the index has not come to the newest block, and CHAIN_UNAVAILABLE when the chain cannot be read.
   */
  return async (tokenIds: readonly bigint[], accounts: readonly Hex[]): Promise<ReadonlyMap<bigint, Hex | null>> => {
    const [first] = tokenIds
    if (first === undefined) return new Map()
    const { block } = await assets.read(first)
    const isHere = async () => holdsAt(block, await store.of(first, 0, block.number))
    if ((await index.until(block.number, indexWaitMs)) && (await isHere())) {
      const minters = await store.mintersOf(tokenIds, accounts, block.number)
      // A reorganisation may have come between, so the place of the index is read again.
      if (await isHere()) return minters
    }
    throw historyUnavailable('INDEX_BEHIND')
  }
}

/** Returns HISTORY_UNAVAILABLE with a reason for the log. */
export function historyUnavailable(reason: string): ServiceError {
  const message = 'The history of the item cannot be read at the moment. Try again in a few seconds.'
  return new ServiceError('HISTORY_UNAVAILABLE', message, { cause: new Error(reason) })
}

function toEvents(
  rows: readonly AssetEvent[],
  token: { readonly contract: Hex; readonly tokenId: bigint },
): readonly HistoryEvent[] {
  // A commitment costs 20 µs. A thousand events have three each, and most are of the same account.
  const commit = memoize((owner: Hex) => ({ to: ownerCommitment({ chainId, ...token, owner }) ?? undefined }), {
    max: mostEvents,
  })
  return rows.flatMap((row) => {
    const facts = toFacts(row, (owner) => commit(owner).to)
    if (facts === null) return []
    const { blockNumber, blockHash, logIndex, transactionHash, timestamp } = row
    return [{ ...facts, blockNumber, blockHash, logIndex, transactionHash, timestamp }]
  })
}

/** Returns null for an event that another one explains: a move of the token. */
function toFacts(event: AssetEvent, commit: (address: Hex) => Hex | undefined): EventFacts | null {
  const type = eventNames.get(event.kind)
  if (type === undefined || type === 'Transfer') return null
  const commitment = (address: Hex | null) => (address === null ? undefined : commit(address))
  const [actor, from, to] = [commitment(event.actor), commitment(event.from), commitment(event.to)]
  return {
    type,
    ...(type === 'StateChanged' && { fromState: toState(event.fromState), toState: toState(event.toState) }),
    ...(type === 'FlagsChanged' && { flags: event.flags ?? 0 }),
    ...(actor && { actorCommitment: actor }),
    ...(from && { fromCommitment: from }),
    ...(to && { toCommitment: to }),
    ...(event.data && (type === 'AssetMinted' || type === 'MetadataHashSet') && { metadataHash: event.data }),
    ...(event.data && type === 'TagBound' && { tagHash: event.data }),
  }
}

function toState(code: number | null): LifecycleState {
  const state = lifecycleStates[code ?? -1]
  if (state === undefined) throw new RangeError('There is no such lifecycle state.')
  return state
}

/**
 * Returns whether the events end at owner, flags and metadata hash of a record. The log of a change may have been missed. Flags and hash are
 * compared where each change of them emits an event.
 */
function endsAt(
  { record, metadataHash }: Reading['asset'],
  rows: readonly AssetEvent[],
  emitsChanges: boolean,
): boolean {
  const [last] = projectAssets(rows)
  if (last === undefined || (record.owner !== undefined && last.owner !== record.owner)) return false
  if (!emitsChanges) return true
  const hash = BigInt(last.metadataHash ?? 0) === 0n ? null : last.metadataHash
  return (last.flags ?? 0) === record.flags && hash === metadataHash
}

/** Returns whether the events lead from none, state by state without a gap, to the state of the record. */
function leadsTo(state: number, events: readonly HistoryEvent[]): boolean {
  let at = 'NONE'
  for (const { type, fromState, toState: next = '' } of events) {
    if (type !== 'StateChanged') continue
    if (fromState !== at) return false
    at = next
  }
  return at === lifecycleStates[state]
}
