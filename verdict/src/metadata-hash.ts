/** The hash that binds a token to its off-chain metadata. */
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { type Hex, keccak256 } from './hex.ts'

/**
 * The on-chain `metadataHash` of a metadata document: keccak256 of the UTF-8 bytes of its canonical text (RFC 8785,
 * JCS). The caller makes the canonical text, over the raw document and before any cleaning; it holds no lone
 * surrogates.
 */
export function metadataHashOf(canonicalText: string): Hex {
  return keccak256(utf8ToBytes(canonicalText))
}
