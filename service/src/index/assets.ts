/** The newest state of every token (spec §2.9), with what the operator has registered for it: the table `asset`. */
import { type Hex, metadataHashOf, untrustedOf, zeroAddress } from '@touchstone/verdict'
import { LRUCache } from 'lru-cache'
import { zeroHash } from '../domain/chain.ts'
import { bytes, hex, hexToBytes, numbers, texts, zeroHashSql } from '../db/columns.ts'
import type { Database, Sql } from '../db/database.ts'
import { clampSeconds } from '../domain/chain-index.ts'
import { parseJson } from '../lib/json.ts'
import type { AssetChange } from './project.ts'
import { waitForStep } from './steps.ts'
import { keepSums, returned, returnedBoth, withSums } from './sums.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'

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

/** Adds tokens that were minted and changes the others. Call `keepSums` before. */
export async function storeAssets(sql: Sql, changes: readonly AssetChange[]): Promise<void> {
  const minted = changes.filter((change) => change.minted !== null)
  const others = changes.filter((change) => change.minted === null)
  if (minted.length > 0) {
    await linkRegistrations(sql, minted)
    const made = minted.map((change) => ({
      ...change,
      owner: change.owner ?? zeroAddress,
      state: change.state ?? 0,
      flags: change.flags ?? 0,
    }))
    const tokens = numbers(made.map(({ tokenId }) => tokenId))
    const [registered, items, taps] = [
      await registrationsOf(sql, tokens),
      await itemsOf(sql, tokens),
      await tapsOf(sql, tokens),
    ]
    const texted = (of: (tokenId: string) => string | null | undefined) =>
      texts(made.map(({ tokenId }) => of(tokenId) ?? null))
    await sql.query(insertStatement, [
      ...(await columnsOf(sql, made)),
      numbers(made.map(({ minted: mint, time }) => clampSeconds(mint?.time ?? time))),
      texted((tokenId) => registered.get(tokenId)?.tag_id),
      texted((tokenId) => (items.get(tokenId) ?? registered.get(tokenId))?.serial),
      texted((tokenId) => (items.get(tokenId) ?? registered.get(tokenId))?.gtin),
      texts(made.map((change) => tapOf(taps, change))),
    ])
  }
  await updateAssets(sql, others)
}

/** Returns when a token was tapped with the tag that a change binds. Null: with another one, or no tag is bound. */
function tapOf(taps: ReadonlyMap<string, Tap>, { tokenId, tagHash }: AssetChange): string | null {
  const tap = taps.get(BigInt(tokenId).toString())
  if (tap === undefined || tagHash === null || tagHash === zeroHash) return null
  return tap.tag_hash === null || tap.tag_hash === tagHash ? tap.at : null
}

/** Returns those of the tokens that have no row. */
export async function missingTokens(sql: Sql, tokenIds: readonly string[]): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(knownStatement, [numbers(tokenIds)])
  const known = new Set(rows.map(({ id }) => id))
  return tokenIds.filter((tokenId) => !known.has(BigInt(tokenId).toString()))
}

const knownStatement = 'select token_id::text as id from asset where token_id = any($1::numeric[])'

/** Rows by their token, for columns that are on other shards than the statement that stores them. */
type OfToken<Row> = Row & Readonly<{ token_id: string }>
type Registered = OfToken<Readonly<{ tag_id: string; gtin: string | null; serial: string | null }>>
type Item = OfToken<ItemKey>
type Tap = Readonly<{ at: string; tag_hash: string | null }>

async function byToken<Row>(sql: Sql, statement: string, tokens: string): Promise<Map<string, OfToken<Row>>> {
  const rows = await sql.query<OfToken<Row>>(statement, [tokens])
  return new Map(rows.map((row) => [row.token_id, row]))
}

/** Returns what is registered of tokens, by token. */
const registrationsOf = (sql: Sql, tokens: string) =>
  byToken<Registered>(
    sql,
    'select token_id, tag_id, gtin, serial from registration where token_id = any($1::numeric[])',
    tokens,
  )
