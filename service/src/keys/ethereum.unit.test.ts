import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { describe, it } from 'node:test'
import { attestationSigner, type Hex } from '@touchstone/verdict'
import { hexToBytes } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { secp256k1Order as order } from '../lib/secp256k1.ts'
import { accountOf, localEthereumKey, storedEthereumKey, type EthereumKey } from './ethereum.ts'
import type { SigningKey } from './key.ts'

const privateKey = generatePrivateKey()
const known = privateKeyToAccount(privateKey)

function inMemory(): EthereumKey {
  return localEthereumKey(hexToBytes(privateKey)) ?? assert.fail('no key')
}

describe('a key in memory', () => {
  it('signs a hash, as verifiers recover it', async () => {
    const key = inMemory()
    assert.equal(key.address, known.address)
    const hash: Hex = `0x${'12'.repeat(32)}`
    assert.equal(attestationSigner(hash, await key.sign(hash)), key.address.toLowerCase())
  })

  it('is no key when it is zero, too large, or of another length', () => {
    const words = ['00'.repeat(32), order.toString(16), 'ff'.repeat(32), '01'.repeat(31), '01'.repeat(33), '']
    for (const word of words) assert.equal(localEthereumKey(Uint8Array.from(Buffer.from(word, 'hex'))), null)
    assert.ok(localEthereumKey(Uint8Array.from(Buffer.from((order - 1n).toString(16), 'hex'))) !== null)
  })
})

describe('an account of viem', () => {
  it('signs messages, typed data and transactions as viem’s own account', async () => {
    const account = accountOf(inMemory())
    const message = 'a message'
    assert.equal(await account.signMessage({ message }), await known.signMessage({ message }))
    const typed = {
      domain: { name: 'Touchstone', chainId: 84532 },
      types: { Claim: [{ name: 'tokenId', type: 'uint256' }] },
      primaryType: 'Claim',
      message: { tokenId: 7n },
    } as const
    assert.equal(await account.signTypedData(typed), await known.signTypedData(typed))
    for (let nonce = 0; nonce < 4; nonce++) {
      const fees = { maxFeePerGas: 2n, maxPriorityFeePerGas: 1n }
      const transaction = { type: 'eip1559', chainId: 84532, nonce, gas: 21_000n, to: known.address, ...fees } as const
      assert.equal(await account.signTransaction(transaction), await known.signTransaction(transaction))
    }
  })
})

/** OpenSSL in the place of a key store: it signs SHA-256 digests of given messages, s in either half. */
describe('a key in a key store', () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
  const other = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
  const { d, x = '', y = '' } = pair.privateKey.export({ format: 'jwk' })
  const bytes = [Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]
  const publicKey = Uint8Array.from(Buffer.concat(bytes))
  const address = privateKeyToAccount(`0x${Buffer.from(d ?? '', 'base64url').toString('hex')}`).address
  const signatureOf = (message: Uint8Array, key = pair.privateKey) =>
    Uint8Array.from(sign('sha256', message, { key, dsaEncoding: 'ieee-p1363' }))

  it('has the address of its public half', () => {
    assert.equal(stored(() => new Uint8Array()).address, address)
  })

  it('gives 65 bytes with low s and the v that leads back to it', async () => {
    let turned = 0
    for (let i = 0; i < 40; i += 1) {
      const message = randomBytes(40)
      let raw = new Uint8Array()
      const signature = await stored(() => (raw = signatureOf(message))).sign(sha256(message))
      assert.match(signature, /^0x[0-9a-f]{128}1[bc]$/)
      assert.equal(attestationSigner(sha256(message), signature), address.toLowerCase()) // refuses high s
      if (!Buffer.from(raw).toString('hex').endsWith(signature.slice(66, 130))) turned += 1
    }
    assert.ok(turned > 2 && turned < 38, `${turned} of 40 had s in the upper half`)
  })

  it('is handed the digest itself', async () => {
    const message = randomBytes(40)
    const digests: Uint8Array[] = []
    const key = stored((digest) => {
      digests.push(digest)
      return signatureOf(message)
    })
    await key.sign(sha256(message))
    assert.deepEqual(digests, [hexToBytes(sha256(message))])
  })

  it('throws for the signature of another key, of another digest, and for bytes that are none', async () => {
    const message = randomBytes(40)
    const good = signatureOf(message)
    const bad = [
      signatureOf(message, other.privateKey),
      signatureOf(randomBytes(40)),
      new Uint8Array(),
      good.subarray(0, -1),
      Uint8Array.of(...good, 0),
      new Uint8Array(64),
      Uint8Array.of(...good.subarray(0, 32), ...new Uint8Array(32)),
      Uint8Array.from(randomBytes(64)),
    ]
    for (const answer of bad)
      await assert.rejects(
        stored(() => answer).sign(sha256(message)),
        { message: 'The key store signed with another key than operator.' },
        Buffer.from(answer).toString('hex'),
      )
  })

  it('is refused on another curve', () => {
    assert.throws(() => stored(() => new Uint8Array(), 'P-256'), /^Error: The key operator is on P-256/)
  })

  function stored(signed: (digest: Uint8Array) => Uint8Array, curve: SigningKey['curve'] = 'secp256k1'): EthereumKey {
    return storedEthereumKey({ name: 'operator', curve, publicKey, sign: async (digest) => signed(digest) })
  }
})

function sha256(message: Uint8Array): Hex {
  return `0x${createHash('sha256').update(message).digest('hex')}`
}
