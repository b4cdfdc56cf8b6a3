/** The cost of a history: an owner can make a thousand events of one token, each by the same account. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { noMembers } from '../../test/support/index/rows.ts'
import { type AssetEvent, eventKinds } from '../domain/registry-event.ts'
import { createLog } from '../lib/log.ts'
import { encodeWord } from '../lib/words.ts'
import { createHistories, createMinters, createStateChanges, type Histories } from './history.ts'

const owner = `0x${'a'.repeat(40)}` as const
const hashOf = (number: bigint) => `0x${encodeWord(number)}` as const
const block = { number: 2_000n, hash: hashOf(2_000n) }

function eventAt(index: number, event: Partial<AssetEvent>): AssetEvent {
  const blockNumber = BigInt(index + 1)
  return {
    kind: eventKinds.FlagsChanged,
    tokenId: '7',
    ...noMembers,
    actor: owner,
    blockNumber,
    blockHash: hashOf(blockNumber),
    logIndex: 0,
    transactionHash: hashOf(blockNumber),
    timestamp: blockNumber,
    ...event,
  }
}

describe('the history of a token with a thousand events', () => {
  it('commits to each account once', async (t) => {
    const mint = [
      eventAt(0, { kind: eventKinds.AssetMinted, to: owner }),
      eventAt(1, { kind: eventKinds.StateChanged, fromState: 0, toState: 1 }),
    ]
    const rows = [...mint, ...Array.from({ length: 998 }, (_, index) => eventAt(index + 2, { flags: index % 2 }))]
    const histories = createHistories({
      assets: {
        read: async () => ({ asset: { record: { owner, state: 1, flags: 1 }, metadataHash: null }, block }),
        emitsChanges: async () => true,
      },
      index: { until: async () => true },
      store: { of: async () => ({ cursor: { ...block, time: 2_000n }, hashAt: block.hash, rows }) },
      contract: `0x${'c'.repeat(40)}`,
      log: createLog(() => {}, 'silent'),
    })
    const { mock } = t.mock.method(globalThis, 'BigInt')
    const history = await histories(7n)
    const numbers = mock.callCount()
    assert.ok(history.available)
    assert.equal(history.events.length, 1_000)
    assert.equal(new Set(history.events.map(({ actorCommitment }) => actorCommitment)).size, 1)
    assert.ok(numbers < 100, `${numbers} numbers were made`)
  })
})

describe('the account that minted a token', () => {
  /** The index follows the chain to another branch while it is asked. */
  const mintersOver = (isThere: boolean, hashAt: Hex, hashAfter = hashAt) => {
    let hash = hashAt
    return createMinters({
      assets: {
        read: async () => ({ asset: { record: { owner, state: 1, flags: 1 }, metadataHash: null }, block }),
        emitsChanges: async () => true,
      },
      index: { until: async () => isThere },
      store: {
        of: async () => ({ cursor: { ...block, number: 2_001n, time: 2_000n }, hashAt: hash, rows: [] }),
        async mintersOf() {
          hash = hashAfter
          return new Map([[7n, owner]])
        },
      },
    })([7n], [owner])
  }

  it('is not known to an index that is behind the chain or on another branch', async () => {
    assert.deepEqual(await mintersOver(true, block.hash), new Map([[7n, owner]]))
    await assert.rejects(mintersOver(false, block.hash), { code: 'HISTORY_UNAVAILABLE' })
    await assert.rejects(mintersOver(true, hashOf(1n)), { code: 'HISTORY_UNAVAILABLE' })
  })

  it('is not known to an index that changes its branch while it is read', async () => {
    await assert.rejects(mintersOver(true, hashOf(1n), block.hash), { code: 'HISTORY_UNAVAILABLE' })
    await assert.rejects(mintersOver(true, block.hash, hashOf(1n)), { code: 'HISTORY_UNAVAILABLE' })
  })
})

