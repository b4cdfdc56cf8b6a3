import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { encodeAbiParameters, encodePacked, type Hex } from 'viem'
import { encodeAddress, encodeWord, padToWords } from './words.ts'

describe('words of the contract ABI', () => {
  it('agree with a general encoder', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), fc.uint8Array({ size: '+1' }), (number, bytes) => {
        assert.equal(`0x${encodeWord(number)}`, encodeAbiParameters([{ type: 'uint256' }], [number]))
        const hex = Buffer.from(bytes).toString('hex')
        const encoded = encodeAbiParameters([{ type: 'bytes' }], [encodePacked(['bytes'], [`0x${hex}`])])
        assert.equal(`0x${encodeWord(32)}${encodeWord(bytes.length)}${padToWords(hex)}`, encoded)
      }),
    )
    const address: Hex = '0x00112233445566778899aAbBcCdDeEfF00112233'
    const lower = address.toLowerCase() as Hex
    assert.equal(`0x${encodeAddress(address)}`, encodeAbiParameters([{ type: 'address' }], [lower]))
  })

  it('have no room for a negative or a larger number', () => {
    for (const number of [-1, -1n, 2n ** 256n]) assert.throws(() => encodeWord(number), RangeError)
  })
})
