/** The clock of the database, for statements that change distributed tables: Citus refuses functions of the time in these. */
import type { Sql } from '../database.ts'

/** Returns the present moment, less some days, as PostgreSQL writes it. */
export async function momentBefore(sql: Sql, days = 0): Promise<string> {
  const [row] = await sql.query<{ moment: string }>(momentStatement, [days])
  if (row === undefined) throw new Error('The database did not return its time.')
  return row.moment
}

const momentStatement = 'select (clock_timestamp() - make_interval(secs => $1::float8 * 86400))::text as moment'
