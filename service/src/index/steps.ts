/**
 * Whole steps of the index (docs/capacity.md). The nodes of a cluster commit a step one after another, so that a statement over several
 * shards may see half of it: readers answer only where no step was under way from their first look to their last. One PostgreSQL and
 * PGlite have a snapshot for each statement, and nothing more is asked there.
 */
import { finishCommits, isCommittedEverywhere } from '../db/cluster/nodes.ts'
import { hex } from '../db/columns.ts'
import type { Database, Sql } from '../db/database.ts'
import type { BlockId } from '../domain/chain.ts'
import { createQueue } from '../lib/async/concurrency.ts'
import { sleep } from '../lib/async/sleep.ts'
import { databaseUnavailable } from '../lib/errors.ts'

/** The part of the database that reads and changes the index. */
export type IndexDatabase = Pick<Database, 'query' | 'transaction' | 'dialect'>

/** Reads whole steps. `cursor` is the block at which `read` holds; null on one server, where its own statement says so, and before the first. */
type WholeReads = <T>(read: (sql: Sql, cursor: BlockId | null) => Promise<T>) => Promise<T>

/** Reads that a step disturbed; the next one keeps steps waiting. */
const mostDisturbed = 3

export function wholeReads(database: IndexDatabase): WholeReads {
  if (database.dialect !== 'citus') return (read) => read(database, null)
  const inTurn = createQueue() // or readers would keep the indexer from its next step
  return async (read) => {
    for (let disturbed = 0; disturbed < mostDisturbed; disturbed += 1) {
      const before = await wholeStep(database)
      const result = await read(database, before)
      // The coordinator commits a step before any shard does.
      if ((await lookAt(database))?.step === before?.step) return result
    }
    return inTurn(() =>
      database.transaction(async (sql) => {
        await waitForStep(sql)
        return read(sql, await lookAt(sql))
      }),
    )
  }
}

/** Waits for a step that is being written: later reads see it, and the next step sees earlier writes. */
export async function waitForStep(sql: Sql, lock: 'share' | 'update' = 'share'): Promise<void> {
  const [cursor] = await sql.query<{ step: bigint }>(`select step from index_cursor for ${lock}`)
  if (cursor !== undefined && cursor.step > 0n) await wholeStep(sql)
}

/** Changes the index in one transaction, unless `change` returns false, and shows it when all of it is committed. */
export async function changeIndex(database: IndexDatabase, change: (sql: Sql) => Promise<boolean>): Promise<boolean> {
  if (database.dialect !== 'citus') return database.transaction(change)
  const isChanged = await database.transaction(async (sql) => {
    await waitForStep(sql, 'update')
    if (!(await change(sql))) return false
    await sql.query(markStatement)
    return true
  })
  if (isChanged) await wholeStep(database, 0)
  return isChanged
}

const markStatement = 'update index_cursor set step = pg_current_xact_id()::text::bigint'

type Look = BlockId & Readonly<{ step: bigint; shown: bigint }>

/** Returns `null` before the first leader. */
async function lookAt(sql: Sql): Promise<Look | null> {
  const [look] = await sql.query<Look>(lookStatement)
  return look ?? null
}

const lookStatement = `select c.number, ${hex('c.hash')} as hash, c.step, s.step as shown from index_cursor c, index_shown s`

const lookMs = 5
/** The writer of a step shows it within this time, or has ended. */
const writerMs = 100
const longestWaitMs = 3_000

/** Waits until the last step is shown, and shows it after `waitMs`. Throws DATABASE_UNAVAILABLE where a node does not commit it. */
async function wholeStep(sql: Sql, waitMs = writerMs): Promise<Look | null> {
  const began = performance.now()
  for (;;) {
    const look = await lookAt(sql)
    if (look === null || look.step === look.shown) return look
    const waited = performance.now() - began
    if (waited >= longestWaitMs)
      throw databaseUnavailable(new Error('a node has not committed the last step of the index'))
    if (waited >= waitMs && (await show(sql, look.step))) return { ...look, shown: look.step }
    await sleep(lookMs)
  }
}

/** Returns whether the step is shown. */
async function show(sql: Sql, step: bigint): Promise<boolean> {
  if (!(await isCommittedEverywhere(sql, step))) {
    await finishCommits(sql)
    return false
  }
  return (await sql.query(showStatement, [step])).length > 0
}

const showStatement = 'update index_shown s set step = c.step from index_cursor c where c.step = $1 returning 1'
