/** Bytes in the notation of the NTAG 424 DNA documents: upper-case hex, little-endian numbers, `||` (spec §4.4; NXP AN12196). */
import { bytesToHex } from '@noble/hashes/utils.js'

/** Formats bytes as upper-case hex, as a chip mirrors them into its URL. */
export function toHex(bytes: Uint8Array): string {
  return bytesToHex(bytes).toUpperCase()
}

/** Concatenates byte strings, the documents' `||`. */
export function join(...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Encodes an unsigned number in `width` bytes, least significant first. */
export function littleEndian(value: number, width: number): Uint8Array {
  const bytes = new Uint8Array(width)
  for (let index = 0; index < width; index++) bytes[index] = Math.floor(value / 256 ** index) & 0xff
  return bytes
}

/** XORs two byte strings of one length. */
export function xor(left: Uint8Array, right: Uint8Array): Uint8Array {
  return left.map((byte, index) => byte ^ (right[index] ?? 0))
}
