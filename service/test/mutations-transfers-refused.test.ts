/** What transfers by signature refuse, at which field and why (spec §3, §4.9, §5), against a real chain. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assetFlags, type Hex } from '@touchstone/verdict'
import { startMutationWorld, type MutationWorld } from './_mutations.ts'
import { carol, hours, refusalOf, transferOf, transferSteps } from './_transfers.ts'
import { alice, bob, hash } from './_writer-world.ts'

describe('a transfer by signature is refused', () => {
  let world: MutationWorld
  const { typedData, done, ownedBy, sign, offer, initiate, accept, cancel } = transferSteps(() => world)
  before(async () => void (world = await startMutationWorld()))
  after(() => world.end())
  it('without a signature, saying where one comes from', async () => {
    const productId = await ownedBy(alice.address)
    const values = { productId, toAddress: bob.address }
    refusalOf(await initiate(values), 'signature', /transferTypedData/)
    refusalOf(await accept({ transferId: '7-1' }), 'signature', /transferTypedData with action ACCEPT/)
    refusalOf(await cancel({ transferId: '7-1' }), 'signature', /transferTypedData with action CANCEL/)
    const { signature } = await offer(productId)
    refusalOf(await initiate({ ...values, signature }), 'deadline', /part of what was signed/)
  })

  it('by a signature whose offer is over, with the reason', async () => {
    const input = await offer(await ownedBy(alice.address))
    const { id } = transferOf(await initiate(input))
    const answer = { transferId: id, signature: (await sign({ action: 'CANCEL', transferId: id }, bob)).signature }
    assert.equal((await cancel(answer)).success, true)
    refusalOf(await initiate(input), 'signature', /started transfer \d+-1, which is over/)
    const { signature } = await offer(input.productId)
    refusalOf(await initiate({ ...input, signature, message: 'other words' }), 'signature', /not the owner’s signature/)
  })

  it('by the signature of another account, of other values, and one with high s', async () => {
    const productId = await ownedBy(alice.address)
    const input = await offer(productId)
    refusalOf(await initiate(await offer(productId, { by: carol })), 'signature', /current owner/)
    refusalOf(await initiate({ ...input, toAddress: carol.address }), 'signature', /not the owner’s/)
    refusalOf(await initiate({ ...input, message: 'Not yours.' }), 'signature', /not the owner’s/)
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const { signature } = input
    const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
    const high = signature.slice(0, 66) + s + (signature.endsWith('1b') ? '1c' : '1b')
    refusalOf(await initiate({ ...input, signature: high }), 'signature', /low s/)
    refusalOf(await initiate({ ...input, signature: '0x1234' }), 'signature', /not the owner’s/)
    refusalOf(await initiate({ ...input, signature: 'signed' }), 'signature', /0x and hex digits/)
    assert.equal((await initiate(input)).success, true)
  })

  it('while another is pending, to the owner, to nobody, and of what is not there', async () => {
    const productId = await ownedBy(alice.address)
    const [first, second] = [await offer(productId), await offer(productId, { to: carol.address })]
    assert.equal((await initiate(first)).success, true)
    refusalOf(await initiate(second), 'productId', new RegExp(`Transfer ${productId}-1 .* is pending until`))
    refusalOf(await typedData({ productId, toAddress: carol.address }), 'productId', /pending/)
    const other = await ownedBy(alice.address)
    refusalOf(await typedData({ productId: other, toAddress: alice.address }), 'toAddress', /already belongs/)
    refusalOf(await typedData({ productId: other, toAddress: `0x${'0'.repeat(40)}` }), 'toAddress', /zero address/)
    const slip = bob.address.replace(/[a-f]/, (letter) => letter.toUpperCase())
    refusalOf(await typedData({ productId: other, toAddress: slip }), 'toAddress', /checksum/)
    refusalOf(await typedData({ productId: '999999', toAddress: bob.address }), 'productId', /does not exist/)
    refusalOf(await typedData({ productId: '0x7', toAddress: bob.address }), 'productId', /decimal token id/)
    refusalOf(await typedData({ toAddress: bob.address }), 'productId', /give its id/)
    refusalOf(await typedData({ action: 'ACCEPT' }), 'transferId', /give its id/)
  })

  it('with a deadline that is past or more than 72 hours ahead', async () => {
    const productId = await ownedBy(alice.address)
    const values = { productId, toAddress: bob.address }
    const { timestamp } = (await world.rpc('eth_getBlockByNumber', ['latest', false])) as { timestamp: Hex }
    const at = (seconds: number) => new Date((Number(timestamp) + seconds) * 1_000).toISOString()
    refusalOf(await typedData({ ...values, deadline: at(hours(73)) }), 'deadline', /at most 72 hours/)
    refusalOf(await typedData({ ...values, deadline: at(-1) }), 'deadline', /has passed/)
    const near = { ...values, deadline: at(hours(1)) }
    const { signature } = await sign(near, alice)
    refusalOf(await initiate({ ...near, deadline: at(hours(80)), signature }), 'deadline', /at most 72 hours/)
    assert.equal(transferOf(await initiate({ ...near, signature }))['expiresAt'], near.deadline)
  })

  it('of a flagged product, at each step', async () => {
    const productId = await ownedBy(alice.address)
    const tokenId = BigInt(productId)
    await done({ kind: 'bindTag', tokenId, tagHash: hash(77) })
    const input = await offer(productId)
    const flag = { tokenId, bits: assetFlags.LOST | assetFlags.RECALL, reasonHash: hash(0) }
    await done({ kind: 'flag', ...flag })
    refusalOf(await initiate(input), 'productId', /is flagged \(LOST, RECALL\)/)
    await done({ kind: 'resolve', ...flag })
    const { id: transferId } = transferOf(await initiate(input))
    const { signature } = await sign({ action: 'ACCEPT', transferId }, bob)
    await done({ kind: 'flag', ...flag })
    refusalOf(await accept({ transferId, signature }), 'transferId', /is flagged/)
    await done({ kind: 'resolve', ...flag })
    assert.equal((await accept({ transferId, signature })).success, true)
  })

  it('once it has expired, and the owner may offer again', async () => {
    const productId = await ownedBy(alice.address)
    const { id: transferId } = transferOf(await initiate(await offer(productId)))
    const { signature } = await sign({ action: 'ACCEPT', transferId }, bob)
    await world.rpc('evm_increaseTime', [hours(72) + 1])
    await world.mine()
    refusalOf(await accept({ transferId, signature }), 'transferId', /expired at 20/)
    refusalOf(await cancel({ transferId, signature }), 'transferId', /expired at 20/)
    refusalOf(await typedData({ action: 'ACCEPT', transferId }), 'transferId', /expired at 20/)
    const again = await initiate(await offer(productId))
    assert.equal(transferOf(again)['id'], `${productId}-2`)
  })
})
