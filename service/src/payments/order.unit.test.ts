import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { attestationDigest } from '@touchstone/verdict'
import fc from 'fast-check'
import { encodeAbiParameters, keccak256, parseTransaction, type Hex } from 'viem'
import { isAttestable, parseOrder } from './order.ts'

const word = (head: string) => BigInt(`0x${head.padEnd(64, '0')}`)
const types = ['uint256', 'uint8', 'uint256', 'uint64'].map((type) => ({ type }))

/** The bytes whose hash is signed. */
const signedBytes = (tokenId: bigint, timestamp: bigint): Hex =>
  encodeAbiParameters(types, [tokenId, 3, 84532n, timestamp])

describe('an order', () => {
  it('binds a payment to the asset, and to the EAS attestation where it is asked for', () => {
    const hashOf = (body: object) => {
      const parsed = parseOrder(JSON.stringify(body))
      assert.equal(parsed.kind, 'order')
      return parsed.order.requestHash
    }
    const plain = createHash('sha256').update('["5","base-sepolia"]').digest('hex')
    assert.equal(hashOf({ assetId: '05' }), plain)
    assert.equal(hashOf({ assetId: '5', chain: 'base-sepolia', eas: false }), plain)
    assert.equal(new Set([plain, hashOf({ assetId: '5', eas: true }), hashOf({ assetId: '6', eas: true })]).size, 3)
  })
})

describe('ids that may be attested', () => {
  it('are all but those that begin like a transaction of 128 bytes', () => {
    for (const head of ['f87e', '00f87d', '01f87d', '02f87d', '7ff87d'])
      assert.equal(isAttestable(word(head)), false, head)
    for (const head of ['f87d', '80f87d', '02f87c', '02f87e', 'f77e'])
      assert.equal(isAttestable(word(head)), true, head)
    for (const tokenId of [0n, 1n, 2n ** 256n - 1n]) assert.equal(isAttestable(tokenId), true)
  })

  it('never make the signed bytes a transaction, whatever follows the head', () => {
    const tails = fc.bigInt({ min: 0n, max: 2n ** 232n - 1n })
    const heads = fc.oneof(
      fc.constantFrom(0xf87e00n, 0x02f87dn, 0x01f87dn, 0x03f87dn, 0x04f87dn),
      fc.bigInt({ min: 0n, max: 2n ** 24n - 1n }),
    )
    fc.assert(
      fc.property(heads, tails, fc.bigInt({ min: 0n, max: 2n ** 40n }), (head, tail, timestamp) => {
        const tokenId = (head << 232n) + tail
        const bytes = signedBytes(tokenId, timestamp)
        assert.equal(attestationDigest({ tokenId, state: 3, chainId: 84532, timestamp }), keccak256(bytes))
        if (isAttestable(tokenId)) assert.throws(() => parseTransaction(bytes))
      }),
    )
  })

  it('leave out the crafted id that is a contract creation on this chain', () => {
    // 0x02 f8 7d, chain id 84532, nonce 0, fees and gas, no recipient, value. The data field takes in the other words.
    const tokenId = word('02f87d83014a34800101830186a0808080f85780')
    assert.equal(isAttestable(tokenId), false)
  })
})
