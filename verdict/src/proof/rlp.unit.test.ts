import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { bytesOf, type Hex, hexOf } from '../lib/hex.ts'
import { decodeRlp, encodeRlp, integerBytes, type RlpItem } from './rlp.ts'

const text = (ascii: string): Uint8Array => new TextEncoder().encode(ascii)

function decode(hex: Hex): RlpItem | null {
  const bytes = bytesOf(hex)
  assert.ok(bytes)
  return decodeRlp(bytes)
}

// The examples of the Ethereum documentation («Recursive-length prefix serialization»).
const examples: [name: string, item: RlpItem, encoded: Hex][] = [
  ['"dog"', text('dog'), '0x83646f67'],
  ['a list of "cat" and "dog"', [text('cat'), text('dog')], '0xc88363617483646f67'],
  ['no bytes', new Uint8Array(), '0x80'],
  ['an empty list', [], '0xc0'],
  ['byte 0', Uint8Array.of(0), '0x00'],
  ['byte 15', Uint8Array.of(15), '0x0f'],
  ['1024', integerBytes(1024n), '0x820400'],
  ['sets of sets', [[], [[]], [[], [[]]]], '0xc7c0c1c0c3c0c1c0'],
  ['55 bytes', text('a'.repeat(55)), `0xb7${'61'.repeat(55)}`],
  ['56 bytes', text('a'.repeat(56)), `0xb838${'61'.repeat(56)}`],
  ['byte 127', Uint8Array.of(127), '0x7f'],
  ['byte 128', Uint8Array.of(128), '0x8180'],
  ['300 bytes', text('a'.repeat(300)), `0xb9012c${'61'.repeat(300)}`],
  ['70,000 bytes', text('a'.repeat(70_000)), `0xba011170${'61'.repeat(70_000)}`],
  ['a list of 56 bytes', [text('a'.repeat(55))], `0xf838b7${'61'.repeat(55)}`],
]

describe('RLP', () => {
  for (const [name, item, encoded] of examples) {
    it(`writes and reads ${name}`, () => {
      assert.equal(hexOf(encodeRlp(item)), encoded)
      assert.deepEqual(decode(encoded), item)
    })
  }

  it('reads back whatever it writes', () => {
    const { item } = fc.letrec<{ item: RlpItem }>((tie) => ({
      item: fc.oneof({ maxDepth: 6 }, fc.uint8Array({ maxLength: 80 }), fc.array(tie('item'), { maxLength: 5 })),
    }))
    fc.assert(fc.property(item, (value) => assert.deepEqual(decodeRlp(encodeRlp(value)), value)))
  })

  it('has one encoding for each item: what it reads, it writes the same', () => {
    const prefixed = fc
      .tuple(
        fc.constantFrom([], [0x80], [0x81], [0xb7], [0xb8, 56], [0xb9, 0, 60], [0xc1], [0xc2], [0xf8, 57]),
        fc.uint8Array({ maxLength: 70 }),
      )
      .map(([prefix, rest]) => Uint8Array.from([...prefix, ...rest]))
    fc.assert(
      fc.property(prefixed, (bytes) => {
        const item = decodeRlp(bytes)
        if (item !== null) assert.deepEqual(encodeRlp(item), bytes)
      }),
      { numRuns: 2000 },
    )
  })

  const wrong: Record<string, Hex> = {
    'nothing at all': '0x',
    'a second item': '0x8080',
    'a byte after the item': '0x83646f6700',
    'a byte below 0x80 with a prefix': '0x8100',
    'byte 127 with a prefix': '0x817f',
    'a length of five bytes, one too many': `0xbc0100000000${'61'.repeat(60)}`,
    'a missing byte': '0x83646f',
    'a long form for a short text': `0xb803646f67`,
    'a long form for 55 bytes': `0xb837${'61'.repeat(55)}`,
    'a length with a leading zero': `0xb90038${'61'.repeat(56)}`,
    'a length without its bytes': '0xb8',
    'a length of 2^64 - 1': '0xbfffffffffffffffff',
    'a list that is cut': '0xc88363617483646f',
    'a list whose last member is cut': '0xc28361',
    'a long form for a short list': '0xf800',
  }
  for (const [name, hex] of Object.entries(wrong)) it(`refuses ${name}`, () => assert.equal(decode(hex), null))

  it('reads a length of four bytes', () => {
    const bytes = new Uint8Array(5 + 2 ** 24)
    bytes.set([0xbb, 1, 0, 0, 0])
    const item = decodeRlp(bytes)
    assert.equal(item?.length, 2 ** 24)
    assert.equal(decodeRlp(bytes.subarray(0, -1)), null)
  })

  it('reads lists nested fifteen deep, and no deeper', () => {
    const nested = (depth: number): RlpItem => (depth === 0 ? Uint8Array.of(1) : [nested(depth - 1)])
    for (const depth of [1, 14, 15]) assert.deepEqual(decodeRlp(encodeRlp(nested(depth))), nested(depth))
    assert.equal(decodeRlp(encodeRlp(nested(16))), null)
  })

  it('refuses lists nested a hundred thousand deep, without running out of stack', () => {
    let length = 0
    const prefixes: number[][] = []
    for (let depth = 0; depth < 100_000; depth += 1) {
      const size = integerBytes(BigInt(length))
      const prefix = length <= 55 ? [0xc0 + length] : [0xf7 + size.length, ...size]
      prefixes.push(prefix)
      length += prefix.length
      if (depth % 20_000 === 0)
        assert.equal(decodeRlp(Uint8Array.from(prefixes.toReversed().flat())) === null, depth > 15)
    }
  })
})
