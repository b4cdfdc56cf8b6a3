/**
 * The database of the indexer (spec §2.9, §4.9): events, tokens, transfers, announcements and the cursor are written in one
 * transaction, so that the index always holds at the block it names.
 */
import type { Database, Sql } from '../db/database.ts'
import type { IndexStep, IndexStore } from '../domain/chain-index.ts'
import { storeAssets } from './assets.ts'
import { holdEpoch, keptBlocks, moveCursor, readCursor, resetCursor, takeLead } from './cursor.ts'
import { insertEvents } from './history.ts'
import { projectAssets } from './project.ts'
import { pruneIndex } from './prune.ts'
import { rewindTo } from './rewind.ts'
import { announce, applyTransfers, type StatusChanges } from './transfers.ts'

/** `now` is in unix milliseconds. */
export function indexStore(
  database: Pick<Database, 'query' | 'transaction'>,
  now: () => number = Date.now,
): IndexStore {
  return {
    cursor: () => readCursor(database),
    kept: (from, limit) => keptBlocks(database, from, limit),
    lead: (contract) => takeLead(database, contract),

    async apply(step) {
      const { epoch, events, blocks, to } = step
      if (events.length === 0 && step.rewindTo === null) return moveCursor(database, epoch, to, blocks)
      return database.transaction(async (sql) => {
        if (!(await moveCursor(sql, epoch, to, blocks))) return false
        await applyStep(sql, step, BigInt(Math.floor(now() / 1000)))
        return true
      })
    },

    prune: ({ epoch, keepFrom }) =>
      database.transaction(async (sql) => {
        if (!(await holdEpoch(sql, epoch))) return false
        await pruneIndex(sql, keepFrom)
        return true
      }),

    clear: (epoch) => database.transaction((sql) => clear(sql, epoch)),
  }
}

/** Deletes everything that came from the chain; the next leader begins anew. Registrations, taps, messages and keys stay. */
export async function rebuildIndex(database: Pick<Database, 'transaction'>): Promise<void> {
  await database.transaction((sql) => clear(sql, null))
}

async function applyStep(sql: Sql, { events, to, rewindTo: rewind, announceSince }: IndexStep, now: bigint) {
  const past = now > to.time ? now : to.time
  const changes: StatusChanges = new Map()
  if (rewind !== null) {
    await sql.query('delete from index_block where number > $1', [to.number])
    await rewindTo(sql, rewind, past, changes)
  }
  await insertEvents(sql, events)
  await storeAssets(sql, projectAssets(events))
  await applyTransfers(sql, events, past, changes)
  await announce(sql, changes, announceSince)
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
