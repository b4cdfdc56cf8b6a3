/**
 * Product metadata against its on-chain hash: keccak256 of the UTF-8 bytes of its RFC 8785 form, before any cleaning (spec §2.8).
 * The stored canonical text is hashed, never its parsed values, because `JSON.parse` rounds integers and drops duplicate keys.
 */
import { metadataHashOf, untrustedOf, type Hex, type Untrusted } from '@touchstone/verdict'
import { detailsHashOf } from '../domain/product-details.ts'
import { parseJson } from '../lib/json.ts'
import { memoize } from '../lib/memoize.ts'

/** The seven supplier fields, each cleaned and not empty (spec §2.3). */
export type ProductText = Omit<Untrusted, '_warning'>

/** An item's metadata compared with the chain. Only a match holds supplier text. */
export type PassportMetadata =
  | {
      readonly status: 'match'
      readonly value: ProductText
      readonly hash: Hex
      /** Hash of the product details that the metadata names. */
      readonly details?: Hex | null
    }
  | { readonly status: 'mismatch'; readonly onChainHash: Hex }
  /** No hash on chain (null or zero), or a hash whose text this service does not have. */
  | { readonly status: 'none'; readonly onChainHash: Hex | null }

/** Compares the stored canonical text of an item (undefined: there is none) with the hash that the contract holds. */
export function passportMetadata(onChainHash: Hex | null, storedText: string | undefined): PassportMetadata {
  if (onChainHash === null || /^0x0*$/.test(onChainHash) || storedText === undefined)
    return { status: 'none', onChainHash }
  return compare({ hash: onChainHash, text: storedText })
}

/** Hashes and cleans each text once. One of 16 kB takes some milliseconds, and the page of a model needs twenty. */
const compare = memoize(
  ({ hash, text }: { readonly hash: Hex; readonly text: string }): PassportMetadata => {
    if (!text.isWellFormed() || metadataHashOf(text) !== hash.toLowerCase())
      return { status: 'mismatch', onChainHash: hash }
    const metadata = parseJson(text)
    return { status: 'match', value: untrustedOf(metadata), hash, details: detailsHashOf(metadata) }
  },
  { max: 20_000, maxLength: 16_000_000, keyOf: ({ hash, text }) => hash + text },
)
