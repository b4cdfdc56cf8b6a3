/**
 * Puts the products of `bench:graphql` into the migrated tables of the index by set-based SQL. It inserts a million in well under two
 * minutes.
 */
import type { Database } from '../../service/src/db/database.ts'
import { modelOf } from '../lib/models.ts'

const modelCount = 20_000

/**
 * `products` products with the token ids 1, 2, 3 …, each a second younger than the one before. Every tenth has three transfers, two in five
 * are verified.
 */
export async function loadProducts(database: Database, products: number): Promise<void> {
  const models = Array.from({ length: Math.min(modelCount, products) }, (_, index) => modelOf(index))
  await database.query(
    "insert into metadata (hash, body) select decode(hash, 'hex'), body from unnest($1::text[], $2::text[]) m(hash, body)",
    [models.map(({ hash }) => hash), models.map(({ body }) => body)],
  )
  await withoutIndexes(database, async () => {
    await database.transaction(async (sql) => {
      await sql.query("set local work_mem = '512MB'") // the triggers that count products see all of them at once
      await sql.query(insertAssets, [
        products,
        models.map(({ hash }) => hash),
        models.map(({ name }) => name),
        models.map(({ brand }) => brand),
      ])
      await sql.query(insertTransfers, [products])
    })
  })
  await database.query(`insert into index_cursor (contract, number, hash, block_time, epoch, fed_epoch) values
    ('\\x5fbdb2315678afecb367f032d93f642f64180aa3', 2000, sha256('head'), clock_timestamp(), 1, 1) on conflict (one) do nothing`)
  for (const table of ['asset', 'transfer', 'metadata', 'product_count']) await database.exec(`vacuum analyze ${table}`)
}

/** Made anew afterwards, which costs a fraction of keeping them up row by row. Those of constraints stay. */
async function withoutIndexes(database: Database, load: () => Promise<void>): Promise<void> {
  const indexes = await database.query<{ name: string; text: string }>(`select i.indexrelid::regclass::text as name,
    pg_get_indexdef(i.indexrelid) as text from pg_index i where i.indrelid in ('asset'::regclass, 'transfer'::regclass)
    and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`)
  for (const { name } of indexes) await database.exec(`drop index ${name}`)
  await load()
  const make = async () => {
    for (let index = indexes.pop(); index !== undefined; index = indexes.pop())
      await database.exec(`set maintenance_work_mem = '512MB'; ${index.text}`)
  }
  await Promise.all([make(), make()])
}

const insertAssets = `insert into asset (token_id, owner, state, flags, metadata_hash, tag_hash, tag_id, name, brand, serial, tapped_at,
    created_at, updated_at, updated_block)
  select i, decode(lpad(to_hex(1 + i % 5000), 40, '0'), 'hex'), 1 + i % 4, 0, decode(m.hash, 'hex'),
    case when i % 4 > 0 then sha256(i::text::bytea) end, case when i % 4 > 0 then 'tag-' || i end, m.name, m.brand, 'SN' || i,
    case when i % 5 in (1, 2) then born end, born, born, i / 500
  from generate_series(1, $1::int) i
  cross join lateral (select timestamptz '2025-01-01' + i * interval '1 second' + (i % 1000) * interval '1 microsecond' as born) t
  join unnest($2::text[], $3::text[], $4::text[]) with ordinality m(hash, name, brand, n)
    on m.n = 1 + (i * 7) % cardinality($2::text[])
  order by i`

const insertTransfers = `insert into transfer (id, token_id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx, expires_at,
    settled_at, settled_tx)
  select a.token_id || '-' || nonce, a.token_id, a.pk, a.owner, sha256_address, status, at, sha256((a.token_id || '-' || nonce)::bytea),
    at + interval '72 hours', at + interval '1 hour', sha256((a.token_id || '+' || nonce)::bytea)
  from asset a cross join generate_series(1, 3) nonce
  cross join lateral (select substr(sha256((a.pk || ' to ' || nonce)::bytea), 1, 20) as sha256_address,
    case nonce when 2 then 'FAILED' else 'CONFIRMED' end as status, a.created_at + nonce * interval '1 day' as at) t
  where a.token_id <= $1::int and a.token_id % 10 = 1
  order by at`
