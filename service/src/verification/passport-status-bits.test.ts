import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assetFlags, zeroAddress, type StateCode } from '@touchstone/verdict'
import { ServiceError } from '../errors.ts'
import { createStatusBits } from './passport-status-bits.ts'

/** A reader as the real one behaves: what was read lives until the token changes or the head is lost. */
function world(tokens: Record<string, { state: StateCode; flags?: number }>) {
  const assets = new Map<bigint, { live: boolean }>()
  const members = Object.keys(tokens).map((id, index) => ({ tokenId: BigInt(id), index: index * 10 }))
  const state = { reads: 0, hasHead: true, broken: false, delayMs: 0 }
  const bits = createStatusBits({
    places: {
      members: async (list) => (list === 1 ? members : []),
      size: async (list) => (list === 1 ? members.length : 0),
    },
    reader: {
      head: () => (state.hasHead ? {} : undefined),
      async read(tokenId) {
        state.reads += 1
        state.hasHead = true
        if (state.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, state.delayMs))
        if (state.broken) throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.')
        const { state: code, flags = 0 } = tokens[String(tokenId)] ?? { state: 0 }
        const record = { owner: zeroAddress, timestamp: 1n, state: code, flags, reserved: 0 }
        const asset = { live: true, record }
        assets.set(tokenId, asset)
        return { asset }
      },
    },
  })
  return {
    state,
    bits,
    members,
    change: (id: string, state: StateCode, flags = 0): void => {
      tokens[id] = { state, flags }
      const known = assets.get(BigInt(id))
      if (known !== undefined) known.live = false
    },
    add: (id: string, state: StateCode): void => {
      tokens[id] = { state }
      members.push({ tokenId: BigInt(id), index: members.length * 10 })
    },
  }
}

describe('the bits of a status list', () => {
  it('are set for flagged and for recycled items, each in its own list', async () => {
    const { bits } = world({
      1: { state: 4 },
      2: { state: 5, flags: assetFlags.LOST },
      3: { state: 6 },
      4: { state: 6, flags: assetFlags.RECALL },
    })
    assert.deepEqual(await bits(1), { suspension: [10, 30], revocation: [20, 30] })
    assert.equal(await bits(2), null)
  })

  it('are read again only for what has changed, and stay the same object while they stay the same', async () => {
    const { bits, change, state } = world({ 1: { state: 4 }, 2: { state: 4 }, 3: { state: 4 } })
    const first = await bits(1)
    assert.equal(await bits(1), first)
    assert.equal(state.reads, 3)
    change('2', 5, assetFlags.STOLEN)
    assert.deepEqual(await bits(1), { suspension: [10], revocation: [] })
    assert.equal(state.reads, 4)
    change('2', 4)
    assert.deepEqual(await bits(1), { suspension: [], revocation: [] })
  })

  it('hold for nobody without a head of now', async () => {
    const { bits, state } = world({ 1: { state: 4 } })
    await bits(1)
    state.hasHead = false
    await bits(1)
    assert.equal(state.reads, 2)
  })

  it('take in who has come to the list', async () => {
    const { bits, add } = world({ 1: { state: 4 } })
    await bits(1)
    add('2', 6)
    assert.deepEqual(await bits(1), { suspension: [], revocation: [10] })
  })

  it('are not guessed while the chain cannot be read', async () => {
    const { bits, change, state } = world({ 1: { state: 4 } })
    await bits(1)
    change('1', 5, assetFlags.LOST)
    state.broken = true
    await assert.rejects(bits(1), { code: 'CHAIN_UNAVAILABLE' })
    state.broken = false
    assert.deepEqual(await bits(1), { suspension: [0], revocation: [] })
  })

  it('of a slow list are made once for all who ask, and then rest', async () => {
    const { bits, change, state } = world({ 1: { state: 4 } })
    state.delayMs = 120
    const together = await Promise.all([bits(1), bits(1), bits(1)])
    assert.deepEqual([state.reads, new Set(together).size], [1, 1])
    change('1', 6)
    assert.equal(await bits(1), together[0])
    assert.equal(state.reads, 1)
  })
})
