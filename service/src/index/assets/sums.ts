/**
 * The sums of products by brand, state, report and day, and their names (spec §4.9). Each statement that changes products adds its
 * differences, because a distributed table has no statement triggers.
 */
import type { Sql } from '../../db/database.ts'

/** Returns what the triggers of earlier versions read: this transaction adds the sums itself. Call it before the first change. */
export async function keepSums(sql: Sql): Promise<void> {
  await sql.query(`select set_config('touchstone.sums', 'kept', true)`)
}

const columns = ['brand', 'verified', 'state', 'flags', 'created_at', 'name'] as const
const columnsOf = (table: string, prefix = '') =>
  columns.map((column) => `${table}.${column}${prefix && ` as ${prefix}${column}`}`).join(', ')

/** SQL for the columns that a statement returns of the rows that it inserted into `table`, or deleted from it. */
export const returned = (table: string): string => columnsOf(table)
/** SQL for the columns that an update returns of the rows `now`, and of the same rows before it, `was`. */
export const returnedBoth = (now: string, was: string): string => `${columnsOf(now)}, ${columnsOf(was, 'was_')}`

/** Formats a statement that changes products and adds the differences to the sums. It returns `n`, the number of rows that `change` returns. */
export function withSums(kind: 'insert' | 'update' | 'delete', change: string): string {
  const [now, was] = [
    `select ${columns.join(', ')}, 1 as n from changed`,
    `select ${columns.map((column) => `was_${column}`).join(', ')}, -1 from changed`,
  ]
  const gone = `select ${columns.join(', ')}, -1 as n from changed`
  const changes = { insert: now, update: `${now} union all ${was}`, delete: gone }[kind]
  return `with changed as (${change}),
  differences as (${changes}),
  counted as (
    insert into product_count (brand, verified, n) select brand, verified, sum(n) from differences group by 1, 2 having sum(n) <> 0),
  totalled as (
    insert into product_total (verified, n) select verified, sum(n) from differences group by 1 having sum(n) <> 0),
  grouped as (
    insert into product_group (dimension, key, n)
    select g.dimension, g.key, sum(n) from differences, groups_of(state, flags, created_at) g group by 1, 2 having sum(n) <> 0),
  named as (
    insert into product_name (name) select distinct d.name from differences d
    where n > 0 and name is not null and not exists (select from product_name p where p.name = d.name)
    order by 1 on conflict do nothing)
  select count(*)::int as n from changed`
}
