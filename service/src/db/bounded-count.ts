/** Counts rows within bounds: the number is exact, or there is none. */
import type { Database, Sql } from './database.ts'
import { isTimeout } from './errors.ts'

/** The embedded database has no statement timeout, and a count there blocks the whole process. */
const bounds = { timeoutMs: 1_500, mostEmbedded: 100_000 }

/** Returns how many rows a statement has; `null` where the count would take too long. */
export function countWithin(
  { dialect, transaction }: Pick<Database, 'transaction' | 'dialect'>,
  rows: string,
  values: readonly unknown[],
  given = bounds,
): Promise<number | null> {
  return nullAfterTimeout(transaction((sql) => countIn({ ...sql, dialect }, rows, values, given)))
}

/** Counts in a transaction of the caller. Throws the timeout, which ends the transaction. */
export async function countIn(
  { dialect, query }: Sql & Pick<Database, 'dialect'>,
  rows: string,
  values: readonly unknown[],
  { timeoutMs, mostEmbedded } = bounds,
): Promise<number | null> {
  const limit = dialect === 'pglite' ? `limit ${mostEmbedded + 1}` : ''
  await query(`set local statement_timeout = ${timeoutMs}`)
  const [row] = await query<{ n: bigint }>(`select count(*) n from (${rows} ${limit}) counted`, values)
  const n = Number(row?.n ?? 0n)
  return dialect === 'pglite' && n > mostEmbedded ? null : n
}

/** Returns `null` for a count that took too long. */
export async function nullAfterTimeout(count: Promise<number | null>): Promise<number | null> {
  try {
    return await count
  } catch (error) {
    if (isTimeout(error)) return null
    throw error
  }
}