const itemsOf = (sql: Sql, tokens: string) =>
  byToken<Item>(sql, 'select token_id, gtin, serial from item where token_id = any($1::numeric[])', tokens)
const tapsOf = (sql: Sql, tokens: string) =>
  byToken<Tap>(
    sql,
    `select token_id, tapped_at::text as at, ${hex('tag_hash')} as tag_hash from asset_tap where token_id = any($1::numeric[])`,
    tokens,
  )

/**
 * Writes the tag that is bound now beside taps without one, which an earlier version stored. The token may have another tag after a
 * reorganisation or in another contract. Call it before a tag is changed or a product deleted.
 */
const keepTagsOfTaps = (sql: Sql, tokens: string) => sql.query(tagsOfTapsStatement, [tokens])

const tagsOfTapsStatement = `update asset_tap t set tag_hash = a.tag_hash from asset a
  where t.token_id = a.token_id and t.token_id = any($1::numeric[]) and a.token_id = any($1::numeric[])
    and a.tapped_at is not null and a.tag_hash is not null and t.tag_hash is null`

/** Does the same for all products, before all are deleted. It takes its time, and is no part of that transaction. */
export async function keepTagsOfAllTaps(sql: Sql): Promise<void> {
  for (let after: string | undefined = '-1'; after !== undefined;) {
    const rows: { token_id: string }[] = await sql.query(untaggedStatement, [after, rowsAtOnce])
    const tokens = rows.map(({ token_id }) => token_id)
    if (tokens.length > 0) await keepTagsOfTaps(sql, numbers(tokens))
    after = tokens.at(-1)
  }
}

const untaggedStatement = `select t.token_id from asset_tap t join asset a on a.token_id = t.token_id
  where t.token_id > $1::numeric and a.tapped_at is not null and a.tag_hash is not null and t.tag_hash is null
  order by t.token_id limit $2`

/** Deletes taps of products that the index of another contract never had: their tags are unknown. */
export const dropUntaggedTaps = (sql: Sql): Promise<unknown> =>
  sql.query('delete from asset_tap where tag_hash is null')

/** Changes tokens that are stored. Call `keepSums` before. */
export async function updateAssets(sql: Sql, changes: readonly AssetChange[]): Promise<void> {
  if (changes.length === 0) return
  const bound = changes.flatMap(({ tagHash, tokenId }) => (tagHash === null ? [] : [tokenId]))
  const tokens = numbers(bound)
  if (bound.length > 0) await keepTagsOfTaps(sql, tokens)
  const registered = bound.length === 0 ? null : await registrationsOf(sql, tokens)
  const taps = bound.length === 0 ? new Map<string, Tap>() : await tapsOf(sql, tokens)
  await sql.query(updateStatement, [
    ...(await columnsOf(sql, changes)),
    texts(changes.map(({ tokenId }) => registered?.get(tokenId)?.tag_id ?? null)),
    texts(changes.map((change) => tapOf(taps, change))),
  ])
}

/** Deletes tokens. Their transfers are deleted by their own statement. Call `keepSums` before. */
export async function deleteAssets(sql: Sql, tokenIds: readonly string[]): Promise<void> {
  if (tokenIds.length === 0) return
  const tokens = numbers(tokenIds)
  await keepTagsOfTaps(sql, tokens)
  await sql.query('delete from transfer where token_id = any($1::numeric[])', [tokens])
  await unlinkRegistrations(sql, tokenIds)
  await sql.query(deleteStatement, [tokens])
}

/**
 * Takes tokens with an id of the contract's counter from their registrations, which versions before minted so. On another branch, or in
 * another contract, such an id may be another product. All other ids follow from the key of the registration.
 */
