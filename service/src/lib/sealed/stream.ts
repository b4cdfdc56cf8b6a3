/**
 * Streams at rest. They are AES-256-GCM over chunks of 64 KiB, as STREAM (Hoang, Reyhanitabar, Rogaway, Vizár: Online
 * Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance, CRYPTO 2015), with the nonces of the payload of age-encryption.org/v1: a
 * counter of 11 bytes and a byte that marks the last chunk. A chunk that was changed, moved, repeated or removed is found when it is read.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'

/** A stream that was altered, or sealed under another key. */
export class BrokenSeal extends Error {}

type Bytes = AsyncIterable<Uint8Array>
/** `key` has 32 bytes and seals one stream only, because the nonces are counted. `associated` is authenticated with each chunk. */
type Seal = { readonly key: Uint8Array; readonly associated: Uint8Array }

const chunkBytes = 65_536
const tagBytes = 16

/** Yields the sealed chunks, each followed by its tag. */
export async function* sealChunks(source: Bytes, { key, associated }: Seal): AsyncGenerator<Buffer> {
  for await (const { bytes, index, isLast } of split(source, chunkBytes)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(index, isLast)).setAAD(associated)
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }
}

/** Yields the content, a chunk when it is known to be whole. Throws BrokenSeal at the first one that is not. */
export async function* openChunks(source: Bytes, { key, associated }: Seal): AsyncGenerator<Buffer> {
  for await (const { bytes, index, isLast } of split(source, chunkBytes + tagBytes)) {
    if (bytes.length < tagBytes) throw new BrokenSeal('The last chunk is cut off.')
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(index, isLast), { authTagLength: tagBytes })
    decipher.setAAD(associated).setAuthTag(bytes.subarray(-tagBytes))
    const plain = decipher.update(bytes.subarray(0, -tagBytes))
    try {
      decipher.final()
    } catch (error) {
      throw new BrokenSeal(`Chunk ${index} is not what was sealed.`, { cause: error })
    }
    yield plain
  }
}

/** Yields parts of `size` bytes; the last one has 0 to `size`. */
async function* split(
  source: Bytes,
  size: number,
): AsyncGenerator<{ readonly bytes: Buffer; readonly index: number; readonly isLast: boolean }> {
  let [parts, length, index]: [Uint8Array[], number, number] = [[], 0, 0]
  for await (const part of source) {
    parts.push(part)
    length += part.length
    if (length <= size) continue
    let rest = Buffer.concat(parts)
    for (; rest.length > size; rest = rest.subarray(size), index += 1)
      yield { bytes: rest.subarray(0, size), index, isLast: false }
    parts = [rest]
    length = rest.length
  }
  yield { bytes: Buffer.concat(parts), index, isLast: true }
}

function nonceOf(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(index, 5, 6)
  nonce[11] = isLast ? 1 : 0
  return nonce
}
