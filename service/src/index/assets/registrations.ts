/** Registrations by the operator give GTIN, serial and the name of a tag to a token. Each waits for the mint of its token. */
import { bytes, numbers, texts } from '../../db/columns.ts'
import type { Sql } from '../../db/database.ts'
import type { ItemKey } from '../../domain/gs1/serial.ts'
import type { AssetChange } from '../project.ts'
import { waitForStep } from '../steps.ts'
import { tokensInPages } from './pages.ts'

/** Rows by their token, for columns that are on other shards than the statement that stores them. */
type OfToken<Row> = Row & Readonly<{ token_id: string }>
type Registered = OfToken<Readonly<{ tag_id: string; gtin: string | null; serial: string | null }>>
type Item = OfToken<ItemKey>

async function byToken<Row>(sql: Sql, statement: string, tokens: string): Promise<Map<string, OfToken<Row>>> {
  const rows = await sql.query<OfToken<Row>>(statement, [tokens])
  return new Map(rows.map((row) => [row.token_id, row]))
}

/** Returns what is registered of tokens, by token. */
export const registrationsOf = (sql: Sql, tokens: string) =>
  byToken<Registered>(
    sql,
    'select token_id, tag_id, gtin, serial from registration where token_id = any($1::numeric[])',
    tokens,
  )
export const itemsOf = (sql: Sql, tokens: string) =>
  byToken<Item>(sql, 'select token_id, gtin, serial from item where token_id = any($1::numeric[])', tokens)

const itemColumns = (items: readonly Item[]) => [
  numbers(items.map(({ token_id }) => token_id)),
  texts(items.map(({ gtin }) => gtin)),
  texts(items.map(({ serial }) => serial)),
]

const itemsTable = 'unnest($1::numeric[], $2::text[], $3::text[]) r (token_id, gtin, serial)'

/** Gives tokens to the registrations that minted them, and their items, unless the token or the item has another already. */
export async function linkRegistrations(sql: Sql, minted: readonly AssetChange[]): Promise<void> {
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

/**
 * Takes tokens with an id of the contract's counter from their registrations, which versions before minted so. On another branch, or in
 * another contract, such an id may be another product. All other ids follow from the key of the registration.
 */
export async function unlinkCounted(sql: Sql): Promise<void> {
  for await (const tokens of tokensInPages(sql, countedStatement, '')) await unlinkRegistrations(sql, tokens)
}

const countedStatement = `select o.idempotency_key as key, r.token_id from operation o
  join registration r on r.idempotency_key = substr(o.idempotency_key, 10)
  where o.kind = 'mint' and o.idempotency_key like 'register:%' and o.idempotency_key > $1 and r.token_id is not null
  order by o.idempotency_key limit $2`

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

const unlinkStatement = `delete from item i using ${itemsTable}
  where i.token_id = r.token_id and i.gtin = r.gtin and i.serial = r.serial and i.token_id = any($1::numeric[])`
const freeKeysStatement = `delete from token_of_item k using ${itemsTable}
  where k.token_id = r.token_id and k.gtin = r.gtin and k.serial = r.serial and k.serial = any($3::text[])`

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
