/** The UID of a tag. NXP's chips have 7 bytes, of which the first is 04 (NTAG 424 DNA data sheet, §8.2.3). */
import { parseHex } from '../lib/bytes.ts'

/** Parses a UID of 14 hex digits, or returns null. */
export function parseTagUid(text: string): Uint8Array | null {
  return /^04[0-9a-fA-F]{12}$/.test(text) ? parseHex(text) : null
}
