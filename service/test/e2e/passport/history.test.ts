/** The history of a token over a real chain: complete, in order, checked against its state, without an address (spec §3). */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import { isOwner, type Verdict } from '@touchstone/verdict'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { startFaultWorld } from '../../support/fault-world.ts'

const reasonHash = `0x${'0'.repeat(64)}` as const
const tagHash = (digit: string) => `0x${digit.repeat(64)}` as const

const world = await startFaultWorld()
after(() => world.end())

describe('the history of a token', () => {
  /** Returns the history, which must be available. */
  async function historyOf(tokenId: bigint) {
    const history = await world.components.history(tokenId)
    assert.ok(
      history.available,
      JSON.stringify(history, (_key, value: unknown) => String(value)),
    )
    return history
  }

  it('names every step with block, time, transaction and states, the oldest first', async () => {
    const tokenId = await world.mint({ name: 'History' })
    const other = await world.mint()
    await world.write({ kind: 'bindTag', tokenId, tagHash: tagHash('a') })
    await world.write({ kind: 'bindTag', tokenId: other, tagHash: tagHash('b') })
    await world.write({ kind: 'activate', tokenId })
    await world.write({ kind: 'flag', tokenId, bits: 0x04, reasonHash })
    const { events } = await historyOf(tokenId)
    assert.deepEqual(
      events.map(({ type, fromState, toState }) => [type, fromState, toState]),
      [
        ['AssetMinted', undefined, undefined],
        ['StateChanged', 'NONE', 'MINTED'],
        ['TagBound', undefined, undefined],
        ['StateChanged', 'MINTED', 'BOUND'],
        ['StateChanged', 'BOUND', 'ACTIVATED'],
        ['FlagsChanged', undefined, undefined],
        ['StateChanged', 'ACTIVATED', 'FLAGGED'],
      ],
    )
    assert.equal(events.find(({ type }) => type === 'TagBound')?.tagHash, tagHash('a'))
    assert.equal(events.find(({ type }) => type === 'FlagsChanged')?.flags, 0x04)
    for (const { blockNumber, blockHash, transactionHash, timestamp } of events) {
      const block = (await world.rpc('eth_getBlockByHash', [blockHash, false])) as {
        number: string
        timestamp: string
        transactions: string[]
      }
      assert.deepEqual([BigInt(block.number), BigInt(block.timestamp)], [blockNumber, timestamp])
      assert.ok(block.transactions.includes(transactionHash))
    }
  })

  it('holds commitments, which a candidate address can be tested against, and no address', async () => {
    const tokenId = await world.mint()
    const [event] = (await historyOf(tokenId)).events
    const verdict = (await (await world.get(`/api/asset/${tokenId}`)).json()) as Verdict
    assert.equal(event?.toCommitment, verdict.owner_commitment)
    assert.ok(isOwner(verdict, publishedAddresses[0] ?? '0x'))
    const text = inspect(await world.components.history(tokenId), { depth: 9 }).toLowerCase()
    for (const address of publishedAddresses) assert.ok(!text.includes(address.slice(2).toLowerCase()))
  })

  it('is complete up to the block of its answer, at once after every write', async () => {
    const tokenId = await world.mint()
    for (const digit of ['c', 'd']) {
      const before = await historyOf(tokenId)
      const { blockNumber } =
        digit === 'c'
          ? await world.write({ kind: 'bindTag', tokenId, tagHash: tagHash(digit) })
          : await world.write({ kind: 'activate', tokenId })
      const { block, events } = await historyOf(tokenId)
      assert.ok(block.number >= blockNumber)
      assert.equal(events.length, before.events.length + (digit === 'c' ? 2 : 1))
    }
  })

  it('is empty for a token that does not exist', async () => {
    assert.deepEqual((await historyOf(999_999n)).events, [])
  })

  it('is not vouched for, never shorter, while the index is behind', async () => {
    const tokenId = await world.mint()
    await historyOf(tokenId)
    world.faults.set({ name: 'status500', methods: ['eth_getLogs'] })
    await world.write({ kind: 'bindTag', tokenId, tagHash: tagHash('e') })
    const { available, ...behind } = await world.components.history(tokenId)
    assert.equal(available, false)
    assert.equal('reason' in behind && behind.reason, 'INDEX_BEHIND')
    world.faults.set('none')
    for (let waited = 0; waited < 10_000 && !(await world.components.history(tokenId)).available; waited += 50)
      await delay(50)
    assert.equal((await historyOf(tokenId)).events.length, 4)
  })

  it('is not vouched for when its events do not lead to the state at the block', async () => {
    const tokenId = await world.mint()
    await world.write({ kind: 'bindTag', tokenId, tagHash: tagHash('f') })
    await historyOf(tokenId)
    await world.components.database.query('delete from history where token_id = $1::numeric and to_state = 2', [
      tokenId.toString(),
    ])
    const history = await world.components.history(tokenId)
    assert.equal(!history.available && history.reason, 'INDEX_MISMATCH')
  })

  it('is not vouched for, never cut, when it has more events than are read', async () => {
    const tokenId = await world.mint()
    const { events } = await historyOf(tokenId)
    await world.components.database.query(
      `insert into history (block_number, log_index, token_id, kind, flags, block_hash, tx_hash, ts)
       select block_number, 1000 + n, token_id, 5, 32, block_hash, tx_hash, ts
       from generate_series(1, 1000) n, (select * from history where token_id = $1::numeric limit 1) first`,
      [tokenId.toString()],
    )
    assert.ok(events.length > 0)
    const history = await world.components.history(tokenId)
    assert.equal(!history.available && history.reason, 'INDEX_UNAVAILABLE')
  })
})
