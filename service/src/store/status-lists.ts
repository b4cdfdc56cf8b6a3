/** The places of tokens in the status lists of signed passports (spec §9; Bitstring Status List 1.0): given once, never to another token. */
import type { Sql } from './database.ts'

/** `list` from 1, `index` from 0. */
type Place = Readonly<{ list: number; index: number }>

export function statusPlaceStore(sql: Sql) {
  async function counted(statement: string, values?: readonly unknown[]): Promise<number> {
    const [row] = await sql.query<{ taken: number }>(statement, values)
    return row?.taken ?? 0
  }
  return {
    async find(tokenId: bigint): Promise<Place | null> {
      const [row] = await sql.query<PlaceRow>('select * from status_place where token_id = $1::numeric', [
        tokenId.toString(),
      ])
      return row === undefined ? null : { list: row.list, index: row.entry }
    },
    /** False when the place is taken or the token has one. */
    async claim(tokenId: bigint, { list, index }: Place): Promise<boolean> {
      const values = [tokenId.toString(), list, index]
      return (await sql.query(claimStatement, values)).length > 0
    },
    /** How many places are taken in all lists together. */
    count: () => counted('select count(*)::int as taken from status_place'),
    /** How many places of one list are taken; never fewer than before. */
    size: (list: number) => counted('select count(*)::int as taken from status_place where list = $1', [list]),
    /** Who is in a list; nobody where there is no such list. */
    async members(list: number): Promise<{ readonly tokenId: bigint; readonly index: number }[]> {
      const rows = await sql.query<PlaceRow>('select * from status_place where list = $1', [list])
      return rows.map(({ token_id, entry }) => ({ tokenId: BigInt(token_id), index: entry }))
    },
  }
}

export type StatusPlaceStore = ReturnType<typeof statusPlaceStore>

type PlaceRow = { token_id: string; list: number; entry: number }

const claimStatement =
  'insert into status_place (token_id, list, entry) values ($1::numeric, $2, $3) on conflict do nothing returning token_id'
