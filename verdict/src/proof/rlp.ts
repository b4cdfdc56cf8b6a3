/** RLP: a strict reader, and the writer that header hashes need (Ethereum Yellow Paper, appendix B). */
import { concatBytes } from '@noble/hashes/utils.js'

/** A byte string or a list of items. */
export type RlpItem = Uint8Array | readonly RlpItem[]

/** Nothing in a header or trie node nests deeper; a bound keeps hostile input off the call stack. */
const deepest = 16

/**
 * Reads exactly one RLP item that fills the bytes, or returns `null`. Only the canonical form is accepted: a byte below
 * 0x80 stands for itself, lengths are the shortest possible, nothing is missing and nothing follows.
 */
export function decodeRlp(bytes: Uint8Array): RlpItem | null {
  const items = decodeAll(bytes, deepest)
  return items?.length === 1 ? (items[0] ?? null) : null
}

/** Writes an item in canonical RLP. */
export function encodeRlp(item: RlpItem): Uint8Array {
  if (!(item instanceof Uint8Array)) return withLength(0xc0, concatBytes(...item.map(encodeRlp)))
  return item.length === 1 && (item[0] ?? 0) < 0x80 ? item : withLength(0x80, item)
}

/** The shortest big-endian bytes of a number; zero has none. */
export function integerBytes(value: bigint): Uint8Array {
  const bytes: number[] = []
  for (let rest = value; rest > 0n; rest >>= 8n) bytes.unshift(Number(rest & 0xffn))
  return Uint8Array.from(bytes)
}

/** Items one after another up to the end of the bytes. */
function decodeAll(bytes: Uint8Array, depth: number): RlpItem[] | null {
  if (depth === 0) return null
  const items: RlpItem[] = []
  for (let at = 0; at < bytes.length;) {
    const span = spanAt(bytes, at)
    if (span === null) return null
    const payload = bytes.subarray(span.start, span.end)
    const item = span.list ? decodeAll(payload, depth - 1) : payload
    if (item === null) return null
    items.push(item)
    at = span.end
  }
  return items
}

/**
 * Returns the bounds of the payload of the item at a position. Returns `null` when the item's prefix is not canonical
 * or the bytes end before it does.
 */
function spanAt(bytes: Uint8Array, at: number): { list: boolean; start: number; end: number } | null {
  const prefix = bytes[at] ?? 0
  if (prefix < 0x80) return { list: false, start: at, end: at + 1 }
  const list = prefix >= 0xc0
  const short = prefix - (list ? 0xc0 : 0x80)
  const lengthBytes = Math.max(short - 55, 0)
  const start = at + 1 + lengthBytes
  const length = short <= 55 ? short : longLength(bytes.subarray(at + 1, start))
  if (length === null || start + length > bytes.length) return null
  const end = start + length
  const standsForItself = !list && length === 1 && (bytes[start] ?? 0) < 0x80
  return standsForItself ? null : { list, start, end }
}

/** A length of more than 55 without leading zeros. Four bytes are ample, and keep the sum a safe integer. */
function longLength(bytes: Uint8Array): number | null {
  if (bytes.length > 4 || bytes[0] === 0) return null
  const length = bytes.reduce((sum, byte) => sum * 256 + byte, 0)
  return length > 55 ? length : null
}

function withLength(offset: number, payload: Uint8Array): Uint8Array {
  if (payload.length <= 55) return concatBytes(Uint8Array.of(offset + payload.length), payload)
  const length = integerBytes(BigInt(payload.length))
  return concatBytes(Uint8Array.of(offset + 55 + length.length), length, payload)
}
