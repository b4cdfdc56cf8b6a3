/** What all instances know of the issuer's keys (spec §9): id and public half. The private halves are in the key file only. */
import type { Sql } from './database.ts'

type Row = Readonly<{ id: string; publicKey: string }>

export function issuerKeyStore(sql: Sql) {
  return {
    list: () => sql.query<Row>('select id, public_key as "publicKey" from issuer_key'),
    /** All in one statement, so that of two instances one is first with every key. What is known stays, with whatever public half. */
    async add(keys: readonly Row[]): Promise<void> {
      await sql.query(addStatement, [keys.map(({ id }) => id), keys.map(({ publicKey }) => publicKey)])
    },
  }
}

const addStatement =
  'insert into issuer_key (id, public_key) select * from unnest($1::text[], $2::text[]) order by 1 on conflict do nothing'
