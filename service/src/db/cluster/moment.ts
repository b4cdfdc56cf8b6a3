/** The clock of the database, for statements that change distributed tables: Citus refuses functions of the time in these. */
import { earlierClock } from '../columns.ts'
import type { Sql } from '../database.ts'

/** Returns the present moment, less some days, as PostgreSQL writes it. */
export async function momentBefore(sql: Sql, days = 0): Promise<string> {
  return read(sql, momentStatement, [days])
}

/**
 * Returns the moment before which rows are old that are kept for some days, as `momentBefore` does. `now` is the clock of this machine in unix
 * milliseconds.
 */
export async function startOfRetention(sql: Sql, days: number, now: number): Promise<string> {
  return read(sql, retentionStatement, [days, now / 1_000])
}

const momentStatement = 'select (clock_timestamp() - make_interval(secs => $1::float8 * 86400))::text as moment'
const retentionStatement = `select (${earlierClock('$2')} - make_interval(secs => $1::float8 * 86400))::text as moment`

async function read(sql: Sql, statement: string, values: readonly unknown[]): Promise<string> {
  const [row] = await sql.query<{ moment: string }>(statement, values)
  if (row === undefined) throw new Error('The database did not return its time.')
  return row.moment
}
