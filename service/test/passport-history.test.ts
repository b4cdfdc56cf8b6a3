/** The history of a token over a real chain: complete, in order, checked against its state, without an address (spec §3). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { inspect } from 'node:util'
import { isOwner, type Verdict } from '@touchstone/verdict'
import { createHistories } from '../src/asset/history.ts'
import { publishedAddresses } from '../src/chain/local-chain-accounts.ts'
import { createLog } from '../src/log.ts'
import { startFaultRpc } from './_fault-rpc.ts'
import { startWorld, type World } from './_world.ts'

const reasonHash = `0x${'0'.repeat(64)}` as const
const tagHash = (digit: string) => `0x${digit.repeat(64)}` as const

describe('the history of a token', () => {
  let world: World
  let rpc: Awaited<ReturnType<typeof startFaultRpc>>
  before(async () => {
    world = await startWorld({ rpcUrl: async (target) => (rpc = await startFaultRpc({ target })).url })
  })
  after(async () => {
    await world.end()
    await rpc.close()
  })
  const fresh = (changes: { startBlock?: bigint } = {}) =>
    createHistories({
      assets: world.parts.reader,
      source: world.parts.source,
      contract: world.contract,
      chainId: 84532,
      startBlock: 0n,
      log: createLog(() => {}, 'silent'),
      ...changes,
    })

  it('names every step with block, time, transaction and states, the oldest first', async () => {
    const tokenId = await world.mint({ name: 'Told' })
    const other = await world.mint()
    await world.write({ kind: 'bindTag', tokenId, tagHash: tagHash('a') })
    await world.write({ kind: 'bindTag', tokenId: other, tagHash: tagHash('b') })
    await world.write({ kind: 'activate', tokenId })
    await world.write({ kind: 'flag', tokenId, bits: 0x04, reasonHash })
    const told = await world.parts.history(tokenId)
    assert.ok(told)
    assert.deepEqual(
      told.events.map(({ type, fromState, toState }) => [type, fromState, toState]),
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
    assert.equal(told.events.find(({ type }) => type === 'TagBound')?.tagHash, tagHash('a'))
    assert.equal(told.events.find(({ type }) => type === 'FlagsChanged')?.flags, 0x04)
    for (const { blockNumber, blockHash, transactionHash, timestamp } of told.events) {
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
    const [event] = (await world.parts.history(tokenId))?.events ?? []
    const verdict = (await (await world.get(`/api/asset/${tokenId}`)).json()) as Verdict
    assert.equal(event?.toCommitment, verdict.owner_commitment)
    assert.ok(isOwner(verdict, publishedAddresses[0] ?? '0x'))
    const text = inspect(await world.parts.history(tokenId), { depth: 9 }).toLowerCase()
    for (const address of publishedAddresses) assert.ok(!text.includes(address.slice(2).toLowerCase()))
  })

  it('is read once while nothing happens to the token, and grows with it', async () => {
    const tokenId = await world.mint()
    const first = await world.parts.history(tokenId)
    const asked = rpc.count('eth_getLogs')
    assert.deepEqual(await Promise.all([world.parts.history(tokenId), world.parts.history(tokenId)]), [first, first])
    assert.equal(rpc.count('eth_getLogs'), asked)
    await world.write({ kind: 'bindTag', tokenId, tagHash: tagHash('c') })
    assert.equal((await world.parts.history(tokenId))?.events.length, (first?.events.length ?? 0) + 2)
  })

  it('is empty for a token that does not exist', async () => {
    assert.deepEqual((await world.parts.history(999_999n))?.events, [])
  })

  it('is null, never shorter, when the provider cannot or will not tell all of it', async () => {
    const tokenId = await world.mint()
    await world.write({ kind: 'bindTag', tokenId, tagHash: tagHash('d') })
    for (const fault of ['too-wide', 'hide-logs', 'status500'] as const) {
      rpc.set({ name: fault, methods: ['eth_getLogs'] })
      assert.equal(await fresh()(tokenId), null, fault)
    }
    rpc.set({
      name: 'none',
      rewrite: (method, _params, result) =>
        method === 'eth_getLogs' && Array.isArray(result) ? result.slice(0, -1) : result,
      methods: ['eth_getLogs'],
    })
    assert.equal(await fresh()(tokenId), null, 'the last event is held back')
    rpc.set('none')
    assert.equal(
      await fresh({ startBlock: BigInt((await world.rpc('eth_blockNumber')) as string) })(tokenId),
      null,
      'begun too late',
    )
    assert.ok(await fresh()(tokenId))
  })

  it('is not asked for again at once after it could not be had', async () => {
    const tokenId = await world.mint()
    const history = fresh()
    rpc.set({ name: 'too-wide', methods: ['eth_getLogs'] })
    await history(tokenId)
    const asked = rpc.count('eth_getLogs')
    assert.equal(await history(tokenId), null)
    assert.equal(rpc.count('eth_getLogs'), asked)
    rpc.set('none')
  })
})
