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

type NodeSize = {
  readonly node: string
  /** Bytes for each product, of all that the database has there. */
  readonly bytes: number
  /** Tables of at least ten bytes for each product, with their indexes and their shards there, the largest first. */
  readonly tables: readonly { readonly name: string; readonly bytes: number }[]
}

/** Those of each node of a cluster, the coordinator first. */
export async function nodeSizes(sql: Sql, products: number): Promise<NodeSize[]> {
  const rows = await sql.query<{ node: string; result: string }>(nodeSizesStatement)
  return rows.map(({ node, result }) => {
    const { bytes, tables } = JSON.parse(result) as { bytes: number; tables: Record<string, number> }
    const large = Object.entries(tables).filter(([, size]) => size >= 10 * products)
    return {
      node,
      bytes: bytes / products,
      tables: large.map(([name, size]) => ({ name, bytes: size / products })).toSorted((a, b) => b.bytes - a.bytes),
    }
  })
}

const nodeSizesStatement = `select case groupid when 0 then 'coordinator' else 'worker ' || groupid end as node, result
  from run_command_on_all_nodes($$
    select json_build_object('bytes', pg_database_size(current_database()), 'tables', json_object_agg(name, bytes))::text from (
      select regexp_replace(relname, '_\\d{6,}$', '') as name, sum(pg_total_relation_size(oid))::bigint as bytes from pg_class
      where relkind = 'r' and relnamespace = 'public'::regnamespace group by 1) sizes $$) r
  join pg_dist_node n on n.nodeid = r.nodeid order by groupid`
