/** The hash that binds a token to its off-chain metadata, and the check of the texts against it. */
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { type Hex, isBytes, keccak256 } from '../lib/hex.ts'
import { isSameJson, parseUniqueJson } from '../lib/json.ts'
import { untrustedOf } from '../rules/untrusted.ts'
import type { Claim } from './claim.ts'
import { type Check, compare, fails, undecided } from './report.ts'

/**
 * The on-chain `metadataHash` of a metadata document: keccak256 of the UTF-8 bytes of its canonical text (RFC 8785,
 * JCS). The caller makes the canonical text, over the raw document and before any cleaning; it holds no lone
 * surrogates.
 */
export function metadataHashOf(canonicalText: string): Hex {
  return keccak256(utf8ToBytes(canonicalText))
}

/** Reads the metadata document of a hash. */
export type ReadMetadata = (hash: Hex) => Promise<string>

/** Reads the document of the hash on chain; `null` where the contract gives none, or it cannot be read. */
export async function readDocument(hashOnChain: Hex | null, read: ReadMetadata): Promise<string | null> {
  return isBytes(hashOnChain, 32) ? read(hashOnChain).catch(() => null) : null
}

/**
 * Checks that a document has the hash on chain, and that `untrusted` holds its texts and no others. They are undecided without a document,
 * unless the hash is that of none.
 */
export function metadataChecks({ verdict }: Claim, text: string | null, hashOnChain: Hex | null): Check[] {
  if (text !== null) return [hashCheck(text, hashOnChain), textsCheck(verdict['untrusted'], text)]
  const [field, claimed] = ['metadata.texts', 'supplier metadata'] as const
  const isNone = isBytes(hashOnChain, 32) && BigInt(hashOnChain) === 0n
  return [
    isNone
      ? fails(field, claimed, 'the contract has no metadata')
      : undecided(field, claimed, 'the document was not read'),
  ]
}

function hashCheck(text: string, hashOnChain: Hex | null): Check {
  const field = 'metadata.hash'
  // Encoding turns a lone surrogate into U+FFFD, so that two documents would have one hash.
  if (/\p{Surrogate}/u.test(text)) return fails(field, 'a lone surrogate', 'a document in UTF-8')
  const hash = metadataHashOf(text)
  if (!isBytes(hashOnChain, 32)) return undecided(field, hash, 'the contract gives no metadata hash')
  return compare(field, hash, hashOnChain)
}

function textsCheck(untrusted: unknown, text: string): Check {
  const field = 'metadata.texts'
  const metadata = parseUniqueJson(text)
  if (metadata === undefined) return fails(field, untrusted, 'the metadata is not JSON, or names a member twice')
  if (untrusted === undefined) return fails(field, 'left out', 'the texts of the metadata')
  const ok = isSameJson(untrusted, untrustedOf(metadata))
  return { field, ok, claimed: 'supplier metadata', found: ok ? 'what the minter committed to' : 'other texts' }
}
