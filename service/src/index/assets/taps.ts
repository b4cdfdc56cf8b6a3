/** First taps of products (spec §2.9): the tag of each is kept. They are taken back where a chip can be copied. */
import type { Hex } from '@touchstone/verdict'
import { bytes, hex, numbers } from '../../db/columns.ts'
import type { Database, Sql } from '../../db/database.ts'
import { zeroHash } from '../../domain/chain.ts'
import type { AssetChange } from '../project.ts'
import { waitForStep } from '../steps.ts'
import { tokensInPages } from './pages.ts'
import { keepSums, returnedBoth, withSums } from './sums.ts'

/**
 * Takes back the taps of tags, in one transaction. A product is verified again by its next fresh tap. No rebuild brings these taps back, and
 * neither does a step that brings or binds the product later.
 */
export async function takeBackTaps(
  database: Pick<Database, 'query' | 'transaction'>,
  tagHashes: readonly Hex[],
): Promise<void> {
  const tags = bytes(tagHashes)
  if ((await tokensOf(database, tags)).length === 0) return // most calls of a second pass keep no step waiting
  await database.transaction(async (sql) => {
    // As a step does: first taps, which change the same rows, wait.
    await waitForStep(sql, 'update')
    const tokens = numbers(await tokensOf(sql, tags))
    await sql.query(keptStatement, [tokens, tags])
    await keepSums(sql)
    await sql.query(verifiedStatement, [tokens, tags])
  })
}

/** Returns the tokens that were tapped with one of the tags, in the order in which rows are locked. */
async function tokensOf(sql: Sql, tags: string): Promise<string[]> {
  const tokens = new Set<string>()
  for (const statement of [keptTokensStatement, verifiedTokensStatement])
    for (const { token_id } of await sql.query<{ token_id: string }>(statement, [tags])) tokens.add(token_id)
  return [...tokens].toSorted()
}

const keptTokensStatement = 'select token_id from asset_tap where tag_hash = any($1::bytea[])'
const verifiedTokensStatement = 'select token_id from asset where tag_hash = any($1::bytea[]) and tapped_at is not null'

/** A row without a tag is of the one that is bound. */
const keptStatement = `delete from asset_tap t where t.token_id = any($1::numeric[]) and (t.tag_hash = any($2::bytea[])
  or t.tag_hash is null and exists (select from asset a
    where a.token_id = t.token_id and a.token_id = any($1::numeric[]) and a.tag_hash = any($2::bytea[])))`

const verifiedStatement = withSums(
  'update',
  `update asset a set tapped_at = null from asset was
  where was.token_id = a.token_id and a.token_id = any($1::numeric[]) and was.token_id = any($1::numeric[])
    and a.tag_hash = any($2::bytea[]) and a.tapped_at is not null
  returning ${returnedBoth('a', 'was')}`,
)

/** A tap with the tag that was tapped, where it is kept. */
type Tap = Readonly<{ token_id: string; at: string; tag_hash: string | null }>

/** Returns the first taps of tokens, by token. */
export async function tapsOf(sql: Sql, tokens: string): Promise<ReadonlyMap<string, Tap>> {
  const rows = await sql.query<Tap>(tapsStatement, [tokens])
  return new Map(rows.map((row) => [row.token_id, row]))
}

const tapsStatement = `select token_id, tapped_at::text as at, ${hex('tag_hash')} as tag_hash from asset_tap where token_id = any($1::numeric[])`

/** Returns when a token was tapped with the tag that a change binds. Null: with another one, or no tag is bound. */
export function tapTimeOf(taps: ReadonlyMap<string, Tap>, { tokenId, tagHash }: AssetChange): string | null {
  const tap = taps.get(BigInt(tokenId).toString())
  if (tap === undefined || tagHash === null || tagHash === zeroHash) return null
  return tap.tag_hash === null || tap.tag_hash === tagHash ? tap.at : null
}

/**
 * Writes the tag that is bound now beside taps without one, which an earlier version stored. The token may have another tag after a
 * reorganisation or in another contract. Call it before a tag is changed or a product deleted.
 */
export const keepTagsOfTaps = (sql: Sql, tokens: string) => sql.query(tagsOfTapsStatement, [tokens])

const tagsOfTapsStatement = `update asset_tap t set tag_hash = a.tag_hash from asset a
  where t.token_id = a.token_id and t.token_id = any($1::numeric[]) and a.token_id = any($1::numeric[])
    and a.tapped_at is not null and a.tag_hash is not null and t.tag_hash is null`

/** Writes the bound tags beside the taps of all products, before all are deleted. It takes long, and is no part of that transaction. */
export async function keepTagsOfAllTaps(sql: Sql): Promise<void> {
  for await (const tokens of tokensInPages(sql, untaggedStatement, '-1')) await keepTagsOfTaps(sql, numbers(tokens))
}

const untaggedStatement = `select t.token_id from asset_tap t join asset a on a.token_id = t.token_id
  where t.token_id > $1::numeric and a.tapped_at is not null and a.tag_hash is not null and t.tag_hash is null
  order by t.token_id limit $2`

/** Deletes taps of products that the index of another contract never had: their tags are unknown. */
export const dropUntaggedTaps = (sql: Sql): Promise<unknown> =>
  sql.query('delete from asset_tap where tag_hash is null')
