import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '../lib/hex.ts'
import { zeroAddress } from './address.ts'
import { isOwner } from './owner.ts'
import { ownerCommitment } from './owner-commitment.ts'
import { maxTokenId } from './token-id.ts'
import { verdictOf } from './verdict.ts'

const K = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
const P = '0x3aDc7EFDb58Ae85483eFf5D4966D916185f31d1D'
const M = '0xcA11bde05977b3631167028862bE2a173976CA11'
const A = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const B = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const one = '0x0000000000000000000000000000000000000001'

/** Recompute: cast keccak $(cast abi-encode 'f(uint256,address,uint256,address)' 84532 CONTRACT ID OWNER) */
const vectors: [chainId: number, contract: Hex, tokenId: bigint, owner: Hex, commitment: Hex][] = [
  [84532, K, 1n, A, '0x1712c5463c9d1bdfaf0928e3f1255987052bbc606b5829413c8b061e6616896d'],
  [84532, K, 1n, B, '0x00fbe535dc0623d48bb92130b01e70af72c2ea1b17cb6bfb2ec81e981d82e84c'],
  [84532, K, maxTokenId, B, '0x5dc4eb171a530aaf435bfcb6647bf480a53fd1ed8e2bcbd3bbedabd929d8d2ba'],
  [84532, P, 1n, A, '0x6c829e8ae16576fe31e7a11dfb809e6a0254f866efbc7128a199ce266d2fbe0c'],
  [8453, K, 1n, A, '0x358bda951eb76f0781c15121d56fef03dd572b70a4a6f8dd2e868997d679b3da'],
  [84532, M, 12345678901234567890n, one, '0x5713a2ec5d712c2a5ce80043e643eb4aff6f0b21f558e863d826744255d9f278'],
]

describe('ownerCommitment', () => {
  for (const [chainId, contract, tokenId, owner, commitment] of vectors) {
    it(`of ${owner} for token ${tokenId} of ${contract} on ${chainId}`, () => {
      assert.equal(ownerCommitment({ chainId, contract, tokenId, owner }), commitment)
      const lower = { contract: contract.toLowerCase() as Hex, owner: owner.toLowerCase() as Hex }
      assert.equal(ownerCommitment({ chainId: BigInt(chainId), tokenId, ...lower }), commitment)
    })
  }

  it('returns null for the zero owner', () => {
    assert.equal(ownerCommitment({ chainId: 84532, contract: K, tokenId: 1n, owner: zeroAddress }), null)
  })
})

describe('isOwner', () => {
  const verdict = (owner: Hex) => {
    const record = { owner, timestamp: 1n, state: 4, flags: 0, reserved: 0 } as const
    const made = verdictOf({
      record,
      tokenId: 7n,
      block: { number: 1n, hash: `0x${'ab'.repeat(32)}` },
      contract: K,
      chainId: 84532,
    })
    assert.ok(made)
    return made
  }

  it('accepts the owner in any case, and no other address', () => {
    const held = verdict(A.toLowerCase() as Hex)
    const candidates: Hex[] = [A, A.toLowerCase() as Hex, B, zeroAddress]
    assert.deepEqual(
      candidates.filter((candidate) => isOwner(held, candidate)),
      candidates.slice(0, 2),
    )
  })

  it('is false for an unowned token, a candidate that is no address and a malformed verdict', () => {
    assert.equal(isOwner(verdict(zeroAddress), zeroAddress), false)
    assert.equal(isOwner(verdict(A), '0x1234'), false)
    const held = verdict(A)
    assert.equal(isOwner({ ...held, chainRef: { ...held.chainRef, token_id: '0x7' } }, A), false)
    for (const contract of ['0x7', '', 'x'] as Hex[])
      assert.equal(isOwner({ ...held, chainRef: { ...held.chainRef, contract } }, A), false)
    for (const candidate of ['0x', '0xzz', '0x1'] as Hex[]) assert.equal(isOwner(held, candidate), false)
  })
})
