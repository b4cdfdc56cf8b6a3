/**
 * Fills the tables of one size of `bench:growth` by set-based SQL, as indexer, CLI and taps write them. A quarter of the products each is
 * MINTED, BOUND, ACTIVATED and CLAIMED, the last two tapped twice; every tenth was handed on three times.
 */
import type { Database } from '../../service/src/db/database.ts'
import { operator } from '../lib/registry-chain.ts'
import type { GrowthChain } from './chain.ts'
import { withoutIndexes } from './indexes.ts'
import { chipOf, tapsBegan, type Model } from './models.ts'

export const batchId = 'growth'
const rowsAtOnce = 250_000
const tables = ['asset', 'transfer', 'history', 'item', 'tag', 'tap', 'asset_tap', 'tap_log', 'tap_anomaly'] as const

export type GrowthData = {
  readonly products: number
  readonly models: readonly Model[]
  /** History and taps of one product in so many, the sampled ones among them. It is 1 for all, else divisible by 20. */
  readonly every: number
  readonly chain: Pick<GrowthChain, 'head' | 'contract'>
  readonly say: (what: string) => void
}

/** Gives the seconds that rows and indexes took. */
export async function loadGrowthData(
  database: Database,
  { products, models, every, chain, say }: GrowthData,
): Promise<{ readonly rows: number; readonly indexes: number }> {
  await database.query(
    "insert into metadata (hash, body) select decode(hash, 'hex'), body from unnest($1::text[], $2::text[]) m(hash, body)",
    [models.map(({ hash }) => hash), models.map(({ body }) => body)],
  )
  await database.exec(`create unlogged table model as select null::bytea as hash, ''::text as name, ''::text as brand, ''::text as gtin,
    0::int as n limit 0`)
  await database.query(
    `insert into model select decode(hash, 'hex'), name, brand, gtin, n
     from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality m(hash, name, brand, gtin, n)`,
    (['hash', 'name', 'brand', 'gtin'] as const).map((part) => models.map((model) => model[part])),
  )
  await database.exec('create unique index on model (n); analyze model; alter table asset disable trigger user')
  const perBlock = Math.ceil(products / (chain.head.number - 3))
  const began = performance.now()
  let rowsTook = 0
  await withoutIndexes(database, tables, async () => {
    for (let from = 1; from <= products; from += rowsAtOnce) {
      const range = [from, Math.min(products, from + rowsAtOnce - 1)]
      const insert = async (...statements: readonly (readonly [string, readonly unknown[]])[]) => {
        for (const [text, values] of statements) await database.query(text, [...range, ...values])
      }
      await Promise.all([
        insert([insertAssets, [models.length, perBlock]], [insertTransfers, [perBlock]]),
        insert([insertHistory, [models.length, perBlock, every]]),
        insert(
          [insertItems, [models.length]],
          [insertTags, []],
          [insertTaps, [every]],
          [insertFirstTaps, []],
          [insertTapLog, [every]],
          [insertAnomalies, [every]],
        ),
      ])
      if (range[1] !== products) say(`${range[1]?.toLocaleString('en')} products in`)
    }
    rowsTook = (performance.now() - began) / 1000
    say('rows in, indexes are made')
  })
  const { number, hash } = chain.head
  const place = [number, Buffer.from(hash.slice(2), 'hex')]
  await database.query(
    `insert into index_cursor (contract, number, hash, block_time) values ($1, $2, $3, clock_timestamp())`,
    [Buffer.from(chain.contract.slice(2), 'hex'), ...place],
  )
  await database.query('insert into index_block (number, hash) values ($1, $2)', place)
  await database.exec(`insert into product_count select brand, verified, count(*) from asset group by 1, 2;
    insert into product_total select verified, sum(n) from product_count group by 1;
    insert into product_name select distinct name from asset where name is not null;
    insert into product_group select g.dimension, g.key, count(*) from asset, groups_of(state, flags, created_at) g group by 1, 2;
    alter table asset enable trigger user; drop table model`)
  for (const table of [...tables, 'metadata', 'product_count', 'product_total', 'product_group', 'product_name'])
    await database.exec(`vacuum analyze ${table}`)
  return { rows: rowsTook, indexes: (performance.now() - began) / 1000 - rowsTook }
}

