import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { constantTimeEqual, decodePercent, parseHex } from './bytes.ts'

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
