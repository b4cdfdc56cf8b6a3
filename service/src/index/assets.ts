/** The newest state of every token (spec §2.9), with what the operator has registered for it: the table `asset`. */
import { type Hex, metadataHashOf, untrustedOf } from '@touchstone/verdict'
import { bytes, hexToBytes, numbers, texts, zeroHashSql } from '../db/columns.ts'
import type { Database, Sql } from '../db/database.ts'
import { clampSeconds } from '../domain/chain-index.ts'
import { parseJson } from '../lib/json.ts'
import type { AssetChange } from './project.ts'

const zeroAddress = `0x${'0'.repeat(40)}` as const

const zeroHash = `0x${'0'.repeat(64)}` as const

/** Completes a projection of all events of a token: what no event set is not there. */
export function withoutGaps(change: AssetChange): AssetChange {
  const { state, flags, metadataHash, tagHash } = change
  return {
    ...change,
    state: state ?? 0,
    flags: flags ?? 0,
    metadataHash: metadataHash ?? zeroHash,
    tagHash: tagHash ?? zeroHash,
  }
}

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
      numbers(made.map(({ minted: mint, time }) => clampSeconds(mint?.time ?? time))),
    ])
  }
  await updateAssets(sql, others)
}

/** Returns those of the tokens that have no row. */
export async function missingTokens(sql: Sql, tokenIds: readonly string[]): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(missingStatement, [numbers(tokenIds)])
  return rows.map(({ id }) => id)
}

const missingStatement = `select k.id from unnest($1::numeric[]) k (id)
  where not exists (select from asset where token_id = k.id)`

/** Waits for a step that is being written: later reads see it, and the next step sees earlier writes. */
export async function waitForStep(sql: Sql): Promise<void> {
  await sql.query('select 1 from index_cursor for share')
}

/** Changes tokens that are stored. */
export async function updateAssets(sql: Sql, changes: readonly AssetChange[]): Promise<void> {
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
    numbers(changes.map(({ time }) => clampSeconds(time))),
    numbers(changes.map(({ block }) => block)),
  ]
}

/** Gives tokens to the registrations that minted them, and their items; the mint may be any transaction of the operation. */
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

/** In the order of the mints, which `pk` keeps. */
const insertStatement = `insert into asset (token_id, owner, state, flags, metadata_hash, tag_hash, name, brand,
    tag_id, serial, gtin, tapped_at, created_at, updated_at, updated_block)
  select c.token_id, c.owner, c.state, c.flags, nullif(c.metadata_hash, ${zeroHashSql}), c.tag_hash, c.name, c.brand,
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
    metadata_hash = case when c.metadata_hash is null then a.metadata_hash else nullif(c.metadata_hash, ${zeroHashSql}) end,
    name = case when c.metadata_hash is null then a.name else c.name end,
    brand = case when c.metadata_hash is null then a.brand else c.brand end,
    tag_hash = case when c.tag_hash is null then a.tag_hash else nullif(c.tag_hash, ${zeroHashSql}) end,
    tag_id = case when c.tag_hash is null then a.tag_id else coalesce(
      (select r.tag_id from registration r where r.token_id = a.token_id),
      '0x' || encode(nullif(c.tag_hash, ${zeroHashSql}), 'hex')) end,
    updated_at = to_timestamp(c.changed), updated_block = c.block
  from ${changesTable}) c (${changesColumns})
  where a.token_id = c.token_id`

/** Name and brand of supplier text, cleaned before they are stored (spec §2.3), because GraphQL searches and sorts by them. */
type ProductText = Readonly<{ name: string | null; brand: string | null }>

/** Metadata may have 16 kB each, so not all are in memory at once. */
const hashesAtOnce = 500

/** Returns the texts of the metadata that is stored; a row that was altered in the database counts as missing. */
export async function productTexts(sql: Sql, hashes: ReadonlySet<Hex>): Promise<Map<Hex, ProductText>> {
  const found = new Map<Hex, ProductText>()
  const all = [...hashes]
  for (let at = 0; at < all.length; at += hashesAtOnce) {
    const asked = bytes(all.slice(at, at + hashesAtOnce))
    for (const { body } of await sql.query<{ body: string }>(bodiesStatement, [asked])) {
      const hash = metadataHashOf(body)
      if (hashes.has(hash)) found.set(hash, textOf(body))
    }
  }
  return found
}

const bodiesStatement = 'select body from metadata where hash in (select unnest($1::bytea[]))'

function textOf(body: string): ProductText {
  const { name = null, brand = null } = untrustedOf(parseJson(body))
  return { name, brand }
}

/** A whole batch of tokens may share one metadata hash. */
const rowsAtOnce = 5_000

/** Updates the names and brands of the tokens with this metadata hash. Call it once the metadata is committed. */
export async function refreshAssetText(database: Pick<Database, 'transaction'>, hash: Hex): Promise<void> {
  // In a transaction, so that no step of the index begins to write the same rows in another order.
  for (let changed = rowsAtOnce; changed === rowsAtOnce;)
    changed = await database.transaction((sql) => refreshSome(sql, hash))
}

async function refreshSome(sql: Sql, hash: Hex): Promise<number> {
  await waitForStep(sql)
  const known = await sql.query('select 1 from asset where metadata_hash = $1 limit 1', [hexToBytes(hash)])
  if (known.length === 0) return 0 // most metadata comes before its token
  const text = (await productTexts(sql, new Set([hash]))).get(hash)
  if (text === undefined) return 0
  return (await sql.query(textStatement, [hexToBytes(hash), text.name, text.brand, rowsAtOnce])).length
}

const textStatement = `update asset set name = $2, brand = $3 where pk in (
    select pk from asset where metadata_hash = $1 and (name, brand) is distinct from ($2, $3) limit $4)
  returning 1`

/** Updates GTIN, serial and tag id of a token. Call it once its item or registration is committed. */
export async function refreshAssetItem(sql: Sql, tokenId: bigint | string): Promise<void> {
  await waitForStep(sql)
  await sql.query(itemStatement, [tokenId.toString()])
}

const itemStatement = `update asset a set serial = n.serial, gtin = n.gtin, tag_id = n.tag_id
  from (
    select coalesce(i.serial, r.serial) as serial, coalesce(i.gtin, r.gtin) as gtin,
      coalesce(r.tag_id, '0x' || encode(own.tag_hash, 'hex')) as tag_id
    from asset own left join registration r on r.token_id = own.token_id left join item i on i.token_id = own.token_id
    where own.token_id = $1::numeric) n
  where a.token_id = $1::numeric and (a.serial, a.gtin, a.tag_id) is distinct from (n.serial, n.gtin, n.tag_id)`
