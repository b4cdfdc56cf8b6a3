/** The tokens of a class (GTIN), for what its items have in common. */
import type { Hex } from '@touchstone/verdict'
import { hex } from '../../db/columns.ts'
import { type IndexDatabase, wholeReads } from '../steps.ts'

/** A token, and the metadata hash that the index has of it. */
type ClassItem = { readonly tokenId: bigint; readonly metadataHash: Hex }
export type ClassStore = ReturnType<typeof classStore>

/** Items of a class that are looked at: an answer for a class of a million items must stay cheap. */
const newest = 500

export function classStore(database: IndexDatabase) {
  const whole = wholeReads(database)
  return {
    /** Returns one token for each metadata hash among the newest items of a class, the newest first. */
    async itemsOfClass(gtin: string): Promise<ClassItem[]> {
      const rows = await whole((sql) => sql.query<{ tokenId: string; hash: Hex }>(classStatement, [gtin, newest]))
      const byHash = new Map<Hex, ClassItem>()
      for (const { tokenId, hash: metadataHash } of rows)
        if (!byHash.has(metadataHash)) byHash.set(metadataHash, { tokenId: BigInt(tokenId), metadataHash })
      return [...byHash.values()]
    },
  }
}

const classStatement = `select token_id::text as "tokenId", ${hex('metadata_hash')} as hash from asset
  where gtin = $1 and metadata_hash is not null order by created_at desc, pk desc limit $2`
