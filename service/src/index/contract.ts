/**
 * Which index its readers may take. It has the events of one contract: after CHAIN_CONTRACT was changed, or where instances of two contracts
 * share a database, the same token id is another product. And it lacks products until it has arrived at the head of the chain.
 */
import type { Hex } from '@touchstone/verdict'
import { hex } from '../db/columns.ts'
import { createBatcher } from '../lib/async/batch.ts'
import { createRefresh, singleFlight } from '../lib/async/single-flight.ts'
import { sleep } from '../lib/async/sleep.ts'
import { databaseUnavailable, ServiceError } from '../lib/errors.ts'
import type { IndexDatabase } from './steps.ts'

/** An index changes its contract after a rebuild only, when it is empty. */
const knownMs = 1_000

/** Returns the database for reads of the index. They throw DATABASE_UNAVAILABLE where the index is of another contract than this one. */
export function ofContract(database: IndexDatabase, contract: Hex): IndexDatabase {
  let knownAt = -Infinity
  const refresh = createRefresh(look, () => knownAt)

  async function look(): Promise<void> {
    const began = performance.now()
    const [cursor] = await database.query<{ contract: Hex }>(contractStatement)
    if (cursor !== undefined && cursor.contract !== contract.toLowerCase())
      throw databaseUnavailable(
        new Error('the index in this database belongs to another contract; rebuild it with "touchstone index rebuild"'),
      )
    knownAt = began
  }

  return {
    dialect: database.dialect,
    async query(...given) {
      await refresh(knownMs)
      return database.query(...given)
    },
    async transaction(...given) {
      await refresh(knownMs)
      return database.transaction(...given)
    },
  }
}

/** An index that is empty takes the contract of its next leader. */
const contractStatement = `select ${hex('contract')} as contract from index_cursor where number >= 0`

/** The index lacks an unknown part of the products: it was never filled, or is filled again after a rebuild. Retryable. */
export class IndexIncompleteError extends ServiceError {
  constructor() {
    super(
      'HISTORY_UNAVAILABLE',
      'The index is being filled, so that it does not have all products yet. Ask again in a few seconds.',
    )
    this.name = 'IndexIncompleteError'
  }
}

/** Milliseconds from the last block to the arrival at most, in most cases. A rebuild takes from seconds to hours. */
const mostWaitMs = 1_000
const arrivalPollMs = 25
/** Reads that a rebuild or another leader disturbed. */
const mostReads = 3

/**
 * Returns the database for reads whose answer may be that there is none. They throw an IndexIncompleteError from a rebuild until a leader has
 * arrived at the head, also where the rebuild began after their snapshot: TRUNCATE empties tables for all snapshots.
 */
export function wholeIndex(database: IndexDatabase, { waitMs = mostWaitMs } = {}): IndexDatabase {
  let known: bigint | null = null
  let moved: { number: bigint | undefined; at: number } = { number: undefined, at: performance.now() }

  /** Returns the epoch under which the index is whole; null while it is not. Each look begins after its call; many share one statement. */
  const lookOf = createBatcher<null, bigint | null>({
    maxItems: Infinity,
    async run(calls) {
      const [row] = await database.query<{ number: bigint; epoch: bigint; arrived: boolean }>(arrivedStatement)
      const isWhole = row?.arrived === true
      if (!isWhole && row?.number !== moved.number) moved = { number: row?.number, at: performance.now() }
      return calls.map(() => (isWhole ? row.epoch : null))
    },
  })
  const look = () => lookOf(null)

  /** Waits a little where the index has moved just now. */
  const arrival = singleFlight(async (): Promise<bigint> => {
    for (const began = performance.now(); ; await sleep(arrivalPollMs)) {
      const epoch = await look()
      if (epoch !== null) return epoch
      if (performance.now() - Math.min(began, moved.at) >= waitMs) throw new IndexIncompleteError()
    }
  })

  async function whole<T>(read: () => Promise<T>): Promise<T> {
    for (let reads = 0; reads < mostReads; reads += 1) {
      const before = known ?? (await arrival())
      const result = await read()
      const after = await look()
      known = after
      if (after === before) return result
    }
    throw new IndexIncompleteError()
  }

  return {
    dialect: database.dialect,
    query: (...given) => whole(() => database.query(...given)),
    transaction: (...given) => whole(() => database.transaction(...given)),
  }
}

/**
 * Returns the epoch of a whole index; null where nothing was ever read into it. Throws an IndexIncompleteError while it is filled. The same
 * epoch before and after some work says that no rebuild came between.
 */
export async function wholeEpoch(database: IndexDatabase): Promise<bigint | null> {
  const statement = 'select epoch from index_cursor'
  if ((await database.query(statement)).length === 0) return null
  const [cursor] = await wholeIndex(database).query<{ epoch: bigint }>(statement)
  return cursor?.epoch ?? null
}

/** A leader passes its arrival on to the next one; a rebuild does not. */
const arrivedStatement = `select number, epoch, number >= 0 and coalesce(fed_epoch = epoch, false) as arrived from index_cursor`
