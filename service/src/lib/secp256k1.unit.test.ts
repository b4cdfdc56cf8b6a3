import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { attestationSigner } from '@touchstone/verdict'
import fc from 'fast-check'
import { bytesToHex, hexToBytes, type Hex } from 'viem'
import { privateKeyToAddress, sign } from 'viem/accounts'
import { recoverSigner, signDigest } from './secp256k1.ts'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const bytes = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((value) => bytesToHex(value))
const key = bytes(32).filter((hex) => BigInt(hex) > 0n && BigInt(hex) < order)

describe('secp256k1', () => {
  it('signs as viem does (RFC 6979), and recovers the address', async () => {
    await fc.assert(
      fc.asyncProperty(key, bytes(32), async (privateKey, digest) => {
        const signature = signDigest(digest, hexToBytes(privateKey))
        assert.equal(signature, await sign({ hash: digest, privateKey, to: 'hex' }))
        assert.equal(recoverSigner(digest, signature), privateKeyToAddress(privateKey).toLowerCase())
      }),
      { numRuns: 20 },
    )
  })

  it('agrees with the client library on any 65 bytes', () => {
    fc.assert(
      fc.property(bytes(32), bytes(64), fc.constantFrom('00', '1b', '1c', '1d'), (digest, parts, v) => {
        const signature: Hex = `${parts}${v as '1b'}`
        assert.equal(recoverSigner(digest, signature), attestationSigner(digest, signature))
      }),
      { numRuns: 60 },
    )
  })

  it('rejects a high s, values out of range and other lengths', () => {
    const digest: Hex = `0x${'22'.repeat(32)}`
    const signature = signDigest(digest, hexToBytes(`0x${'11'.repeat(32)}`))
    const s = order - BigInt(`0x${signature.slice(66, 130)}`)
    const v = signature.endsWith('1b') ? '1c' : '1b'
    assert.equal(recoverSigner(digest, `0x${signature.slice(2, 66)}${s.toString(16).padStart(64, '0')}${v}`), null)
    assert.equal(recoverSigner(digest, `0x${'00'.repeat(64)}1b`), null)
    assert.equal(recoverSigner(digest, `0x${'ff'.repeat(64)}1b`), null)
    assert.equal(recoverSigner(digest, signature.slice(0, 130) as Hex), null)
    assert.equal(recoverSigner('0x22', signature), null)
  })
})