export async function unlinkCounted(sql: Sql): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined;) {
    const rows: { key: string; token_id: string }[] = await sql.query(countedStatement, [after, rowsAtOnce])
    if (rows.length > 0)
      await unlinkRegistrations(
        sql,
        rows.map(({ token_id }) => token_id),
      )
    after = rows.at(-1)?.key
  }
}

const countedStatement = `select o.idempotency_key as key, r.token_id from operation o
  join registration r on r.idempotency_key = substr(o.idempotency_key, 10)
  where o.kind = 'mint' and o.idempotency_key like 'register:%' and o.idempotency_key > $1 and r.token_id is not null
  order by o.idempotency_key limit $2`

/** Reads the tokens of registrations in groups. Yields of each group those that the index, which is at the head again, does not have. */
export async function* missingRegistered(sql: Sql): AsyncGenerator<string[]> {
  for (let after: string | undefined = '-1'; after !== undefined;) {
    const rows: { token_id: string }[] = await sql.query(tokensStatement, [after, rowsAtOnce])
    const tokens = rows.map(({ token_id }) => token_id)
    yield await missingTokens(sql, tokens)
    after = tokens.at(-1)
  }
}

const tokensStatement = 'select token_id from registration where token_id > $1::numeric order by token_id limit $2'

/** Takes tokens from their registrations, with the items that these registered. */
export async function unlinkRegistrations(sql: Sql, tokenIds: readonly string[]): Promise<void> {
  const tokens = numbers(tokenIds)
  await unlinkItems(sql, await sql.query<Item>(linkedStatement, [tokens]))
  await sql.query('update registration set token_id = null where token_id = any($1::numeric[])', [tokens])
}

const linkedStatement = `select token_id, gtin, serial from registration
  where token_id = any($1::numeric[]) and gtin is not null and serial is not null`

async function unlinkItems(sql: Sql, items: readonly Item[]): Promise<void> {
  if (items.length === 0) return
  await sql.query(unlinkStatement, itemColumns(items))
  await sql.query(freeKeysStatement, itemColumns(items))
}

const itemColumns = (items: readonly Item[]) => [
  numbers(items.map(({ token_id }) => token_id)),
  texts(items.map(({ gtin }) => gtin)),
  texts(items.map(({ serial }) => serial)),
]

const itemsTable = 'unnest($1::numeric[], $2::text[], $3::text[]) r (token_id, gtin, serial)'
const unlinkStatement = `delete from item i using ${itemsTable}
  where i.token_id = r.token_id and i.gtin = r.gtin and i.serial = r.serial and i.token_id = any($1::numeric[])`
const freeKeysStatement = `delete from token_of_item k using ${itemsTable}
  where k.token_id = r.token_id and k.gtin = r.gtin and k.serial = r.serial and k.serial = any($3::text[])`

/** Gives tokens to the registrations that minted them, and their items, unless the token or the item has another already. */
async function linkRegistrations(sql: Sql, minted: readonly AssetChange[]): Promise<void> {
  const linked = await sql.query<OfToken<{ gtin: string | null; serial: string | null }>>(linkStatement, [
    numbers(minted.map(({ tokenId }) => tokenId)),
    bytes(minted.map((change) => change.minted?.transactionHash ?? null)),
  ])
  const items = linked.filter((row): row is Item => row.gtin !== null && row.serial !== null)
  if (items.length === 0) return
  await sql.query(claimKeysStatement, itemColumns(items))
  const claimed = new Set((await sql.query<Item>(keysStatement, itemColumns(items).slice(1))).map(nameOf))
  const own = items.filter((item) => claimed.has(nameOf(item)))
  const made = new Set((await sql.query<Item>(itemsStatement, itemColumns(own))).map(nameOf))
  // A token that has another item leaves the key to others; one that has this item keeps it.
  const others = own.filter((item) => !made.has(nameOf(item)))
  if (others.length === 0) return
  const kept = new Set([...(await itemsOf(sql, numbers(others.map(({ token_id }) => token_id)))).values()].map(nameOf))
  await sql.query(freeKeysStatement, itemColumns(others.filter((item) => !kept.has(nameOf(item)))))
}

