/**
 * Product metadata, content-addressed (spec §2.3): the key is the keccak256 of its RFC 8785 form, which the chain holds,
 * so altered metadata cannot be found under the chain's hash.
 */
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import canonicalize from 'canonicalize'
import type { Sql } from './database.ts'

/** The keys a registration may use (spec §2.3). */
export const metadataKeys = ['name', 'brand', 'description', 'sku', 'origin', 'size', 'image'] as const
export type Metadata = Readonly<Partial<Record<(typeof metadataKeys)[number], string>>>

/** What a registration was refused for, in one sentence; else the canonical text and its hash. */
export type Canonical =
  | { readonly ok: true; readonly body: string; readonly hash: Hex }
  | { readonly ok: false; readonly message: string }

const maxBytes = 16_384

/** Checks metadata to be registered: one flat object of the seven keys with string values, at most 16 kB (RFC 8785, passport rules). */
export function canonicalMetadata(input: unknown): Canonical {
  const refuse = (message: string): Canonical => ({ ok: false, message })
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return refuse('Metadata is one JSON object of text fields.')
  for (const [key, value] of Object.entries(input)) {
    if (!metadataKeys.some((known) => known === key))
      return refuse(`Metadata has the keys ${metadataKeys.join(', ')}; "${key.slice(0, 40)}" is none of them.`)
    if (typeof value !== 'string') return refuse(`Metadata field ${key} must be text.`)
    if (!value.isWellFormed())
      return refuse(`Metadata field ${key} holds half of a surrogate pair; send well-formed Unicode.`)
  }
  const body = canonicalize(input)
  if (body === undefined || Buffer.byteLength(body) > maxBytes) return refuse('Metadata may have at most 16 kB.')
  return { ok: true, body, hash: metadataHashOf(body) }
}

export function metadataStore(sql: Sql) {
  return {
    /** Stores a canonical text under its hash; storing it again is no change. */
    async put({ body, hash }: { readonly body: string; readonly hash: Hex }): Promise<void> {
      await sql.query('insert into metadata (hash, body) values ($1, $2) on conflict do nothing', [bytesOf(hash), body])
    },
    /** The canonical texts of those hashes that are stored, recomputed on the way out: a row altered in the database counts as missing. */
    async getMany(hashes: readonly Hex[]): Promise<Map<Hex, string>> {
      const rows = await sql.query<{ body: string }>(
        "select body from metadata where hash in (select decode(hex, 'hex') from unnest($1::text[]) hex)",
        [hashes.map((hash) => hash.slice(2))],
      )
      const found = new Map(rows.map(({ body }) => [metadataHashOf(body), body]))
      return new Map([...found].filter(([hash]) => hashes.includes(hash)))
    },
    /** The text that stands under a hash, altered or not: whoever shows it compares it with the hash first. */
    async stored(hash: Hex): Promise<string | undefined> {
      const [row] = await sql.query<{ body: string }>('select body from metadata where hash = $1', [bytesOf(hash)])
      return row?.body
    },
  }
}

function bytesOf(hash: Hex): Uint8Array {
  return new Uint8Array(Buffer.from(hash.slice(2), 'hex'))
}
