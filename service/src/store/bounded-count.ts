/** A count that gives up: an exact number within bounds, or none. */
import type { Database } from './database.ts'

/** The embedded database knows no timeout, and holds up the whole process while it counts. */
const bounds = { timeoutMs: 1_500, mostEmbedded: 100_000 }

/** How many rows a statement has; null where counting them takes longer than a page is worth. */
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

/** Did the database end a statement because it ran too long (SQLSTATE 57014)? */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014'
}