/** Gives a sampled product its real tag: the commitment that the chain has, and the batch's keys. */
export async function bindSamples(
  database: Database,
  ids: readonly number[],
  tagHashes: readonly string[],
): Promise<void> {
  const values = [ids, tagHashes.map((hash) => hash.slice(2))]
  const samples = `(select i, decode(hash, 'hex') as hash from unnest($1::int[], $2::text[]) s(i, hash)) s`
  await database.query(
    `update asset set tag_hash = s.hash, tag_id = '0x' || encode(s.hash, 'hex') from ${samples} where token_id = s.i`,
    values,
  )
  await database.query(`update history set data = s.hash from ${samples} where token_id = s.i and kind = 2`, values)
  for (const table of ['tap_log', 'tap_anomaly'])
    await database.query(`update ${table} set tag_hash = s.hash from ${samples} where tag_hash = ${tagOf}`, values)
}

const owner = `decode(lpad(to_hex(1 + i % 50), 40, '0'), 'hex')`
const tagOf = `sha256(('tag ' || i)::bytea)`
const born = `timestamptz '2025-01-01' + i * interval '1 second'`
const seen = `timestamptz '${new Date(tapsBegan).toISOString()}' + i * interval '0.2 seconds'`
const isTapped = 'i % 4 >= 2'
const isBound = 'i % 4 > 0'
const products = 'generate_series($1::int, $2::int) i'

const insertAssets = `insert into asset (token_id, owner, state, flags, metadata_hash, tag_hash, tag_id, name, brand, serial, gtin, tapped_at,
    created_at, updated_at, updated_block)
  select i, ${owner}, case when i % 100 = 50 then 5 else 1 + i % 4 end, case when i % 100 = 50 then 1 << (i / 100 % 5) else 0 end, m.hash, case when ${isBound} then ${tagOf} end,
    case when ${isBound} then '0x' || encode(${tagOf}, 'hex') end, m.name, m.brand, 'SN' || i, m.gtin,
    case when ${isTapped} then ${born} + interval '1 hour' end, ${born}, ${born} + (i % 4) * interval '1 day', 2 + i / $4::int
  from ${products} join model m on m.n = 1 + (i::bigint * 7) % $3::int order by i`

/** As the index names them: <tokenId>-<nonce>. */
const insertTransfers = `insert into transfer (id, token_id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx, expires_at,
    settled_at, settled_tx, message_hash)
  select a.token_id || '-' || nonce, a.token_id, a.pk, a.owner, substr(sha256(('to ' || i || ' ' || nonce)::bytea), 1, 20),
    case nonce when 2 then 'FAILED' else 'CONFIRMED' end, at, sha256(('tx ' || i || ' ' || 2 * nonce + 5)::bytea), at + interval '72 hours',
    at + interval '1 hour', sha256(('tx ' || i || ' ' || 2 * nonce + 6)::bytea), null
  from ${products} join asset a on a.token_id = i cross join generate_series(1, 3) nonce
  cross join lateral (select a.created_at + nonce * interval '10 days' + $3::int * interval '0 seconds' as at) t
  where i % 10 = 1 order by i`

