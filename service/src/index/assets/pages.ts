/** Pages of tokens, for work on all of them that no single statement may do. */
import type { Sql } from '../../db/database.ts'

const rowsAtOnce = 5_000

/**
 * Yields the tokens of the rows after `first` in pages. `statement` takes the last place and a limit; `key` is the place of a row that is
 * not in the order of the tokens.
 */
export async function* tokensInPages(sql: Sql, statement: string, first: string): AsyncGenerator<string[]> {
  for (let after: string | undefined = first; after !== undefined;) {
    const rows: { token_id: string; key?: string }[] = await sql.query(statement, [after, rowsAtOnce])
    if (rows.length > 0) yield rows.map(({ token_id }) => token_id)
    const last = rows.at(-1)
    after = last?.key ?? last?.token_id
  }
}
