/** Every kind of write once, with the signatures of owners, recipients and the attester (spec §3, §4.9), on a real anvil. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assetFlags, type Hex } from '@touchstone/verdict'
import { type RegistryMessages, registryTypedData } from '../../../src/chain/transactions/typed-data.ts'
import type { WriteRequest } from '../../../src/chain/transactions/calls.ts'
import {
  alice,
  attester,
  bob,
  codeOf,
  hash,
  minted,
  operator,
  startWriterOver,
} from '../../support/index/writer-world.ts'
import { lazily, useOpened } from '../../support/opened.ts'

const { LOST, RECALL, TAMPER } = assetFlags
const far = 4_000_000_000n
const reasonHash = hash(0x0e)

describe('the writer executes', () => {
  const world = useOpened(startWriterOver)
  const writer = lazily(() => world.writer)
  let count = 0

  const rejection = async (request: WriteRequest) => codeOf(await writer.simulate(request))
  const done = async (request: WriteRequest) =>
    minted(await writer.write(request, { idempotencyKey: String((count += 1)) }))
  const signed = <Type extends keyof RegistryMessages>(
    by: typeof alice,
    type: Type,
    message: RegistryMessages[Type],
  ): Promise<Hex> =>
    by.signTypedData(registryTypedData({ chainId: 84532, contract: world.contract }, type, message) as never)

  async function activated(): Promise<bigint> {
    const [tokenId = 0n] = await done({ kind: 'mint', to: operator.address, metadataHash: hash(1) })
    await done({ kind: 'bindTag', tokenId, tagHash: hash(Number(tokenId) + 1000) })
    await done({ kind: 'activate', tokenId })
    return tokenId
  }
  async function claimed(by: typeof alice): Promise<bigint> {
    const tokenId = await activated()
    const tagHash = hash(Number(tokenId) + 1000)
    const attestation = await writer.attestClaim({
      tokenId,
      tagHash,
      claimant: by.address,
      tapCounter: 1,
      deadline: far,
    })
    assert.ok(attestation.ok)
    const { nonce, attester: attestedBy, attesterSignature } = attestation
    const claimantSignature = await signed(by, 'ClaimConsent', { tokenId, claimant: by.address, nonce, deadline: far })
    const proof = { attester: attestedBy, attesterSignature, claimantSignature }
    await done({ kind: 'claim', tokenId, claimant: by.address, tapCounter: 1, deadline: far, ...proof })
    return tokenId
  }
  const is = async (tokenId: bigint, state: number, flags = 0) => {
    const { owner: _, ...found } = await world.recordOf(tokenId)
    assert.deepEqual(found, { state, flags })
  }

  it('mints: one, a batch in order, under a chosen id; and changes of the metadata hash', async () => {
    const [first = 0n] = await done({ kind: 'mint', to: operator.address, metadataHash: hash(1) })
    const batch = await done({ kind: 'mintBatch', to: operator.address, metadataHashes: [hash(2), hash(0), hash(3)] })
    assert.deepEqual(batch, [first + 1n, first + 2n, first + 3n])
    assert.deepEqual(
      await done({ kind: 'mintWithId', to: operator.address, tokenId: 2n ** 255n, metadataHash: hash(4) }),
      [2n ** 255n],
    )
    await done({ kind: 'setMetadataHash', tokenId: first, metadataHash: hash(9) })
    assert.equal(
      await rejection({ kind: 'mintWithId', to: operator.address, tokenId: first, metadataHash: hash(4) }),
      'TOKEN_ID_TAKEN',
    )
    assert.equal(
      await rejection({ kind: 'mintWithId', to: operator.address, tokenId: 0n, metadataHash: hash(4) }),
      'TOKEN_ID_REFUSED',
    )
  })

  it('claims after a tap, with the consent of the claimant', async () => {
    const tokenId = await claimed(alice)
    await is(tokenId, 4)
    assert.equal((await world.recordOf(tokenId)).owner, alice.address.toLowerCase())
    assert.equal(await rejection({ kind: 'bindTag', tokenId, tagHash: hash(5) }), 'WRONG_STATE')
  })

  it('flags and their clearing by the guardian, and tamper evidence by the attester', async () => {
    const tokenId = await activated()
    await done({ kind: 'flag', tokenId, bits: RECALL, reasonHash })
    await is(tokenId, 5, RECALL)
    assert.equal(await rejection({ kind: 'flag', tokenId, bits: RECALL, reasonHash }), 'FLAGS_ALREADY_SET')
    assert.equal(await rejection({ kind: 'resolve', tokenId, bits: LOST, reasonHash }), 'FLAGS_NOT_SET')
    await done({ kind: 'resolve', tokenId, bits: RECALL, reasonHash })
    await done({ kind: 'flag', tokenId, bits: TAMPER, reasonHash })
    await is(tokenId, 3, TAMPER)
    assert.equal(await rejection({ kind: 'flag', tokenId, bits: 0x40, reasonHash }), 'INVALID_FLAGS')
    assert.equal(await rejection({ kind: 'flag', tokenId, bits: TAMPER | LOST, reasonHash }), 'FLAGS_NOT_ALLOWED')
  })

  it('transfers that the owner and the recipient signed, and their cancelling', async () => {
    const tokenId = await claimed(alice)
    const offer = { tokenId, from: alice.address, to: bob.address, expiry: far, messageHash: hash(3) }
    const signature = await signed(alice, 'InitiateTransfer', { ...offer, nonce: 1 })
    const initiate = {
      kind: 'initiateTransferBySig',
      tokenId,
      to: bob.address,
      expiry: far,
      messageHash: hash(3),
      signature,
    } as const
    assert.equal(await rejection({ ...initiate, to: attester.address }), 'INVALID_SIGNATURE')
    await done(initiate)
    assert.equal(await rejection(initiate), 'INVALID_SIGNATURE')
    const cancel = await signed(bob, 'CancelTransfer', { tokenId, from: alice.address, nonce: 2 })
    await done({ kind: 'cancelTransferBySig', tokenId, signer: bob.address, signature: cancel })
    await done({ ...initiate, signature: await signed(alice, 'InitiateTransfer', { ...offer, nonce: 2 }) })
    const { messageHash: _, ...terms } = offer
    await done({
      kind: 'acceptTransferBySig',
      tokenId,
      signature: await signed(bob, 'AcceptTransfer', { ...terms, nonce: 3 }),
    })
    assert.equal((await world.recordOf(tokenId)).owner, bob.address.toLowerCase())
    assert.equal(await rejection({ kind: 'acceptTransferBySig', tokenId, signature }), 'NO_PENDING_TRANSFER')
  })

  it('restocking of what came back, and recycling by the operator or with the signature of the owner', async () => {
    const own = await claimed(operator)
    await done({ kind: 'restock', tokenId: own })
    await is(own, 3)
    await done({ kind: 'recycle', tokenId: own })
    await is(own, 6)
    const tokenId = await claimed(alice)
    assert.equal(await rejection({ kind: 'recycle', tokenId }), 'NOT_OWNER')
    const reported = await claimed(alice)
    await done({ kind: 'flag', tokenId: reported, bits: 4, reasonHash: hash(0) })
    assert.equal(await rejection({ kind: 'recycle', tokenId: reported }), 'RECYCLE_LOCKED')
    await done({ kind: 'announceRecycle', tokenId: reported })
    assert.equal(await rejection({ kind: 'announceRecycle', tokenId: reported }), 'RECYCLE_LOCKED')
    assert.equal(await rejection({ kind: 'recycle', tokenId: reported }), 'RECYCLE_LOCKED')
    assert.equal(await rejection({ kind: 'restock', tokenId }), 'NOT_OWNER')
    const signature = await signed(alice, 'Recycle', { tokenId, owner: alice.address, nonce: 1, deadline: far })
    assert.equal(await rejection({ kind: 'recycleBySig', tokenId, deadline: 1n, signature }), 'SIGNATURE_EXPIRED')
    await done({ kind: 'recycleBySig', tokenId, deadline: far, signature })
    await is(tokenId, 6)
  })
})
