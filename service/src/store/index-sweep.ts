/** What time changes in the index, though no block does: offers run out (spec §3, §6), sums are added up, old rows go. */
import type { Sql } from './database.ts'
import { announce, type StatusChanges } from './index-transfers.ts'

/** Runs in a transaction. `keepFrom`: blocks below it are forgotten, but for one in 4096 and the first of every run. */
export async function sweepIndex(sql: Sql, keepFrom: bigint): Promise<void> {
  await sql.query(forgetBlocksStatement, [keepFrom])
  for (const statement of sumStatements) await sql.query(statement)
  await sql.query(`delete from outbox where created_at < clock_timestamp() - interval '1 hour'`)
  const ended = await sql.query<{ id: string; token_id: string }>(runOutStatement)
  const changes: StatusChanges = new Map(
    ended.map(({ id, token_id }) => [id, { tokenId: token_id, before: 'PENDING', after: 'FAILED', at: 0n }]),
  )
  await announce(sql, changes, 0n)
}

/** Ends of ranges stand alone, so they stay: they are how far a deep reorganisation can be followed. */
const forgetBlocksStatement = `delete from index_block b where number < $1 and number % 4096 <> 0
  and exists (select from index_block p where p.number = b.number - 1)`

/** Sums of sums are the same sums, so readers and other writers notice nothing. Only what has changed several times is added up. */
const sumStatements = [
  `with many as (select array_agg(ctid) as places from product_count group by brand, verified having count(*) > 4),
    gone as (delete from product_count where ctid in (select unnest(places) from many) returning brand, verified, n)
  insert into product_count (brand, verified, n)
  select brand, verified, sum(n) from gone group by brand, verified having sum(n) <> 0`,
  `with gone as (
    delete from product_total where (select count(*) from product_total) > 100 returning verified, n)
  insert into product_total (verified, n)
  select verified, sum(n) from gone group by verified having sum(n) <> 0`,
]

/** As in the fold of events: an offer that ran out failed when it did. */
const runOutStatement = `update transfer t set status = 'FAILED', settled_at = t.expires_at from asset a
  where a.pk = t.asset_pk and t.pk in (
    select pk from transfer where status = 'PENDING'
      and expires_at < greatest(clock_timestamp(), (select block_time from index_cursor))
    order by expires_at limit 1000)
  returning t.id, a.token_id`