describe('a history of which the log of one change was missed', () => {
  const other = `0x${'b'.repeat(40)}` as const
  const rows = [
    eventAt(0, { kind: eventKinds.AssetMinted, to: owner, data: hashOf(1n) }),
    eventAt(1, { kind: eventKinds.StateChanged, fromState: 0, toState: 1 }),
    eventAt(2, { flags: 2 }),
    eventAt(3, { kind: eventKinds.MetadataHashSet, data: hashOf(2n) }),
  ]
  const record = { owner, state: 1, flags: 2 } as const
  const asked = async (
    asset: NonNullable<Parameters<Histories>[1]>['asset'],
    { emitsChanges = true, events = rows, cursor = block, hashAt = block.hash as Hex | null } = {},
  ) => {
    const histories = createHistories({
      assets: { read: () => assert.fail('read'), emitsChanges: async () => emitsChanges },
      index: { until: async () => true },
      store: { of: async () => ({ cursor: { ...cursor, time: 2_000n }, hashAt, rows: events }) },
      contract: `0x${'c'.repeat(40)}`,
      log: createLog(() => {}, 'silent'),
    })
    const history = await histories(7n, { asset, block })
    return history.available ? 'available' : history.reason
  }

  it('is not available where owner, flags or metadata hash of the record are others', async () => {
    const metadataHash = hashOf(2n)
    assert.equal(await asked({ record, metadataHash }), 'available')
    assert.equal(await asked({ record: { ...record, owner: other }, metadataHash }), 'INDEX_MISMATCH')
    assert.equal(await asked({ record: { ...record, flags: 0 }, metadataHash }), 'INDEX_MISMATCH')
    assert.equal(await asked({ record, metadataHash: hashOf(3n) }), 'INDEX_MISMATCH')
    assert.equal(await asked({ record, metadataHash: null }), 'INDEX_MISMATCH')
  })

  it('is not available without the mint, although the other events lead to the record', async () => {
    const events = [eventAt(0, { kind: eventKinds.Transfer, to: owner }), ...rows.slice(1)]
    assert.equal(await asked({ record, metadataHash: hashOf(2n) }, { events }), 'INDEX_MISMATCH')
  })

  it('is not available from an index behind the block or on another branch, without its mint, or in part', async () => {
    const asset = { record, metadataHash: hashOf(2n) }
    const at = (event: Partial<AssetEvent>) => ({ events: [...rows, eventAt(4, { flags: 2, ...event })] })
    assert.equal(await asked(asset, { cursor: { number: 1_999n, hash: hashOf(1_999n) } }), 'INDEX_BEHIND')
    assert.equal(await asked(asset, { cursor: { ...block, hash: hashOf(1n) }, hashAt: null }), 'INDEX_BEHIND')
    assert.equal(await asked(asset, at({ blockNumber: block.number, blockHash: hashOf(1n) })), 'INDEX_BEHIND')
    assert.equal(await asked(asset, at({ blockNumber: block.number + 1n, flags: 1 })), 'available')
    assert.equal(await asked(asset, { events: rows.slice(1) }), 'INDEX_MISMATCH')
    assert.equal(
      await asked(asset, { events: [...rows, ...Array<AssetEvent>(997).fill(eventAt(4, { flags: 2 }))] }),
      'INDEX_UNAVAILABLE',
    )
  })

  it('is held against what the contract emits an event for, and what is known of the record', async () => {
    const foreign = { record: { ...record, flags: 0 }, metadataHash: null }
    assert.equal(await asked(foreign, { emitsChanges: false }), 'available')
    assert.equal(await asked({ record: { state: 1, flags: 2 }, metadataHash: hashOf(2n) }), 'available')
    const events = [...rows.slice(0, 3), eventAt(3, { kind: eventKinds.MetadataHashSet, data: hashOf(0n) })]
    assert.equal(await asked({ record, metadataHash: null }, { events }), 'available')
  })
})

describe('the changes of state alone', () => {
  const step = (index: number, fromState: number, toState: number) =>
    eventAt(index, { kind: eventKinds.StateChanged, fromState, toState })
  const life = [step(0, 0, 1), step(1, 1, 2), step(2, 2, 3)]
  const asked = (
    rows: readonly AssetEvent[] | Error,
    { behind = false, timestamp = 1_900n, chainHas = block as Readonly<{ hash: Hex }> | null } = {},
  ) =>
    createStateChanges({
      store: {
        async changes() {
          if (rows instanceof Error) throw rows
          return { cursor: { ...block, number: block.number - (behind ? 1n : 0n), time: 1_950n }, hashAt: null, rows }
        },
      },
      source: {
        async blocksAt(numbers) {
          if (chainHas === null) throw new Error('away')
          return numbers.map((number) => ({ ...chainHas, parentHash: block.hash, timestamp: 0n, header: {}, number }))
        },
      },
      contract: `0x${'c'.repeat(40)}`,
      log: createLog(() => {}, 'silent'),
    })(7n, { asset: { record: { state: 3, timestamp } }, block })

  it('are certain where they lead from the mint to the state, up to the last change of the record', async () => {
    assert.equal((await asked(life))?.length, 3)
    assert.equal((await asked(life, { behind: true }))?.length, 3)
    assert.equal((await asked(life, { timestamp: 1_950n }))?.length, 3)
    assert.equal(await asked(life, { behind: true, timestamp: 1_950n }), null)
  })

  it('are not certain of an index that is behind, where it is not known to be on the branch of the block', async () => {
    assert.equal(await asked(life, { behind: true, chainHas: { ...block, hash: hashOf(1n) } }), null)
    assert.equal(await asked(life, { behind: true, chainHas: null }), null)
    assert.equal((await asked(life, { chainHas: null }))?.length, 3)
  })

  it('are not certain where the oldest lack, or one is later than the last change of the record', async () => {
    assert.equal(await asked(life.slice(1)), null)
    assert.equal(await asked(life, { timestamp: 2n }), null)
    assert.equal(await asked([]), null)
  })

  it('are not known while the database is away', async () => assert.equal(await asked(new Error('away')), null))
})
