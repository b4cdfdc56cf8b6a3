import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { constantTimeEqual, decodePercent, isPlaceholder, parseHex } from './bytes.ts'

describe('percent-encoding', () => {
  it('is decoded once, and null where it is broken', () => {
    const texts = [
      ['a%20b', 'a b'],
      ['%2525', '%25'],
      ['%', null],
      ['%e4', null],
    ] as const
    for (const [text, decoded] of texts) assert.equal(decodePercent(text), decoded, text)
  })
})

describe('hex', () => {
  it('is parsed in either case', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.boolean(), (bytes, isUpper) => {
        const text = Buffer.from(bytes).toString('hex')
        assert.deepEqual(parseHex(isUpper ? text.toUpperCase() : text), Uint8Array.from(bytes))
      }),
    )
  })

  it('is rejected when it is not whole bytes of hex', () => {
    for (const text of ['0', '0x00', '0g', ' 00', '00\n', '０0']) assert.equal(parseHex(text), null)
  })

  it('has memory of its own', () => {
    assert.equal(parseHex('0102')?.buffer.byteLength, 2)
  })
})

describe('equality in constant time', () => {
  it('is false for other bytes and other lengths', () => {
    assert.ok(constantTimeEqual(Uint8Array.of(1, 2), Uint8Array.of(1, 2)))
    assert.equal(constantTimeEqual(Uint8Array.of(1, 2), Uint8Array.of(1, 3)), false)
    assert.equal(constantTimeEqual(Uint8Array.of(1, 2), Uint8Array.of(1)), false)
  })
})

describe('a key', () => {
  it('is a placeholder where it repeats a part', () => {
    for (const [part, times] of [
      ['00', 16],
      ['ff', 64],
      ['dead', 16],
      ['deadbeef', 8],
      ['0123456789abcdef', 4],
      ['00112233445566778899aabbccddeeff', 2],
      ['00', 33],
    ] as const)
      assert.ok(isPlaceholder(parseHex(part.repeat(times)) ?? assert.fail()), part)
    for (const key of [`${'00'.repeat(31)}01`, `01${'00'.repeat(31)}`, '2b7e151628aed2a6abf7158809cf4f3c'])
      assert.ok(!isPlaceholder(parseHex(key) ?? assert.fail()), key)
  })
})
