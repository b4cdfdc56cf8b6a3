/**
 * Names and brands of the index: supplier text by its hash, cleaned before it is stored (spec §2.3), because GraphQL searches
 * and sorts by the columns.
 */
import { metadataHashOf, untrustedOf, type Hex } from '@touchstone/verdict'
import type { Sql } from './database.ts'
import { bytes } from './index-columns.ts'

export type ProductText = Readonly<{ name: string | null; brand: string | null }>

/** Metadata may have 16 kB, so they are not all in memory at once. */
const hashesAtOnce = 500

/** Those whose metadata is stored; one that was altered in the database counts as missing. */
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
  const { name = null, brand = null } = untrustedOf(parsed(body))
  return { name, brand }
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}
