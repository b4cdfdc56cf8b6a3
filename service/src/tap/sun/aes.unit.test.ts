import assert from 'node:assert/strict'
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { cmac } from '@noble/ciphers/aes.js'
import fc from 'fast-check'
import { cbcDecrypt, cbcEncrypt, cmacOnce, createAesKey, embeddedKey, wordsOf, twoBlockMac } from './aes.ts'
import { toHex } from '../bytes.ts'

const keyBytes = fc.uint8Array({ minLength: 16, maxLength: 16 })

describe('AES-CMAC, RFC 4493 §4', () => {
  const key = hexToBytes('2b7e151628aed2a6abf7158809cf4f3c')
  const message = hexToBytes(
    '6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710',
  )
  const macs: Readonly<Record<number, string>> = {
    0: 'bb1d6929e95937287fa37d129b756746',
    16: '070a16b46b4d4144f79bdd9dd04a287c',
    40: 'dfa66747de9ae63030ca32611497c827',
    64: '51f0bebf7e3b9d92fc49741779363cfe',
  }
  for (const [length, mac] of Object.entries(macs)) {
    it(`gives the published MAC of ${length} bytes`, () => {
      const part = message.subarray(0, Number(length))
      assert.equal(toHex(createAesKey(key).cmac(part)), mac.toUpperCase())
      assert.equal(toHex(cmacOnce(key, part)), mac.toUpperCase())
    })
  }

  it('is what noble computes without kept schedules, for any key and message', () => {
    fc.assert(
      fc.property(keyBytes, fc.uint8Array({ maxLength: 70 }), (anyKey, anyMessage) => {
        const expected = toHex(cmac(anyMessage, anyKey))
        assert.equal(toHex(createAesKey(anyKey).cmac(anyMessage)), expected)
        assert.equal(toHex(cmacOnce(anyKey, anyMessage)), expected)
      }),
    )
  })
})

describe('the MAC over two blocks (AN10922 §2.2)', () => {
  const key = new Uint8Array(16).fill(7)

  it('pads any message of up to 16 bytes with 80 and zeros to 32 bytes, and masks the second block with K2', () => {
    const encrypt = (block: Uint8Array) => createCipheriv('aes-128-ecb', key, null).update(block)
    const doubled = (block: Uint8Array) => {
      const value = BigInt(`0x${toHex(block)}`) << 1n
      const reduced = value >> 128n === 1n ? (value ^ 0x87n) & (2n ** 128n - 1n) : value
      return hexToBytes(reduced.toString(16).padStart(32, '0'))
    }
    const k2 = doubled(doubled(encrypt(new Uint8Array(16))))
    for (let length = 0; length <= 16; length++) {
      const message = Uint8Array.from({ length }, (_byte, index) => 0xa0 + index)
      const padded = new Uint8Array(32)
      padded.set([...message, 0x80])
      const first = encrypt(padded.subarray(0, 16))
      const second = Uint8Array.from({ length: 16 }, (_byte, index) => {
        return (first[index] ?? 0) ^ (padded[16 + index] ?? 0) ^ (k2[index] ?? 0)
      })
      assert.equal(toHex(twoBlockMac(key, message)), toHex(encrypt(second)))
    }
  })

  it('refuses a longer message', () => {
    assert.throws(() => twoBlockMac(key, new Uint8Array(17)), RangeError)
  })
})

