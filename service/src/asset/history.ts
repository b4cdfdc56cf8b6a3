/**
 * The history of a token from the contract's events (spec §3): read when somebody asks, complete up to one block, checked against
 * the state at that block. It is given whole or not at all, so that a list never stands for «could not look».
 */
import { lifecycleStates, type AssetRecord, type Hex } from '@touchstone/verdict'
import type { ChainLog } from '../chain/source.ts'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { committing, factsOf, type EventFacts } from './history-events.ts'

type Block = Readonly<{ number: bigint; hash: Hex }>
type Asset = Readonly<{ record: AssetRecord; live: boolean }>

/** `timestamp` is the block's, in unix seconds. */
export type HistoryEvent = EventFacts &
  Readonly<{ blockNumber: bigint; blockHash: Hex; logIndex: number; transactionHash: Hex; timestamp: bigint }>

/** Every event up to `block`, the oldest first; none for a token that does not exist. */
type History = { readonly block: Block; readonly events: readonly HistoryEvent[] }

export type HistorySource = {
  readonly logsAbout: (
    tokenId: bigint,
    from: bigint,
    to: bigint,
    options: Until,
  ) => Promise<readonly ChainLog[] | symbol>
  readonly block: (hash: Hex, options: Until) => Promise<{ readonly timestamp: bigint } | symbol>
}

/** A moment of `performance.now()` in milliseconds. */
type Until = { readonly deadline: number }

/**
 * Null when the history cannot be vouched for: the provider does not serve so many blocks at once, there are more events than anyone
 * would read, or they do not lead from the mint to the present state. It throws CHAIN_UNAVAILABLE when not even the state can be read.
 */
export type Histories = (tokenId: bigint) => Promise<History | null>

/** Events of one token; an item that is sold twenty times has about a hundred. */
const mostEvents = 256
/** How long a history that could not be had is not asked for again, in milliseconds. */
const failedMs = 5_000
/** For everything that one history is read with, in milliseconds. */
const readTimeoutMs = 4_000
/** Blocks that are asked for at the same time. */
const lanes = 16

export function createHistories({
  assets,
  source,
  contract,
  chainId,
  startBlock,
  maxEntries = 1_000,
  log,
}: {
  readonly assets: { readonly read: (tokenId: bigint) => Promise<{ readonly asset: Asset; readonly block: Block }> }
  readonly source: HistorySource
  readonly contract: Hex
  readonly chainId: number
  /** The block of the contract's deployment, or any before. */
  readonly startBlock: bigint
  readonly maxEntries?: number
  readonly log: Log
}): Histories {
  const kept = new Map<bigint, Kept>()
  const flights = new Map<string, Promise<History | null>>()
  const times = new Map<Hex, bigint>()

  async function read(tokenId: bigint, { asset, block }: Reading): Promise<History | null> {
    const events = await eventsOf(tokenId, block).catch((error: unknown) => {
      log.warn('history not read', { tokenId, reason: reasonOf(error) })
      return null
    })
    const history = events !== null && leadsTo(asset.record.state, events) ? { block, events } : null
    kept.delete(tokenId)
    if (kept.size >= maxEntries) kept.delete(kept.keys().next().value ?? 0n)
    kept.set(tokenId, { asset, history, until: performance.now() + (history === null ? failedMs : Infinity) })
    return history
  }

  async function eventsOf(tokenId: bigint, block: Block): Promise<readonly HistoryEvent[] | null> {
    const deadline = performance.now() + readTimeoutMs
    const logs = await source.logsAbout(tokenId, startBlock, block.number, { deadline })
    if (typeof logs === 'symbol' || logs.length > mostEvents) return null
    // A branch that was left again would show here first.
    if (logs.some(({ blockNumber, blockHash }) => blockNumber === block.number && blockHash !== block.hash)) return null
    const commit = committing(chainId, contract, tokenId)
    const told = logs.flatMap((one) => {
      const facts = factsOf(one, commit)
      return facts === null ? [] : [{ facts, one }]
    })
    const timeOf = await timesOf([...new Set(told.map(({ one }) => one.blockHash))], deadline)
    return told.map(({ facts, one: { blockNumber, blockHash, logIndex, transactionHash } }) => {
      const place = { blockNumber, blockHash, logIndex, transactionHash }
      return { ...facts, ...place, timestamp: timeOf.get(blockHash) ?? 0n }
    })
  }

  /** The time of a block never changes; what was read once is not read again. */
  async function timesOf(hashes: readonly Hex[], deadline: number): Promise<ReadonlyMap<Hex, bigint>> {
    const found = new Map<Hex, bigint>()
    for (let from = 0; from < hashes.length; from += lanes)
      await Promise.all(
        hashes.slice(from, from + lanes).map(async (hash) => {
          const timestamp = times.get(hash) ?? (await timeOfBlock(hash, deadline))
          found.set(hash, timestamp)
        }),
      )
    return found
  }

  async function timeOfBlock(hash: Hex, deadline: number): Promise<bigint> {
    const block = await source.block(hash, { deadline })
    if (typeof block === 'symbol') throw new Error('the block of an event is gone')
    if (times.size >= 10 * maxEntries) times.delete(times.keys().next().value ?? hash)
    times.set(hash, block.timestamp)
    return block.timestamp
  }

  return async (tokenId) => {
    const reading = await assets.read(tokenId)
    const { asset, block } = reading
    if (asset.record.state === 0) return { block, events: [] }
    const known = kept.get(tokenId)
    if (known !== undefined && performance.now() < known.until) {
      if (known.history === null || known.history.block.hash === block.hash) return known.history
      // The same asset, still alive: no event has named the token since.
      if (known.asset === asset && asset.live) return { ...known.history, block }
    }
    const key = `${tokenId} ${block.hash}`
    const flight = flights.get(key) ?? read(tokenId, reading).finally(() => flights.delete(key))
    flights.set(key, flight)
    return flight
  }
}

type Reading = Readonly<{ asset: Asset; block: Block }>
type Kept = Readonly<{ asset: Asset; history: History | null; until: number }>

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
