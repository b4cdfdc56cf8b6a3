/** The newest state of every token (spec §2.9): the rows of the table `asset`. */
import { type Hex, zeroAddress } from '@touchstone/verdict'
import { bytes, numbers, texts, zeroHashSql } from '../../db/columns.ts'
import type { Sql } from '../../db/database.ts'
import { zeroHash } from '../../domain/chain.ts'
import { clampSeconds } from '../../domain/chain-index.ts'
import type { AssetChange } from '../project.ts'
import { tokensInPages } from './pages.ts'
import { itemsOf, linkRegistrations, registrationsOf, unlinkRegistrations } from './registrations.ts'
import { returned, returnedBoth, withSums } from './sums.ts'
import { keepTagsOfTaps, tapsOf, tapTimeOf } from './taps.ts'
import { productTexts } from './texts.ts'

type WholeChange = AssetChange & Readonly<{ state: number; flags: number; metadataHash: Hex; tagHash: Hex }>

/** Completes a projection of all events of a token: what no event set is not there. */
export function withoutGaps(change: AssetChange): WholeChange {
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
      texts(made.map((change) => tapTimeOf(taps, change))),
    ])
  }
  await updateAssets(sql, others)
}

/** Changes tokens that are stored. Call `keepSums` before. */
export async function updateAssets(sql: Sql, changes: readonly AssetChange[]): Promise<void> {
  if (changes.length === 0) return
  const bound = changes.flatMap(({ tagHash, tokenId }) => (tagHash === null ? [] : [tokenId]))
  const tokens = numbers(bound)
  if (bound.length > 0) await keepTagsOfTaps(sql, tokens)
  const [registered, taps] = bound.length > 0 ? [await registrationsOf(sql, tokens), await tapsOf(sql, tokens)] : []
  await sql.query(updateStatement, [
    ...(await columnsOf(sql, changes)),
    texts(changes.map(({ tokenId }) => registered?.get(tokenId)?.tag_id ?? null)),
    texts(changes.map((change) => (taps === undefined ? null : tapTimeOf(taps, change)))),
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

/** Returns those of the tokens that have no row. */
export async function missingTokens(sql: Sql, tokenIds: readonly string[]): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(knownStatement, [numbers(tokenIds)])
  const known = new Set(rows.map(({ id }) => id))
  return tokenIds.filter((tokenId) => !known.has(BigInt(tokenId).toString()))
}

const knownStatement = 'select token_id::text as id from asset where token_id = any($1::numeric[])'

/** Reads the tokens of registrations in groups. Yields of each group those that the index, which is at the head again, does not have. */
export async function* missingRegistered(sql: Sql): AsyncGenerator<string[]> {
  for await (const tokens of tokensInPages(sql, tokensStatement, '-1')) yield await missingTokens(sql, tokens)
}

const tokensStatement = 'select token_id from registration where token_id > $1::numeric order by token_id limit $2'

async function columnsOf(sql: Sql, changes: readonly AssetChange[]): Promise<string[]> {
  const found = await productTexts(sql, new Set(changes.flatMap(({ metadataHash }) => metadataHash ?? [])))
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
