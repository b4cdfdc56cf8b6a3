import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { facts } from '../../test/_attestation.ts'
import { attestationSigner } from './signer.ts'
import { type AssetAttestation, assetAttestationDigest, assetAttestationTypedData } from './v2.ts'

// Made with viem 2.57.1 and anvil's published first key.
const digest = '0xd4c59820ed1c532c40fc3064f7a29f917203d1e1045bceefec47ab5b49044dc3'
const signature =
  '0x317eb831e7ab0ecddca9b3e8239b42dec230921e1a5e884e0d4d16cc996b220b3e7fa14e09d017cbb037f899f986dca861887824426feac1da652c9acfb478391b'

describe('assetAttestationDigest', () => {
  it('is the EIP-712 digest', () => {
    assert.equal(assetAttestationDigest(facts), digest)
    assert.equal(attestationSigner(digest, signature), '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266')
  })

  it('depends on every member', () => {
    const others: Partial<AssetAttestation>[] = [
      { tokenId: 2n },
      { state: 4 },
      { flags: 1 },
      { blockNumber: 1 },
      { blockHash: digest },
      { ownerCommitment: null },
      { issuedAt: 1 },
      { chainId: 1 },
      { verifyingContract: '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266' },
    ]
    const digests = others.map((other) => assetAttestationDigest({ ...facts, ...other }))
    assert.equal(new Set([...digests, digest]).size, 10)
  })
})

describe('assetAttestationTypedData', () => {
  it('shows what follows from state and flags, and zero bytes for a token without an owner', () => {
    const { message, domain } = assetAttestationTypedData(facts)
    assert.deepEqual([message.authentic, message.flagged, message.tokenId], [false, true, String(2n ** 256n - 1n)])
    assert.equal(domain.verifyingContract, '0x5FbDB2315678afecb367f032d93F642f64180aa3')
    const unowned = assetAttestationTypedData({ ...facts, state: 4, flags: 0x20, ownerCommitment: null }).message
    assert.deepEqual([unowned.authentic, unowned.flagged], [true, false])
    assert.equal(unowned.ownerCommitment, '0x0000000000000000000000000000000000000000000000000000000000000000')
  })
})
