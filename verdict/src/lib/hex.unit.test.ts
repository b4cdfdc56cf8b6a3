import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bytesOf, isBytes, numberOf } from './hex.ts'

describe('isBytes', () => {
  it('takes exactly so many bytes in lower case', () => {
    assert.deepEqual([isBytes('0x', 0), isBytes('0x00', 1), isBytes('0x09af', 2)], [true, true, true])
    for (const text of ['0x0', '0x000', '0x0A', '0X0a', '000a', 'a0x0', '0x0g', '0x0\n', '0x', '', 10, null, ['0x0a']])
      assert.equal(isBytes(text, 1), false, String(text))
    assert.equal(isBytes({ length: 4, toString: () => '0x0a' }, 1), false)
  })
})

describe('bytesOf', () => {
  it('reads whole bytes of either case', () => {
    assert.deepEqual(bytesOf('0x'), new Uint8Array())
    assert.deepEqual(bytesOf('0x09aF'), Uint8Array.of(9, 0xaf))
    for (const text of ['', 'x', '0x0', '0x0g', '0x0g00', 'a00x', '00', '0X00', '0x00\n0', ['0x'], 0, null])
      assert.equal(bytesOf(text), null, String(text))
  })
})

describe('numberOf', () => {
  it('is zero for no bytes, and big-endian', () => {
    assert.equal(numberOf(new Uint8Array()), 0n)
    assert.equal(numberOf(Uint8Array.of(1, 0)), 256n)
  })
})
