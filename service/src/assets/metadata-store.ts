/**
 * The canonical texts of product metadata (spec §2.3) in the database, and in memory before it. The key is the hash that the chain
 * holds, so that altered metadata is not found.
 */
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import { LRUCache } from 'lru-cache'
import { hexToBytes } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import { createBatcher } from '../lib/async/batch.ts'

export type MetadataStore = ReturnType<typeof metadataStore>

export function metadataStore(sql: Sql) {
  return {
    /** Stores a canonical text under its hash; storing it again is no change. Returns whether it is new. */
    async put({ body, hash }: { readonly body: string; readonly hash: Hex }): Promise<boolean> {
      return (await sql.query(putStatement, [hexToBytes(hash), body])).length > 0
    },
    /** Returns the texts of those hashes that are stored. It recomputes each hash: a row altered in the database counts as missing. */
    async getMany(hashes: readonly Hex[]): Promise<Map<Hex, string>> {
      const rows = await sql.query<{ body: string }>(
        'select body from metadata where hash = any($1::text[]::bytea[])',
        [hashes.map((hash) => `\\x${hash.slice(2)}`)],
      )
      const found = new Map(rows.map(({ body }) => [metadataHashOf(body), body]))
      return new Map([...found].filter(([hash]) => hashes.includes(hash)))
    },
    /** Returns the text stored under a hash, altered or not; the caller compares it with the hash. */
    async stored(hash: Hex): Promise<string | undefined> {
      const [row] = await sql.query<{ body: string }>('select body from metadata where hash = $1', [hexToBytes(hash)])
      return row?.body
    },
  }
}

const putStatement = 'insert into metadata (hash, body) values ($1, $2) on conflict do nothing returning 1'

const mostAtOnce = 500

export type CachedMetadata = ReturnType<typeof cachedMetadata>

/**
 * Keeps at most 32 million characters of texts in memory, least recently used first out. A text under its hash never changes, so a
 * hit is always right. A miss is not kept, because the text may be stored at any moment. Hashes of one turn are read together.
 */
export function cachedMetadata(source: Pick<MetadataStore, 'getMany'>) {
  const texts = new LRUCache<Hex, string>({ maxSize: 32_000_000, sizeCalculation: (text) => text.length || 1 })
  const load = createBatcher<Hex, string | undefined>({
    async run(hashes) {
      const found = await source.getMany([...new Set(hashes)])
      return hashes.map((hash) => found.get(hash))
    },
    maxItems: mostAtOnce,
    concurrency: Infinity,
  })

  return {
    /** Returns the text of a hash, or undefined when the store has none. Throws what the store throws. */
    async get(hash: Hex): Promise<string | undefined> {
      const known = texts.get(hash)
      if (known !== undefined) return known
      const text = await load(hash)
      if (text !== undefined) texts.set(hash, text)
      return text
    },
  }
}
