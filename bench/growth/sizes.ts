/** How much of the disk each table of a database takes, and each of its indexes. */
import type { Sql } from '../../service/src/db/database.ts'

/** Bytes for each product. */
export type TableSize = {
  readonly name: string
  readonly rows: number
  readonly table: number
  readonly indexes: readonly { readonly name: string; readonly bytes: number }[]
}

/** Those that take at least a byte for each product, the largest first. */
export async function tableSizes(sql: Sql, products: number): Promise<TableSize[]> {
  const tables = await sql.query<{ name: string; rows: bigint; bytes: bigint }>(
    `select relname as name, greatest(reltuples, 0)::bigint as rows, pg_table_size(oid) as bytes from pg_class
     where relkind = 'r' and relnamespace = 'public'::regnamespace order by pg_total_relation_size(oid) desc`,
  )
  const indexes = await sql.query<{ at: string; name: string; bytes: bigint }>(
    `select indrelid::regclass::text as at, indexrelid::regclass::text as name, pg_relation_size(indexrelid) as bytes
     from pg_index order by bytes desc`,
  )
  return tables
    .filter(({ bytes }) => Number(bytes) >= products)
    .map(({ name, rows, bytes }) => ({
      name,
      rows: Number(rows) / products,
      table: Number(bytes) / products,
      indexes: indexes
        .filter(({ at }) => at === name)
        .map((one) => ({ name: one.name, bytes: Number(one.bytes) / products })),
    }))
}
