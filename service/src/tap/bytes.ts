/** Bytes as the tag documents write them: hex, joined with `||` (spec §4.4; NXP AN12196). */
import { timingSafeEqual } from 'node:crypto'

/** Upper-case hex, the form a chip mirrors into its address. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex').toUpperCase()
}

/** Reads hex of either case, or returns `null` when the text is not whole bytes of hex. */
export function bytesOf(hex: string): Uint8Array | null {
  if (hex.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(hex)) return null
  // A copy, because a small Buffer is a window into memory shared with others.
  return Uint8Array.from(Buffer.from(hex, 'hex'))
}

/** ASCII (or UTF-8) bytes of a text. */
export function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** The documents' `||`. */
export function join(...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** An unsigned number of `width` bytes, least significant first, as the chip counts. */
export function littleEndian(value: number, width: number): Uint8Array {
  return Uint8Array.from({ length: width }, (_, index) => Math.floor(value / 256 ** index) & 0xff)
}

/** Compares in constant time; bytes of different length are not the same. */
export function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right)
}

/** XOR of two byte strings of one length. */
export function xor(left: Uint8Array, right: Uint8Array): Uint8Array {
  return left.map((byte, index) => byte ^ (right[index] ?? 0))
}
