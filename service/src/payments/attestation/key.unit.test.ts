import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { describe, it } from 'node:test'
import { attestationKeyId, attestationSigner, type Hex } from '@touchstone/verdict'
import { hexToBytes } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { AttestationKey } from './attest.ts'
import { kmsKey, localKey } from './key.ts'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
describe('a key in memory', () => {
  const privateKey = generatePrivateKey()
  const key = localKey(hexToBytes(privateKey))

  it('signs a hash, as verifiers recover it', async () => {
    assert.ok(key !== null)
    assert.equal(key.address, privateKeyToAccount(privateKey).address)
    assert.equal(key.keyId, attestationKeyId(key.address))
    const hash: Hex = `0x${'12'.repeat(32)}`
    assert.equal(attestationSigner(hash, await key.sign(hash)), key.address.toLowerCase())
  })

  it('is no key when it is zero, too large, or of another length', () => {
    const words = ['00'.repeat(32), order.toString(16), 'ff'.repeat(32), '01'.repeat(31), '01'.repeat(33), '']
    for (const word of words) assert.equal(localKey(Uint8Array.from(Buffer.from(word, 'hex'))), null)
    assert.ok(localKey(Uint8Array.from(Buffer.from((order - 1n).toString(16), 'hex'))) !== null)
  })
})

/** OpenSSL in the place of a key management service: it signs SHA-256 digests of given messages, s in either half. */
describe('a key in a key management service', () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
  const other = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
  const publicKey = Uint8Array.from(pair.publicKey.export({ type: 'spki', format: 'der' }))
  const { d } = pair.privateKey.export({ format: 'jwk' })
  const address = privateKeyToAccount(`0x${Buffer.from(d ?? '', 'base64url').toString('hex')}`).address

  it('has the address of its public half', () => {
    assert.equal(key(() => new Uint8Array()).address, address)
  })

  it('gives 65 bytes with low s and the v that leads back to it', async () => {
    let turned = 0
    for (let i = 0; i < 40; i += 1) {
      const message = randomBytes(40)
      let der = new Uint8Array()
      const kms = key(() => (der = Uint8Array.from(sign('sha256', message, pair.privateKey))))
      const hash = sha256(message)
      const signature = await kms.sign(hash)
      assert.match(signature, /^0x[0-9a-f]{128}1[bc]$/)
      assert.equal(attestationSigner(hash, signature), address.toLowerCase()) // refuses high s
      if (!Buffer.from(der).toString('hex').endsWith(signature.slice(66, 130))) turned += 1
    }
    assert.ok(turned > 2 && turned < 38, `${turned} of 40 had s in the upper half`)
  })

  it('is handed the digest itself', async () => {
    const message = randomBytes(40)
    const digests: Uint8Array[] = []
    const kms = key((digest) => {
      digests.push(digest)
      return Uint8Array.from(sign('sha256', message, pair.privateKey))
    })
    await kms.sign(sha256(message))
    assert.deepEqual(digests, [hexToBytes(sha256(message))])
  })

  it('throws for the signature of another key, of another digest, and for bytes that are none', async () => {
    const message = randomBytes(40)
    const good = Uint8Array.from(sign('sha256', message, pair.privateKey))
    const bad = [
      Uint8Array.from(sign('sha256', message, other.privateKey)),
      Uint8Array.from(sign('sha256', randomBytes(40), pair.privateKey)),
      new Uint8Array(),
      good.subarray(0, -1),
      Uint8Array.of(...good, 0),
      good.with(0, 0x31),
      good.with(1, 0x10),
      good.with(2, 0x03),
      good.with(3, 0),
      good.with(3, 80),
      Uint8Array.of(0x30, 6, 2, 1, 0, 2, 1, 0),
      Uint8Array.from(randomBytes(64)),
    ]
    for (const answer of bad)
      await assert.rejects(
        key(() => answer).sign(sha256(message)),
        { message: 'The key management service returned a signature of another key.' },
        Buffer.from(answer).toString('hex'),
      )
  })

  it('is no key when its public half is of another curve or no key', () => {
    const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'der' })
    const rsa = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' })
    for (const wrong of [p256, rsa, Buffer.from('no key')])
      assert.equal(kmsKey({ publicKey: Uint8Array.from(wrong), signDigest: async (digest) => digest }), null)
  })

  function key(signDigest: (digest: Uint8Array) => Uint8Array): AttestationKey {
    const found = kmsKey({ publicKey, signDigest: async (digest) => signDigest(digest) })
    assert.ok(found !== null)
    return found
  }
})

function sha256(message: Uint8Array): Hex {
  return `0x${createHash('sha256').update(message).digest('hex')}`
}
