/** The owner ends an offer by a tap, and voids what was signed and not sent (decisions/0037). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assetFlags } from '@touchstone/verdict'
import { zeroHash } from 'viem'
import { registryTypedData } from '../../../src/chain/transactions/typed-data.ts'
import { dataOf, newAccount, openOwnership, type OwnershipWorld } from '../../support/pages/ownership.ts'
import { deployVersion1 } from '../../support/version-1.ts'
import { startWorld, type World } from '../../support/world.ts'

describe('the end of an offer', () => {
  let world: World
  let own: OwnershipWorld
  before(async () => {
    world = await startWorld({ env: { PAGE_OWNERSHIP: 'claim,transfer' } })
    own = await openOwnership(world)
  })
  after(() => world?.end())

  it('comes by the tap of the owner, who voids once; neither is for others or for an item in another state', async () => {
    const [seller, recipient, stranger] = [newAccount(), newAccount(), newAccount()]
    const refused = async (fields: object) => own.reasonOf(await own.send('/transfer', fields))
    const offer = { step: 'offer', account: seller.address, to: recipient.address }
    const item = await own.claimed(seller)
    const { transferId, ticket, signed } = await own.offered(item, { seller, to: recipient.address })
    assert.deepEqual(await refused({ ...signed, deadline: '1e9' }), [400, 'invalid'])
    const withdraw = { step: 'withdraw', ticket, account: seller.address }
    for (const wrong of [{ account: '0x12' }, { step: 'void' }, { signature: '0x1' }])
      assert.deepEqual(await refused({ ...withdraw, ...wrong }), [400, 'invalid'])
    assert.deepEqual(await refused({ ...withdraw, account: stranger.address }), [403, 'another'])
    const ending = await own.send('/transfer', withdraw)
    assert.equal(ending.transferId, transferId)
    const end = { ...withdraw, transferId, signature: await seller.signTypedData(dataOf(ending)) }
    assert.equal((await own.send('/transfer', end)).status, 'mined')

    assert.deepEqual(await refused({ ...withdraw, account: stranger.address }), [403, 'notOwner'])
    const voiding = await own.send('/transfer', withdraw)
    assert.equal(voiding.transferId, undefined)
    const voided = { ...withdraw, signature: await seller.signTypedData(dataOf(voiding)) }
    const first = await own.send('/transfer', voided)
    assert.equal(first.status, 'mined')
    assert.deepEqual(await own.send('/transfer', voided), first)

    const { tokenId } = item
    await world.write({ kind: 'flag', tokenId, bits: assetFlags.RECALL, reasonHash: zeroHash })
    assert.deepEqual(await refused({ ...offer, ticket }), [409, 'held'])
    await world.write({ kind: 'resolve', tokenId, bits: assetFlags.RECALL, reasonHash: zeroHash })
    const { transferReads: transfers } = world.components
    const [{ offer: standing }, deadline] = [await transfers.position(tokenId), 2n ** 40n]
    const message = { tokenId, owner: seller.address, nonce: standing.nonce, deadline }
    const signature = await seller.signTypedData(registryTypedData(transfers.domain, 'Recycle', message))
    await world.write({ kind: 'recycleBySig', tokenId, deadline, signature })
    assert.deepEqual(await refused(withdraw), [409, 'taken'])
    assert.deepEqual(await refused({ ...offer, ticket }), [409, 'taken'])
  })
})

describe('the routes of ownership on version 1 of the contract', () => {
  it('void nothing that was signed and not sent, because the contract cannot', async () => {
    const world = await startWorld({ env: { PAGE_OWNERSHIP: 'claim,transfer' }, onChain: deployVersion1 })
    try {
      const own = await openOwnership(world)
      const seller = newAccount()
      const item = await own.claimed(seller)
      const ticket = await own.ticketOf(item)
      const withdraw = { step: 'withdraw', ticket, account: seller.address }
      for (const fields of [withdraw, { ...withdraw, signature: `0x${'11'.repeat(65)}` }])
        assert.deepEqual(own.reasonOf(await own.send('/transfer', fields)), [409, 'taken'])
    } finally {
      await world.end()
    }
  })
})
