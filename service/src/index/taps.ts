/** First taps that are taken back: a product whose chip can be copied is not verified by them any more (spec §2.9). */
import type { Hex } from '@touchstone/verdict'
import { bytes, numbers } from '../db/columns.ts'
import type { Database, Sql } from '../db/database.ts'
import { waitForStep } from './steps.ts'
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
