/**
 * Where the indexer writes (spec §2.9, §4.9): events, tokens, transfers, what subscribers hear and the cursor in one transaction,
 * so that the index is always true at the block it names.
 */
import type { Hex } from '@touchstone/verdict'
import type { Database, Sql } from './database.ts'
import { storeAssets } from './index-assets.ts'
import {
  holdEpoch,
  keptBlocks,
  moveCursor,
  readCursor,
  resetCursor,
  takeLead,
  type Cursor,
  type Place,
} from './index-cursor.ts'
import { insertEvents, type IndexedEvent } from './index-events.ts'
import { foldAssets } from './index-fold.ts'
import { rewindTo } from './index-rewind.ts'
import { sweepIndex } from './index-sweep.ts'
import { announce, followTransfers, type StatusChanges } from './index-transfers.ts'

/** `events` are all of those after the cursor, or after `rewindTo`, up to `to`. Times are unix seconds. */
type Step = Readonly<{
  epoch: bigint
  rewindTo: bigint | null
  events: readonly IndexedEvent[]
  blocks: readonly Place[]
  to: Cursor
  announceSince: bigint
}>

/** `now` is in unix milliseconds. */
export function indexSink(database: Pick<Database, 'query' | 'transaction'>, now: () => number = Date.now) {
  return {
    cursor: () => readCursor(database),
    kept: (from: bigint, limit: number) => keptBlocks(database, from, limit),
    lead: (contract: Hex) => takeLead(database, contract),

    /** False: another leads, and nothing has changed. */
    async apply(step: Step): Promise<boolean> {
      const { epoch, events, blocks, to } = step
      if (events.length === 0 && step.rewindTo === null) return moveCursor(database, epoch, to, blocks)
      return database.transaction(async (sql) => {
        if (!(await moveCursor(sql, epoch, to, blocks))) return false
        await applyEvents(sql, step, BigInt(Math.floor(now() / 1000)))
        return true
      })
    },

    sweep: ({ epoch, keepFrom }: { epoch: bigint; keepFrom: bigint }): Promise<boolean> =>
      database.transaction(async (sql) => {
        if (!(await holdEpoch(sql, epoch))) return false
        await sweepIndex(sql, keepFrom)
        return true
      }),

    clear: (epoch: bigint) => database.transaction((sql) => clear(sql, epoch)),
  }
}

/** Forgets all that came from the chain; whoever leads begins anew. Registrations, taps, messages and keys stay. */
export async function rebuildIndex(database: Pick<Database, 'transaction'>): Promise<void> {
  await database.transaction((sql) => clear(sql, null))
}

async function applyEvents(sql: Sql, step: Step, now: bigint): Promise<void> {
  const { events, to } = step
  const past = now > to.time ? now : to.time
  const changes: StatusChanges = new Map()
  if (step.rewindTo !== null) {
    await sql.query('delete from index_block where number > $1', [to.number])
    await rewindTo(sql, step.rewindTo, past, changes)
  }
  await insertEvents(sql, events)
  await storeAssets(sql, foldAssets(events))
  await followTransfers(sql, events, past, changes)
  await announce(sql, changes, step.announceSince)
}

async function clear(sql: Sql, epoch: bigint | null): Promise<boolean> {
  if (!(await resetCursor(sql, epoch)) && epoch !== null) return false
  await sql.query('truncate history, transfer, asset, product_count, product_total, index_block')
  await sql.query(
    'delete from item i using registration r where r.token_id = i.token_id and r.gtin = i.gtin and r.serial = i.serial',
  )
  await sql.query('update registration set token_id = null where token_id is not null')
  return true
}
