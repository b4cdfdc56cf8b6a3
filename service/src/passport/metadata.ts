/**
 * Product metadata against its on-chain hash: keccak256 of the UTF-8 bytes of its RFC 8785 form, over the raw document, before any
 * cleaning (spec §2.8). The canonical text is what is stored and hashed; parsed values are never hashed again, because `JSON.parse`
 * silently rounds integers and drops duplicate keys.
 */
import { metadataHashOf, untrustedOf, type Hex } from '@touchstone/verdict'
import canonicalize from 'canonicalize'

/** The seven supplier fields, each cleaned and not empty (spec §2.3). An `Untrusted` fits. */
export type ProductText = Readonly<
  Partial<Record<'name' | 'brand' | 'description' | 'sku' | 'origin' | 'size' | 'image', string>>
>

/** What is known of an item's metadata. Only a match brings supplier text. */
export type PassportMetadata =
  | { readonly status: 'match'; readonly value: ProductText; readonly hash: Hex }
  | { readonly status: 'mismatch'; readonly onChainHash: Hex }
  /** No hash on chain (null or zero), or a hash whose text this service does not have. */
  | { readonly status: 'none'; readonly onChainHash: Hex | null }

/** Compares the stored canonical text of an item (undefined: there is none) with the hash that the contract holds. */
export function passportMetadata(onChainHash: Hex | null, storedText: string | undefined): PassportMetadata {
  if (onChainHash === null || /^0x0*$/.test(onChainHash) || storedText === undefined)
    return { status: 'none', onChainHash }
  const expected = onChainHash.toLowerCase()
  if (!storedText.isWellFormed() || metadataHashOf(storedText) !== expected) return { status: 'mismatch', onChainHash }
  return { status: 'match', value: untrustedOf(parsed(storedText)), hash: onChainHash }
}

type MetadataError = 'too-large' | 'not-an-object' | 'unknown-key' | 'not-text' | 'duplicate-key' | 'lone-surrogate'
/** The canonical text to store and its hash, or why a registration is refused. */
export type RegisteredMetadata =
  | { readonly ok: true; readonly canonical: string; readonly hash: Hex }
  | { readonly ok: false; readonly error: MetadataError }

const keys: ReadonlySet<string> = new Set(['name', 'brand', 'description', 'sku', 'origin', 'size', 'image'])
const maxBytes = 16_384

/** Reads the JSON text of a registration: one flat object of the seven keys with text values, at most 16 kB of UTF-8. */
export function readMetadata(text: string): RegisteredMetadata {
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes) return refused('too-large')
  const value = parsed(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refused('not-an-object')
  const entries = Object.entries(value)
  if (entries.some(([key]) => !keys.has(key))) return refused('unknown-key')
  if (entries.some(([, field]) => typeof field !== 'string')) return refused('not-text')
  // Every member that counts is two strings; a member that `JSON.parse` dropped leaves at least its key over.
  if ((text.match(/"(?:[^"\\]|\\.)*"/g) ?? []).length !== 2 * entries.length) return refused('duplicate-key')
  if (entries.some(([, field]) => !String(field).isWellFormed())) return refused('lone-surrogate')
  // Flat text has no shorter spelling than its canonical one, so the bound above holds for it too.
  const canonical = canonicalize(value) ?? ''
  return { ok: true, canonical, hash: metadataHashOf(canonical) }
}

function refused(error: MetadataError): RegisteredMetadata {
  return { ok: false, error }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
