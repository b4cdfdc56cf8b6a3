import assert from 'node:assert/strict'
import { createDecipheriv, randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { BrokenSeal, openChunks, sealChunks } from './stream.ts'

const seal = { key: randomBytes(32), associated: Buffer.from('head') }
const chunk = 65_536
const sealedChunk = chunk + 16

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of source) parts.push(part)
  return Buffer.concat(parts)
}
const sealed = (bytes: Uint8Array) => collect(sealChunks(pieces(bytes, 10_000), seal))
const opened = (bytes: Uint8Array, by = seal) => collect(openChunks(pieces(bytes, 7_777), by))
const broken = (bytes: Uint8Array, by = seal) => assert.rejects(opened(bytes, by), BrokenSeal)

describe('a sealed stream', () => {
  const content = randomBytes(2 * chunk + 100)

  it('gives back what was sealed, whatever its length and the pieces that it arrives in', async () => {
    for (const length of [0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 5]) {
      const bytes = randomBytes(length)
      const closed = await sealed(bytes)
      assert.equal(closed.length, length + 16 * Math.max(1, Math.ceil(length / chunk)))
      assert.deepEqual(await opened(closed), bytes)
    }
  })

  it('is AES-256-GCM under a counter and a mark of the last chunk', async () => {
    const closed = await sealed(content)
    const second = closed.subarray(sealedChunk, 2 * sealedChunk)
    const decipher = createDecipheriv('aes-256-gcm', seal.key, Buffer.from('000000000000000000000100', 'hex'))
    decipher.setAAD(seal.associated).setAuthTag(second.subarray(-16))
    const plain = Buffer.concat([decipher.update(second.subarray(0, -16)), decipher.final()])
    assert.deepEqual(plain, content.subarray(chunk, 2 * chunk))
  })

  it('is refused when a byte is changed', async () => {
    const closed = await sealed(content)
    await fc.assert(
      fc.asyncProperty(fc.nat(closed.length - 1), fc.integer({ min: 1, max: 255 }), async (at, bits) => {
        const changed = Buffer.from(closed)
        changed[at] = (changed[at] ?? 0) ^ bits
        await broken(changed)
      }),
      { numRuns: 30 },
    )
  })

  it('is refused when it is cut off, also between two chunks', async () => {
    const closed = await sealed(content)
    for (const length of [0, 1, 15, sealedChunk - 1, sealedChunk, 2 * sealedChunk, closed.length - 1])
      await broken(closed.subarray(0, length))
  })

  it('is refused when chunks are swapped, repeated, removed or added', async () => {
    const closed = await sealed(content)
    const [one, two, last] = [
      closed.subarray(0, sealedChunk),
      closed.subarray(sealedChunk, 2 * sealedChunk),
      closed.subarray(2 * sealedChunk),
    ]
    for (const chunks of [
      [two, one, last],
      [one, one, last],
      [one, two, two, last],
      [one, last],
      [one, two, last, last],
      [one, two, last, Buffer.alloc(1)],
    ])
      await broken(Buffer.concat(chunks))
  })

  it('is refused under another key or another head', async () => {
    const closed = await sealed(content)
    await broken(closed, { ...seal, key: randomBytes(32) })
    await broken(closed, { ...seal, associated: Buffer.from('Head') })
  })
})
