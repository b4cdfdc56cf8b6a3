/** The newest state of every token (spec §2.9), with what the operator knows of it: the table `asset`. */
import type { Sql } from './database.ts'
import { bytes, numbers, secondOf, texts } from './index-columns.ts'
import type { AssetChange } from './index-fold.ts'
import { productTexts } from './index-texts.ts'

const zeroAddress = `0x${'0'.repeat(40)}` as const

/** Adds tokens that were minted and changes the others. */
export async function storeAssets(sql: Sql, changes: readonly AssetChange[]): Promise<void> {
  const minted = changes.filter((change) => change.minted !== null)
  const others = changes.filter((change) => change.minted === null)
  if (minted.length > 0) {
    await sql.query(linkStatement, [
      numbers(minted.map(({ tokenId }) => tokenId)),
      bytes(minted.map((change) => change.minted?.transactionHash ?? null)),
    ])
    const made = minted.map((change) => ({
      ...change,
      owner: change.owner ?? zeroAddress,
      state: change.state ?? 0,
      flags: change.flags ?? 0,
    }))
    await sql.query(insertStatement, [
      ...(await columnsOf(sql, made)),
      numbers(made.map(({ minted: mint, time }) => secondOf(mint?.time ?? time))),
    ])
  }
  if (others.length > 0) await changeAssets(sql, others)
}

/** Changes tokens that are there. */
export async function changeAssets(sql: Sql, changes: readonly AssetChange[]): Promise<void> {
  if (changes.length > 0) await sql.query(updateStatement, await columnsOf(sql, changes))
}

async function columnsOf(sql: Sql, changes: readonly AssetChange[]): Promise<string[]> {
  const hashes = new Set(changes.flatMap(({ metadataHash }) => metadataHash ?? []))
  const found = hashes.size === 0 ? new Map<never, never>() : await productTexts(sql, hashes)
  const products = changes.map(({ metadataHash }) => (metadataHash === null ? undefined : found.get(metadataHash)))
  return [
    numbers(changes.map(({ tokenId }) => tokenId)),
    bytes(changes.map(({ owner }) => owner)),
    numbers(changes.map(({ state }) => state)),
    numbers(changes.map(({ flags }) => flags)),
    bytes(changes.map(({ metadataHash }) => metadataHash)),
    bytes(changes.map(({ tagHash }) => tagHash)),
    texts(products.map((product) => product?.name ?? null)),
    texts(products.map((product) => product?.brand ?? null)),
    numbers(changes.map(({ time }) => secondOf(time))),
    numbers(changes.map(({ block }) => block)),
  ]
}

/** The registration whose mint it is gets the token, and its item; the mint may be any of the transactions of its operation. */
const linkStatement = `with minted as (select * from unnest($1::numeric[], $2::bytea[]) m (token_id, tx_hash)),
  signed as (
    select m.token_id, o.idempotency_key from minted m join operation o using (tx_hash)
    union all
    select m.token_id, o.idempotency_key
      from minted m join replaced_transaction t using (tx_hash) join operation o on o.pk = t.operation_pk),
  linked as (
    update registration r set token_id = s.token_id
    from (select distinct on (idempotency_key) token_id, substr(idempotency_key, 10) as key from signed
      where idempotency_key like 'register:%' order by idempotency_key, token_id) s
    where r.idempotency_key = s.key and r.token_id is null
    returning r.token_id, r.gtin, r.serial)
  insert into item (token_id, gtin, serial)
  select token_id, gtin, serial from linked where gtin is not null and serial is not null
  on conflict do nothing`

const changesTable = `unnest($1::numeric[], $2::bytea[], $3::smallint[], $4::smallint[],
    $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::bigint[], $10::bigint[]`
const changesColumns = `token_id, owner, state, flags, metadata_hash, tag_hash, name, brand, changed, block`

const zeroHash = `'\\x${'00'.repeat(32)}'::bytea`

/** In the order of the mints, which \`pk\` keeps. */
const insertStatement = `insert into asset (token_id, owner, state, flags, metadata_hash, tag_hash, name, brand,
    tag_id, serial, gtin, tapped_at, created_at, updated_at, updated_block)
  select c.token_id, c.owner, c.state, c.flags, nullif(c.metadata_hash, ${zeroHash}), c.tag_hash, c.name, c.brand,
    coalesce(r.tag_id, '0x' || encode(c.tag_hash, 'hex')), coalesce(i.serial, r.serial), coalesce(i.gtin, r.gtin),
    t.tapped_at, to_timestamp(c.minted), to_timestamp(c.changed), c.block
  from ${changesTable}, $11::bigint[]) with ordinality c (${changesColumns}, minted, place)
  left join registration r on r.token_id = c.token_id
  left join item i on i.token_id = c.token_id
  left join asset_tap t on t.token_id = c.token_id
  order by c.place
  on conflict (token_id) do nothing`

const updateStatement = `update asset a set
    owner = coalesce(c.owner, a.owner), state = coalesce(c.state, a.state), flags = coalesce(c.flags, a.flags),
    metadata_hash = case when c.metadata_hash is null then a.metadata_hash else nullif(c.metadata_hash, ${zeroHash}) end,
    name = case when c.metadata_hash is null then a.name else c.name end,
    brand = case when c.metadata_hash is null then a.brand else c.brand end,
    tag_hash = case when c.tag_hash is null then a.tag_hash else nullif(c.tag_hash, ${zeroHash}) end,
    tag_id = case when c.tag_hash is null then a.tag_id else coalesce(
      (select r.tag_id from registration r where r.token_id = a.token_id),
      '0x' || encode(nullif(c.tag_hash, ${zeroHash}), 'hex')) end,
    updated_at = to_timestamp(c.changed), updated_block = c.block
  from ${changesTable}) c (${changesColumns})
  where a.token_id = c.token_id`