const nameOf = ({ token_id, gtin, serial }: Item) => `${token_id} ${gtin} ${serial}`

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

/** The mint may be any transaction of the operation. */
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
  select token_id, gtin, serial from linked`

const claimKeysStatement = `insert into token_of_item (gtin, serial, token_id) select r.gtin, r.serial, r.token_id from ${itemsTable}
  order by r.gtin, r.serial on conflict do nothing`
const keysStatement = `select token_id, gtin, serial from token_of_item where serial = any($2::text[]) and gtin = any($1::text[])`
const itemsStatement = `insert into item (token_id, gtin, serial) select r.token_id, r.gtin, r.serial from ${itemsTable}
  on conflict do nothing returning token_id, gtin, serial`

const changesTable = `unnest($1::numeric[], $2::bytea[], $3::smallint[], $4::smallint[],
    $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::bigint[], $10::bigint[]`
const changesColumns = `token_id, owner, state, flags, metadata_hash, tag_hash, name, brand, changed, block`

/** In the order of the mints, which `pk` keeps. */
const insertStatement = withSums(
  'insert',
  `insert into asset as a (token_id, owner, state, flags, metadata_hash, tag_hash, name, brand,
    tag_id, serial, gtin, tapped_at, created_at, updated_at, updated_block)
  select c.token_id, c.owner, c.state, c.flags, nullif(c.metadata_hash, ${zeroHashSql}), c.tag_hash, c.name, c.brand,
    coalesce(c.tag_id, '0x' || encode(c.tag_hash, 'hex')), c.serial, c.gtin, c.tapped_at,
    to_timestamp(c.minted), to_timestamp(c.changed), c.block
  from ${changesTable}, $11::bigint[], $12::text[], $13::text[], $14::text[], $15::timestamptz[]) with ordinality
    c (${changesColumns}, minted, tag_id, serial, gtin, tapped_at, place)
  order by c.place
  on conflict (token_id) do nothing returning ${returned('a')}`,
)

const updateStatement = withSums(
  'update',
  `update asset a set
    owner = coalesce(c.owner, a.owner), state = coalesce(c.state, a.state), flags = coalesce(c.flags, a.flags),
    metadata_hash = case when c.metadata_hash is null then a.metadata_hash else nullif(c.metadata_hash, ${zeroHashSql}) end,
    name = case when c.metadata_hash is null then a.name else c.name end,
    brand = case when c.metadata_hash is null then a.brand else c.brand end,
    tag_hash = case when c.tag_hash is null then a.tag_hash else nullif(c.tag_hash, ${zeroHashSql}) end,
    tag_id = case when c.tag_hash is null then a.tag_id
      else coalesce(c.tag_id, '0x' || encode(nullif(c.tag_hash, ${zeroHashSql}), 'hex')) end,
    tapped_at = case when c.tag_hash is null then a.tapped_at else c.tapped_at end,
    updated_at = to_timestamp(c.changed), updated_block = c.block
  from ${changesTable}, $11::text[], $12::timestamptz[]) c (${changesColumns}, tag_id, tapped_at), asset was
  where a.token_id = c.token_id and was.token_id = a.token_id
    and a.token_id = any($1::numeric[]) and was.token_id = any($1::numeric[])
  returning ${returnedBoth('a', 'was')}`,
)

const deleteStatement = withSums(
  'delete',
  `delete from asset a where a.token_id = any($1::numeric[]) returning ${returned('a')}`,
)

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

const bodiesStatement = 'select body from metadata where hash = any($1::bytea[])'

function textOf(body: string): ProductText {
  const { name = null, brand = null } = untrustedOf(parseJson(body))
  return { name, brand }
}

/** A whole batch of tokens may share one metadata hash. */
const rowsAtOnce = 5_000

/**
 * Updates the names and brands of the tokens with this metadata hash. Call it once the metadata is committed. Where they are right already,
 * it takes no lock that a step or a first tap waits for.
 */
export async function refreshAssetText(database: Pick<Database, 'query' | 'transaction'>, hash: Hex): Promise<void> {
  // A step that is under way may have looked for the metadata before it came. Later steps find it.
  await waitForStep(database)
  if ((await waitingForText(database, hash, 1)).tokens.length === 0) return
  // In a transaction, so that no step of the index begins to write the same rows in another order.
  for (let changed = rowsAtOnce; changed === rowsAtOnce;)
    changed = await database.transaction((sql) => refreshSome(sql, hash))
}

/** Hashes in memory: one of 66 characters for each. */
const mostRefreshed = 10_000

/**
 * Returns `refreshAssetText` for texts that are stored again and again, such as that of a model. A text that was stored before is compared
 * with its tokens once in each process: the one that stored it may have ended before it came to that.
 */
export function createTextRefresh(database: Pick<Database, 'query' | 'transaction'>) {
  const refreshed = new LRUCache<Hex, true>({ max: mostRefreshed })
  return async (hash: Hex, { isNew }: { readonly isNew: boolean }): Promise<void> => {
    if (!isNew && refreshed.has(hash)) return
    await refreshAssetText(database, hash)
    refreshed.set(hash, true)
  }
}

async function refreshSome(sql: Sql, hash: Hex): Promise<number> {
  // As a step does: first taps, which change the sums too, wait.
  await waitForStep(sql, 'update')
  const { tokens, text } = await waitingForText(sql, hash, rowsAtOnce)
  if (tokens.length === 0) return 0
  await keepSums(sql)
  await sql.query(textStatement, [numbers(tokens), text.name, text.brand])
  return tokens.length
}

/**
 * Returns the text of the metadata, and tokens with this hash that have none yet. The text under a hash never changes, so any other token has
 * it. There are no such tokens while the metadata is not stored.
 */
async function waitingForText(sql: Sql, hash: Hex, limit: number): Promise<{ tokens: string[]; text: ProductText }> {
  const none = { tokens: [], text: { name: null, brand: null } }
  const waiting = await sql.query<OfToken<object>>(withoutTextStatement, [hexToBytes(hash), limit])
  if (waiting.length === 0) return none // most metadata comes before its token
  const text = (await productTexts(sql, new Set([hash]))).get(hash)
  if (text === undefined || (text.name === null && text.brand === null)) return none
  return { tokens: waiting.map(({ token_id }) => token_id), text }
}

export const withoutTextStatement = `select token_id from asset
  where metadata_hash = $1 and name is null and brand is null limit $2`

const textStatement = withSums(
  'update',
  `update asset a set name = $2, brand = $3 from asset was
  where was.token_id = a.token_id and a.token_id = any($1::numeric[]) and was.token_id = any($1::numeric[])
  returning ${returnedBoth('a', 'was')}`,
)

/** Updates GTIN, serial and tag id of a token. Call it once its item or registration is committed. */
export async function refreshAssetItem(sql: Sql, tokenId: bigint | string): Promise<void> {
  await waitForStep(sql)
  const tokens = numbers([tokenId])
  const registered = (await registrationsOf(sql, tokens)).get(tokenId.toString())
  const item = (await itemsOf(sql, tokens)).get(tokenId.toString()) ?? registered
  await sql.query(itemStatement, [
    tokenId.toString(),
    item?.serial ?? null,
    item?.gtin ?? null,
    registered?.tag_id ?? null,
  ])
}

const itemStatement = `update asset set serial = $2, gtin = $3, tag_id = coalesce($4, '0x' || encode(tag_hash, 'hex'))
  where token_id = $1::numeric
    and (serial, gtin, tag_id) is distinct from ($2, $3, coalesce($4, '0x' || encode(tag_hash, 'hex')))`
