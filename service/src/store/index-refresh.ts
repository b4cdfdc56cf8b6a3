/** What the operator adds after a token is indexed: metadata, an item. Called after that is committed, by whoever wrote it. */
import type { Hex } from '@touchstone/verdict'
import type { Database, Sql } from './database.ts'
import { bytesOf } from './index-columns.ts'
import { waitForStep } from './index-cursor.ts'
import { productTexts } from './index-texts.ts'

/** One hash may be that of a whole batch of tokens. */
const rowsAtOnce = 5_000

/** Names and brands of the tokens with this metadata hash. */
export async function refreshAssetText(database: Pick<Database, 'transaction'>, hash: Hex): Promise<void> {
  // In a transaction, so that no step of the index begins to write the same rows in another order.
  for (let changed = rowsAtOnce; changed === rowsAtOnce;)
    changed = await database.transaction((sql) => refreshSome(sql, hash))
}

async function refreshSome(sql: Sql, hash: Hex): Promise<number> {
  await waitForStep(sql)
  const known = await sql.query('select 1 from asset where metadata_hash = $1 limit 1', [bytesOf(hash)])
  if (known.length === 0) return 0 // most metadata comes before its token
  const text = (await productTexts(sql, new Set([hash]))).get(hash)
  if (text === undefined) return 0
  return (await sql.query(textStatement, [bytesOf(hash), text.name, text.brand, rowsAtOnce])).length
}

const textStatement = `update asset set name = $2, brand = $3 where pk in (
    select pk from asset where metadata_hash = $1 and (name, brand) is distinct from ($2, $3) limit $4)
  returning 1`

/** GTIN, serial and the operator's name of the tag, of a decimal or numeric token id. */
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
