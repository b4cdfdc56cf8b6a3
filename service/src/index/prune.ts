/** Changes of the index that time brings and no block (spec §3, §6): offers expire, sums are compacted, old rows are deleted. */
import type { Sql } from '../db/database.ts'
import { announce, type StatusChanges } from './transfers.ts'

/** Runs in a transaction. Of the blocks below `keepFrom`, one in 4096 and the first of every run are kept. */
export async function pruneIndex(sql: Sql, keepFrom: bigint): Promise<void> {
  await sql.query(deleteBlocksStatement, [keepFrom])
  for (const statement of compactStatements) await sql.query(statement)
  await sql.query(`delete from outbox where created_at < clock_timestamp() - interval '1 hour'`)
  const expired = await sql.query<{ id: string; token_id: string }>(expireStatement)
  const changes: StatusChanges = new Map(
    expired.map(({ id, token_id }) => [id, { tokenId: token_id, before: 'PENDING', after: 'FAILED', at: 0n }]),
  )
  await announce(sql, changes, 0n)
}

/** The end of a range has no block before it and is kept: a deep reorganisation can be followed back to it. */
const deleteBlocksStatement = `delete from index_block b where number < $1 and number % 4096 <> 0
  and exists (select from index_block p where p.number = b.number - 1)`

/** Rows that were added several times become one row with their sum, so readers and other writers notice nothing. */
const compactStatements = [
  `with many as (select array_agg(ctid) as places from product_count group by brand, verified having count(*) > 4),
    deleted as (delete from product_count where ctid in (select unnest(places) from many) returning brand, verified, n)
  insert into product_count (brand, verified, n)
  select brand, verified, sum(n) from deleted group by brand, verified having sum(n) <> 0`,
  `with deleted as (
    delete from product_total where (select count(*) from product_total) > 100 returning verified, n)
  insert into product_total (verified, n)
  select verified, sum(n) from deleted group by verified having sum(n) <> 0`,
]

/** An offer that expired failed at that time, as in the projection of events. */
const expireStatement = `update transfer t set status = 'FAILED', settled_at = t.expires_at from asset a
  where a.pk = t.asset_pk and t.pk in (
    select pk from transfer where status = 'PENDING'
      and expires_at < greatest(clock_timestamp(), (select block_time from index_cursor))
    order by expires_at limit 1000)
  returning t.id, a.token_id`
