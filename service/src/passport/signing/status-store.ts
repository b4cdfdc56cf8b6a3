/** The indexes of tokens in the status lists of signed passports (spec §9): each is given once, never to another token. */
import type { Sql } from '../../db/database.ts'

/** A list, from 1, and a bit of it, from 0. */
export type StatusIndex = { readonly list: number; readonly index: number }
export type StatusMember = { readonly tokenId: bigint; readonly index: number }

export type StatusStore = ReturnType<typeof statusStore>

export function statusStore(sql: Sql) {
  return {
    async find(tokenId: bigint): Promise<StatusIndex | null> {
      const [row] = await sql.query<Row>('select * from status_place where token_id = $1::numeric', [
        tokenId.toString(),
      ])
      return row === undefined ? null : { list: row.list, index: row.entry }
    },
    /** Returns false when the bit is taken or the token has one. */
    async claim(tokenId: bigint, { list, index }: StatusIndex): Promise<boolean> {
      const values = [tokenId.toString(), list, index]
      return (await sql.query(claimStatement, values)).length > 0
    },
    /** Returns the newest list and how many of its bits are taken, or null before the first. */
    async newest(): Promise<{ readonly list: number; readonly taken: number } | null> {
      const [row] = await sql.query<{ list: number; taken: number }>(newestListStatement)
      return row ?? null
    },
    /** Counts the taken bits of one list; the number never falls. */
    async size(list: number): Promise<number> {
      const [row] = await sql.query<{ taken: number }>(sizeStatement, [list])
      return row?.taken ?? 0
    },
    /** Returns a page of the members whose index is above `after`, in rising order. It is empty after the last. */
    async members(list: number, after: number): Promise<StatusMember[]> {
      const rows = await sql.query<Row>(pageStatement, [list, after])
      return rows.map(({ token_id, entry }) => ({ tokenId: BigInt(token_id), index: entry }))
    },
  }
}

type Row = { token_id: string; list: number; entry: number }

const claimStatement =
  'insert into status_place (token_id, list, entry) values ($1::numeric, $2, $3) on conflict do nothing returning token_id'
const sizeStatement = 'select count(*)::int as taken from status_place where list = $1'
/** A longer answer would keep the event loop for tens of milliseconds. */
const pageStatement = 'select * from status_place where list = $1 and entry > $2 order by entry limit 2000'
/** Earlier lists are not read, however many there are. */
export const newestListStatement = `select list, count(*)::int as taken from status_place
  where list = (select max(list) from status_place) group by list`
