/** Restricted product details in the database, apart from public texts, under the hash that the public details hold. */
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import { hexToBytes } from '../../db/columns.ts'
import type { Sql } from '../../db/database.ts'
import { type Tier, tiers } from '../../domain/product-details.ts'
import type { RestrictedText } from './tiers.ts'

export type RestrictedStore = ReturnType<typeof restrictedStore>

export function restrictedStore(sql: Sql) {
  return {
    /** Stores a document under its hash; storing it again is no change. */
    async put({ tier, body, hash }: RestrictedText): Promise<void> {
      await sql.query('insert into restricted_details (hash, tier, body) values ($1, $2, $3) on conflict do nothing', [
        hexToBytes(hash),
        tier,
        body,
      ])
    },
    /** Returns a document of one of the tiers; null without one. It recomputes the hash: a row altered in the database counts as missing. */
    async get(hash: Hex, allowed: readonly Tier[]): Promise<RestrictedText | null> {
      const [row] = await sql.query<{ tier: string; body: string }>(
        'select tier, body from restricted_details where hash = $1 and tier = any($2)',
        [hexToBytes(hash), allowed],
      )
      const tier = tiers.find((one) => one === row?.tier)
      return row === undefined || tier === undefined || metadataHashOf(row.body) !== hash
        ? null
        : { tier, body: row.body, hash }
    },
  }
}
