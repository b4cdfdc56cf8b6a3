/** The history of a token from the index (spec §3), with the block to which it is complete. */
import type { Sql } from './database.ts'
import { hexOf } from './index-columns.ts'
import { readCursor, type Cursor, type Place } from './index-cursor.ts'
import { eventColumns, eventOfRow, type EventRow, type IndexedEvent } from './index-events.ts'

/** `rows` are in the order of the chain; `cursor` is the block to which there are no others. */
type IndexedHistory = Readonly<{ cursor: Place; rows: readonly IndexedEvent[] }>

export function historyStore(sql: Sql) {
  return {
    /** `null` before the first leader of the index. */
    cursor: (): Promise<Cursor | null> => readCursor(sql),
    /** The first `limit` events of a token, read in one snapshot with the cursor; `null` before the first leader. */
    async of(tokenId: bigint, limit = 1_000): Promise<IndexedHistory | null> {
      const rows = await sql.query<Row>(historyStatement, [tokenId.toString(), limit])
      const [first] = rows
      if (first === undefined) return null
      const cursor = { number: first.cursor_number, hash: hexOf(first.cursor_hash) }
      // A token without events still has one row, of the cursor alone.
      return { cursor, rows: rows.flatMap((row) => (row.kind === null ? [] : [eventOfRow(row)])) }
    },
  }
}

export type HistoryStore = ReturnType<typeof historyStore>

type Row = { cursor_number: bigint; cursor_hash: Uint8Array } & (EventRow | { kind: null })

const historyStatement = `select c.number as cursor_number, c.hash as cursor_hash, h.*
  from index_cursor c left join lateral (
    select ${eventColumns} from history where token_id = $1::numeric order by block_number, log_index limit $2) h on true
  order by h.block_number, h.log_index`
