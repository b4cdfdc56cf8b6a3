/**
 * The history of a token from the index (spec §3, §4.3): complete up to the block at which the token was read, checked against its
 * state there. It is given whole or not at all, so that a list never stands for «could not look».
 */
import { lifecycleStates, type AssetRecord, type Hex } from '@touchstone/verdict'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { HistoryStore } from '../store/history.ts'
import type { IndexedEvent } from '../store/index-events.ts'
import { committing, factsOf, type EventFacts } from './history-events.ts'

type Block = Readonly<{ number: bigint; hash: Hex }>

/** `timestamp` is the block's, in unix seconds. */
export type HistoryEvent = EventFacts &
  Readonly<{ blockNumber: bigint; blockHash: Hex; logIndex: number; transactionHash: Hex; timestamp: bigint }>

/**
 * Every event up to `block`, the oldest first; none for a token that does not exist. Where nobody can vouch for it: the index has not
 * come to the block, the index cannot be read, or its events do not lead from the mint to the state at the block.
 */
export type History =
  | { readonly available: true; readonly block: Block; readonly events: readonly HistoryEvent[] }
  | { readonly available: false; readonly block: Block; readonly reason: HistoryGap }
type HistoryGap = 'INDEX_BEHIND' | 'INDEX_UNAVAILABLE' | 'INDEX_MISMATCH'

/** It throws CHAIN_UNAVAILABLE when not even the state can be read. */
export type Histories = (tokenId: bigint) => Promise<History>

/** How long an index that is behind is waited for, in milliseconds. */
const patienceMs = 300

export function createHistories({
  assets,
  index,
  store,
  contract,
  chainId,
  log,
}: {
  readonly assets: {
    readonly read: (
      tokenId: bigint,
    ) => Promise<{ readonly asset: { readonly record: AssetRecord }; readonly block: Block }>
  }
  readonly index: { readonly until: (blockNumber: bigint, withinMs: number) => Promise<boolean> }
  readonly store: Pick<HistoryStore, 'of'>
  readonly contract: Hex
  readonly chainId: number
  readonly log: Log
}): Histories {
  /** The events up to the block, or why there are none. */
  async function eventsUpTo(tokenId: bigint, block: Block): Promise<readonly HistoryEvent[] | HistoryGap> {
    if (!(await index.until(block.number, patienceMs))) return 'INDEX_BEHIND'
    const indexed = await store.of(tokenId)
    if (indexed === null || indexed.cursor.number < block.number) return 'INDEX_BEHIND'
    const rows = indexed.rows.filter(({ blockNumber }) => blockNumber <= block.number)
    // Of a branch that the index has left, or not yet come to.
    const isOnBranch = ({ number, hash }: Block) => number !== block.number || hash === block.hash
    if (!isOnBranch(indexed.cursor)) return 'INDEX_BEHIND'
    if (!rows.every(({ blockNumber, blockHash }) => isOnBranch({ number: blockNumber, hash: blockHash })))
      return 'INDEX_BEHIND'
    const commit = committing(chainId, contract, tokenId)
    return rows.flatMap((row) => {
      const facts = factsOf(row, commit)
      return facts === null ? [] : [{ ...facts, ...placeOf(row) }]
    })
  }

  return async (tokenId) => {
    const { asset, block } = await assets.read(tokenId)
    if (asset.record.state === 0) return { available: true, block, events: [] }
    const events = await eventsUpTo(tokenId, block).catch((error: unknown): HistoryGap => {
      log.warn('history not read', { tokenId, reason: reasonOf(error) })
      return 'INDEX_UNAVAILABLE'
    })
    if (typeof events === 'string') return { available: false, block, reason: events }
    if (leadsTo(asset.record.state, events)) return { available: true, block, events }
    log.warn('history does not lead to the present state', { tokenId, block: block.number })
    return { available: false, block, reason: 'INDEX_MISMATCH' }
  }
}

function placeOf({ blockNumber, blockHash, logIndex, transactionHash, timestamp }: IndexedEvent) {
  return { blockNumber, blockHash, logIndex, transactionHash, timestamp }
}

/** From the mint, state by state without a gap, to the state that the record has. */
function leadsTo(state: number, events: readonly HistoryEvent[]): boolean {
  let at = 'NONE'
  for (const { type, fromState, toState = '' } of events) {
    if (type !== 'StateChanged') continue
    if (fromState !== at) return false
    at = toState
  }
  return events[0]?.type === 'AssetMinted' && at === lifecycleStates[state]
}