/** Kinds of domain/registry-event.ts; `step` is the place of the event in the product's life. */
const insertHistory = `insert into history (block_number, log_index, token_id, kind, from_state, to_state, flags, from_addr, to_addr, actor,
    nonce, expiry, data, block_hash, tx_hash, ts)
  select 2 + i / $4::int, 16 * (i % $4::int) + step, i, kind, from_state, to_state, null, from_addr, to_addr,
    case when kind = 3 then '\\x${operator.slice(2)}'::bytea end, nonce, expiry, data, sha256(('block ' || i / $4::int)::bytea),
    sha256(('tx ' || i || ' ' || turn)::bytea), ${born} + turn * interval '1 hour'
  from ${products} join model m on m.n = 1 + (i::bigint * 7) % $3::int
  cross join lateral (values
    (0, 0, 9, null, null, '\\x0000000000000000000000000000000000000000'::bytea, ${owner}, null, null, null, true),
    (1, 0, 1, null, null, null, ${owner}, null, null, m.hash, true),
    (2, 0, 3, 0, 1, null, null, null, null, null, true),
    (3, 1, 2, null, null, null, null, null, null, ${tagOf}, ${isBound}),
    (4, 1, 3, 1, 2, null, null, null, null, null, ${isBound}),
    (5, 2, 3, 2, 3, null, null, null, null, null, i % 4 >= 2),
    (6, 3, 3, 3, 4, null, null, null, null, null, i % 4 = 3),
    (7, 3, 9, null, null, ${owner}, ${owner}, null, null, null, i % 4 = 3),
    (8, 7, 7, null, null, ${owner}, ${owner}, 1, 1800000000, ${tagOf}, i % 10 = 1),
    (9, 8, 4, null, null, ${owner}, ${owner}, null, null, null, i % 10 = 1),
    (10, 9, 7, null, null, ${owner}, ${owner}, 2, 1800000000, ${tagOf}, i % 10 = 1),
    (11, 10, 8, null, null, null, null, 2, null, null, i % 10 = 1),
    (12, 11, 7, null, null, ${owner}, ${owner}, 3, 1800000000, ${tagOf}, i % 10 = 1),
    (13, 12, 4, null, null, ${owner}, ${owner}, null, null, null, i % 10 = 1))
    e (step, turn, kind, from_state, to_state, from_addr, to_addr, nonce, expiry, data, happened)
  where happened and i % $5::int = 2 % $5::int order by i, step`

const insertItems = `insert into item (token_id, gtin, serial, registered_at) select i, m.gtin, 'SN' || i, ${born}
  from ${products} join model m on m.n = 1 + (i::bigint * 7) % $3::int order by i`

const insertTags = `insert into tag (uid, epoch, batch_id, last_counter, baseline_counter, token_id, registered_at)
  select ${chipOf}, 0, '${batchId}', case when ${isTapped} then 2 else 0 end, 0, i, ${born} from ${products} where ${isBound} order by i`

const insertTaps = `insert into tap (uid, epoch, counter, picc, first_seen, announced_at)
  select ${chipOf}, 0, counter, substr(sha256((i || ' ' || counter)::bytea), 1, 16), at, at
  from ${products} cross join generate_series(1, 2) counter
  cross join lateral (select clock_timestamp() - interval '60 days' + i * interval '0.2 seconds' as at) t where ${isTapped} and i % $3::int = 2 % $3::int order by i`

const insertFirstTaps = `insert into asset_tap (token_id, tapped_at) select i, ${born} + interval '1 hour' from ${products} where ${isTapped} order by i`

/** A twentieth of the presentations are replays, a fortieth suspected counterfeits; four in five have a country. */
const insertTapLog = `insert into tap_log (tag_hash, counter, outcome, country, hour, times, first_at, last_at)
  select ${tagOf}, counter, case when n % 20 = 0 then 'REPLAYED' when n % 40 = 1 then 'COUNTERFEIT_SUSPECTED' else 'FRESH' end,
    (array['FR', 'DE', 'IT', 'PT'])[1 + n % 5], date_trunc('hour', at), 1, at, at
  from ${products} cross join generate_series(1, 2) counter
  cross join lateral (select i / 4 * 4 + i % 2 * 2 + counter as n, ${seen} as at) t where ${isTapped} and i % $3::int = 2 % $3::int order by i`

const insertAnomalies = `insert into tap_anomaly (tag_hash, kind, day, counter, last_counter, countries, times, found_at)
  select ${tagOf}, (array['TWO_PLACES', 'COUNTER_JUMP', 'MANY_REPLAYS'])[1 + i / 4 % 3], (${seen})::date, 60, 2, array['DE', 'FR'], 5, ${seen}
  from ${products} where ${isTapped} and i % 5 = 2 and i % $3::int = 2 % $3::int order by i`
