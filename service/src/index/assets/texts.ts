/** Names and brands of products from their metadata, in the rows of their tokens (spec §2.3, §2.9). */
import { type Hex, metadataHashOf, untrustedOf } from '@touchstone/verdict'
import { LRUCache } from 'lru-cache'
import { bytes, hexToBytes, numbers } from '../../db/columns.ts'
import type { Database, Sql } from '../../db/database.ts'
import { parseJson } from '../../lib/json.ts'
import { waitForStep } from '../steps.ts'
import { keepSums, returnedBoth, withSums } from './sums.ts'

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
  const waiting = await sql.query<{ token_id: string }>(withoutTextStatement, [hexToBytes(hash), limit])
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
