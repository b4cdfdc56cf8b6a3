/** Checks on bytes and encoded texts from outside. To write hex and to join bytes, use `@noble/hashes/utils.js`. */
import { timingSafeEqual } from 'node:crypto'

/** Parses hex of either case without a prefix, or returns `null` when the text is not whole bytes of hex. */
export function parseHex(text: string): Uint8Array | null {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return null
  // A copy, because a small Buffer is a window into memory shared with others.
  return new Uint8Array(Buffer.from(text, 'hex'))
}

/** Decodes percent-encoding once, or returns null where it is broken. */
export function decodePercent(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Decodes UTF-8 without its byte order mark, or returns null for bytes that are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/** Compares in constant time for one length. Bytes of different lengths are not equal. */
export function constantTimeEqual(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right)
}

/** Returns whether a key repeats a part, such as zeros, or `0123456789abcdef` four times. One of 16 random bytes does by a chance of 2^-64. */
export function isPlaceholder(key: Uint8Array): boolean {
  return [1, 2, 4, 8, 16].some((size) => size < key.length && key.every((byte, index) => byte === key[index % size]))
}

/**
 * Returns the body of another service as UTF-8, or null when it has more than `maxBytes`. Its connection is closed then. A declared length
 * is not trusted. Throws what the transport throws.
 */
export async function textWithin(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<string | null> {
  return (await bytesWithin(body, maxBytes))?.toString('utf8') ?? null
}

/** Returns the bytes of a stream, or null when it has more than `maxBytes`. */
export async function bytesWithin(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