describe('AES blocks', () => {
  it('are those of node:crypto, and leave their input as it is', () => {
    fc.assert(
      fc.property(keyBytes, keyBytes, (key, block) => {
        const before = block.slice()
        const aes = createAesKey(key)
        const cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false)
        assert.equal(toHex(aes.encryptBlock(block)), toHex(cipher.update(block)))
        const decipher = createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false)
        const plain = decipher.update(block)
        assert.equal(toHex(aes.ecbDecrypt(block)), toHex(plain))
        assert.equal(aes.firstByte(wordsOf(block)), plain[0])
        assert.deepEqual(block, before)
      }),
    )
  })

  it('chain in CBC as in node:crypto, there and back', () => {
    const blocks = fc.uint8Array({ minLength: 48, maxLength: 48 })
    fc.assert(
      fc.property(keyBytes, keyBytes, blocks, (key, iv, plain) => {
        const cipher = createCipheriv('aes-128-cbc', key, iv).setAutoPadding(false)
        const sealed = cbcEncrypt(key, iv, plain)
        assert.equal(toHex(sealed), toHex(cipher.update(plain)))
        assert.deepEqual(cbcDecrypt(key, iv, sealed), plain)
      }),
    )
  })

  it('have 16 bytes, as have the keys', () => {
    assert.throws(() => createAesKey(new Uint8Array(15)), RangeError)
    assert.throws(() => createAesKey(new Uint8Array(32)), RangeError)
    for (const length of [0, 15, 17])
      assert.throws(() => createAesKey(new Uint8Array(16)).encryptBlock(new Uint8Array(length)), RangeError)
  })
})

describe('keys in memory', () => {
  it('are of no use after destroy', () => {
    const key = createAesKey(hexToBytes('2b7e151628aed2a6abf7158809cf4f3c'))
    const block = new Uint8Array(16)
    const before = [toHex(key.cmac(block)), toHex(key.ecbDecrypt(block))]
    key.destroy()
    const after = [toHex(key.cmac(block)), toHex(key.ecbDecrypt(block))]
    assert.notEqual(after[0], before[0])
    assert.notEqual(after[1], before[1])
  })

  it('are zeros after they were destroyed, and sign neither as before nor under zeros', () => {
    const bytes = hexToBytes('2b7e151628aed2a6abf7158809cf4f3c')
    const key = embeddedKey(bytes)
    const block = new Uint8Array(16)
    const answers = (other: ReturnType<typeof embeddedKey>) =>
      [other.cmac(block), other.ecbDecrypt(block), other.secret?.() ?? block].map((answer) =>
        toHex(answer as Uint8Array),
      )
    const refused = new Set([...answers(key), ...answers(embeddedKey(new Uint8Array(16)))])
    assert.equal(key.destroyed?.aborted, false)
    key.destroy?.()
    assert.equal(toHex(bytes), '0'.repeat(32))
    assert.equal(key.destroyed?.aborted, true)
    for (const answer of answers(key)) assert.ok(!refused.has(answer))
  })

  it('answer after destroy under random bytes, which no forger can prepare for', () => {
    const block = new Uint8Array(16)
    const answers = [1, 2].map(() => {
      const key = embeddedKey(new Uint8Array(16).fill(7))
      key.destroy?.()
      const random = embeddedKey(key.secret?.() ?? block)
      assert.deepEqual(key.cmac(block), random.cmac(block))
      assert.deepEqual(key.ecbDecrypt(block), random.ecbDecrypt(block))
      return toHex(key.cmac(block) as Uint8Array)
    })
    assert.notEqual(answers[0], answers[1])
  })

  it('are kept apart from the array they were made of', () => {
    const bytes = new Uint8Array(16).fill(7)
    const key = createAesKey(bytes)
    bytes.fill(0)
    const block = new Uint8Array(16).fill(1)
    const decipher = createDecipheriv('aes-128-ecb', new Uint8Array(16).fill(7), null).setAutoPadding(false)
    assert.equal(toHex(key.ecbDecrypt(block)), toHex(decipher.update(block)))
  })

  it('of another length than 16 only give their bytes', () => {
    const bulk = embeddedKey(new Uint8Array(32).fill(7))
    assert.equal(bulk.secret?.().length, 32)
    assert.throws(() => bulk.cmac(new Uint8Array(1)), RangeError)
    bulk.destroy?.()
    assert.equal(bulk.secret?.().length, 32)
    assert.throws(() => bulk.cmac(new Uint8Array(1)), RangeError)
  })
})
