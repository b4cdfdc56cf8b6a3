/** Counts rows within bounds: the number is exact, or there is none. */
import type { Database } from './database.ts'
import { isTimeout } from './errors.ts'

/** The embedded database has no statement timeout, and a count there blocks the whole process. */
const bounds = { timeoutMs: 1_500, mostEmbedded: 100_000 }

/** Returns how many rows a statement has; `null` where the count would take too long. */
export async function countWithin(
  { dialect, transaction }: Pick<Database, 'transaction' | 'dialect'>,
  rows: string,
  values: readonly unknown[],
  { timeoutMs, mostEmbedded } = bounds,
): Promise<number | null> {
  const limit = dialect === 'pglite' ? `limit ${mostEmbedded + 1}` : ''
  try {
    const n = await transaction(async (sql) => {
      await sql.query(`set local statement_timeout = ${timeoutMs}`)
      const [row] = await sql.query<{ n: bigint }>(`select count(*) n from (${rows} ${limit}) counted`, values)
      return Number(row?.n ?? 0n)
    })
    return dialect === 'pglite' && n > mostEmbedded ? null : n
  } catch (error) {
    if (isTimeout(error)) return null
    throw error
  }
}
