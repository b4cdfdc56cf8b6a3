/**
 * Product metadata, content-addressed (spec §2.3): the key is the keccak256 of its RFC 8785 form, which the chain holds,
 * so altered metadata cannot be found under the chain's hash.
 */
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import canonicalize from 'canonicalize'
import type { Sql } from './database.ts'
import { customFieldsRefusal, isDay } from './metadata-fields.ts'

/** The keys of flat text (spec §2.3). */
export const metadataKeys = ['name', 'brand', 'description', 'sku', 'origin', 'size', 'image'] as const
export type Metadata = Readonly<Partial<Record<(typeof metadataKeys)[number], string>>>

const keys = [...metadataKeys, 'manufactureDate', 'customFields']

/** What a registration was refused for, in one sentence, and by which of its fields; else the canonical text and its hash. */
export type Canonical =
  | { readonly ok: true; readonly body: string; readonly hash: Hex }
  | { readonly ok: false; readonly message: string; readonly key?: string }

const maxBytes = 16_384

/**
 * Checks metadata to be registered (RFC 8785, passport rules): the seven keys with text, a day as `manufactureDate`, one JSON object
 * as `customFields` (spec §2.9), at most 16 kB in all.
 */
export function canonicalMetadata(input: unknown): Canonical {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return { ok: false, message: 'Metadata is one JSON object of text fields.' }
  for (const [key, value] of Object.entries(input)) {
    const message = refusalOf(key, value)
    if (message !== null) return { ok: false, message, key }
  }
  const body = canonicalize(input)
  if (body === undefined || Buffer.byteLength(body) > maxBytes)
    return { ok: false, message: 'Metadata may have at most 16 kB.' }
  return { ok: true, body, hash: metadataHashOf(body) }
}

function refusalOf(key: string, value: unknown): string | null {
  if (!keys.includes(key)) return `Metadata has the keys ${keys.join(', ')}; "${key.slice(0, 40)}" is none of them.`
  if (key === 'customFields') return customFieldsRefusal(value)
  if (typeof value !== 'string') return `Metadata field ${key} must be text.`
  if (!value.isWellFormed()) return `Metadata field ${key} holds half of a surrogate pair; send well-formed Unicode.`
  if (key === 'manufactureDate' && !isDay(value)) return 'Metadata field manufactureDate is a day such as 2026-03-01.'
  return null
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
