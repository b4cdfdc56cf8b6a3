/** Many rows of every list, for tests of plans. */
import type { Database } from '../../../src/db/database.ts'

export function tagOf(n: number): `0x${string}` {
  return `0x${n.toString(16).padStart(64, '0')}`
}

/** Adds 20,000 taps of new tags. */
export async function fillTaps(database: Database, at: string): Promise<void> {
  await database.exec(`with t as (select gen_random_uuid() as id from generate_series(1, 20000)),
      tags as (insert into tag (uid, epoch, batch_id, last_counter) select substr(uuid_send(id), 1, 7), 0, 'a', 1 from t)
    insert into tap (uid, epoch, counter, picc, first_seen) select substr(uuid_send(id), 1, 7), 0, 1, uuid_send(id), ${at} from t`)
}

/** Adds products with these numbers, each with a transfer, events, announcements and taps. */
export async function fill(database: Database, from: number, to: number): Promise<void> {
  const rows = [from, to]
  await database.query(
    `insert into asset (token_id, owner, state, flags, gtin, serial, tag_hash, tag_id, name, brand, tapped_at, created_at, updated_at, updated_block)
     select n, decode(lpad(to_hex(n % 5000), 40, '0'), 'hex'), 1 + n % 4, case when n % 500 = 0 then 2 else 0 end,
       case when n % 100 = 7 then '09506000000007' end, 'SN-' || n % 20000, case when n % 50 > 0 then decode(lpad(to_hex(n), 64, '0'), 'hex') end, 'TAG-' || n,
       'Watch number ' || n, 'Brand ' || n % 200, case when n % 10 = 0 then now() end,
       '2026-01-01'::timestamptz + n * interval '1 second', '2026-03-01'::timestamptz - n * interval '1 second', n
     from generate_series($1::int, $2::int) n`,
    rows,
  )
  await database.query(
    `insert into transfer (id, token_id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx, expires_at)
     select token_id || '-1', token_id, pk, owner, owner,
       case when token_id % 100 = 0 then 'PENDING' when token_id % 1000 = 1 then 'FAILED' else 'CONFIRMED' end, created_at,
       decode(repeat('ab', 32), 'hex'), case when token_id % 5000 = 0 then '2026-01-01'::timestamptz else '9999-01-01' end
     from asset where token_id between $1::int and $2::int`,
    rows,
  )
  await database.query(
    `insert into history (block_number, log_index, token_id, kind, block_hash, tx_hash, ts)
     select n, 0, n % 20000, 3, decode(repeat('ab', 32), 'hex'), decode(repeat('cd', 32), 'hex'), now()
     from generate_series($1::int, $2::int) n`,
    rows,
  )
  await database.query(
    `insert into outbox (topic, kind, token_id, payload, created_at)
     select case when n % 10 = 0 then 'chain' else 'tap' end, case when n % 20 = 0 then 'REGISTERED' when n % 20 = 10 then case when n < 70000 then 'OWNER_CHANGED' else 'REGISTERED' end else 'VERIFIED' end,
       n % 50000, '{}', now() - interval '1 hour'
     from generate_series($1::int, $2::int) n`,
    rows,
  )
  await database.query(
    `insert into tap_log (tag_hash, counter, outcome, country, hour, times, first_at, last_at)
     select decode(lpad(to_hex(n), 64, '0'), 'hex'), 1,
       case when n % 20 = 0 then 'REPLAYED' when n % 1000 = 1 then 'COUNTERFEIT_SUSPECTED' else 'FRESH' end,
       case when n % 1000 = 0 then 'PT' else (array['FR', 'DE', 'IT'])[1 + n % 4] end, '2026-01-01', 1, at, at
     from generate_series($1::int, $2::int) n cross join lateral (select '2026-01-01'::timestamptz + n * interval '1 second' as at) t`,
    rows,
  )
  await database.query(
    `insert into tap_anomaly (tag_hash, kind, day, found_at)
     select decode(lpad(to_hex(n), 64, '0'), 'hex'), case when n % 1000 = 0 then 'MANY_REPLAYS' else 'COUNTER_JUMP' end, '2026-01-01',
       '2026-01-01'::timestamptz + n * interval '1 second'
     from generate_series($1::int, $2::int) n`,
    rows,
  )
}
