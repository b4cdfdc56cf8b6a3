/** Ethereum addresses and their checksummed form (EIP-55). */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { Hex } from '../lib/hex.ts'

/** The zero address: the owner of a token that has none. */
export const zeroAddress: Hex = '0x0000000000000000000000000000000000000000'

/** Is this `0x` and 40 hex digits? The letters may have any case: a checksum is not demanded and not checked. */
export function isAddress(text: unknown): text is Hex {
  return typeof text === 'string' && /^0x[0-9a-fA-F]{40}$/.test(text)
}

/**
 * Returns the address with EIP-55 capitals. A letter is upper case where keccak256 of the lower-case digits has a
 * nibble of 8 or more.
 */
export function checksumAddress(address: Hex): Hex {
  if (last?.address === address) return last.checksummed
  const digits = address.slice(2).toLowerCase()
  const hash = bytesToHex(keccak_256(utf8ToBytes(digits)))
  const mixed = digits.replace(/[a-f]/g, (letter, at: number) =>
    Number.parseInt(hash[at] ?? '0', 16) >= 8 ? letter.toUpperCase() : letter,
  )
  last = { address, checksummed: `0x${mixed}` }
  return last.checksummed
}

/** A service reads one contract over and over. */
let last: { readonly address: Hex; readonly checksummed: Hex } | undefined
