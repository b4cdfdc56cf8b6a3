/**
 * A change of the schema while others are at work: it waits for its locks only briefly, because whoever comes after it waits behind
 * it. What cannot have them gives all of them back, and tries again.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Database, Sql } from './database.ts'

export type LockOptions = Readonly<{
  /** For how long it is tried, in milliseconds. */
  patienceMs?: number
  /** Every few seconds while it is tried. */
  onWaiting?: (what: string, waitedMs: number) => void
}>

/** What others wait at the most behind a try, and the rest they get between two. */
const tryMs = 400
const restMs = [300, 700] as const
const tellMs = 3_000
/** Of one statement, such as an index over a large table. */
const statementMs = 600_000

/** Runs `work` in a transaction that has its locks, or throws one sentence when it had none of them for so long. */
export async function withLocks<T>(
  database: Pick<Database, 'transaction'>,
  work: (sql: Sql) => Promise<T>,
  { what, patienceMs = 120_000, onWaiting }: LockOptions & { readonly what: string },
): Promise<T> {
  const began = performance.now()
  let told = -Infinity
  for (;;) {
    try {
      return await database.transaction(async (sql) => {
        await sql.query(`set local lock_timeout = ${tryMs}`)
        await sql.query(`set local statement_timeout = ${statementMs}`)
        return work(sql)
      })
    } catch (error) {
      if (!isLocked(error)) throw error
      const waited = performance.now() - began
      if (waited > patienceMs) throw new Error(sentenceOf(what, waited), { cause: error })
      if (performance.now() - told > tellMs) {
        told = performance.now()
        onWaiting?.(what, waited)
      }
      await delay(restMs[0] + Math.random() * restMs[1])
    }
  }
}

function sentenceOf(what: string, waitedMs: number): string {
  return `${what} had no chance for ${Math.round(waitedMs / 1000)} s: another process migrates, or a long transaction holds a table that it changes. Nothing was changed by it. Look into pg_stat_activity, then run touchstone migrate again.`
}

/** SQLSTATE 55P03 is a lock that was not given in time, 40P01 a deadlock that this transaction was chosen to end. */
function isLocked(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === '55P03' || error.code === '40P01')
}
