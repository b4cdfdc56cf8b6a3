/** The history of a token while reader and index are on different branches of the chain (spec §2.2, §3). */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type Hex, type LifecycleState, lifecycleStates, type StateCode } from '@touchstone/verdict'
import { createHistories, createStateChanges } from '../../../src/assets/history.ts'
import { createAssetReader } from '../../../src/chain/assets/reader.ts'
import { eventKinds } from '../../../src/domain/registry-event.ts'
import { historyStore, insertEvents } from '../../../src/index/history.ts'
import { createLog } from '../../../src/lib/log.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { noMembers } from '../../support/index/rows.ts'
import { alice, atHead, bob, hash, indexerOver, operator, startIndexChain } from '../../support/index/world.ts'
import { useOpened } from '../../support/opened.ts'

const log = createLog(() => {}, 'silent')
const [pglite] = testDatabases()
assert.ok(pglite)

describe('the history of a token', () => {
  const database = useOpened(pglite.open)
  const chain = useOpened(startIndexChain)

  it('is not vouched for while the index is on another branch than the block of the answer', async () => {
    const indexer = indexerOver(chain, database)
    indexer.start()
    await chain.send(operator.address, 'mint', [operator.address, hash(1)])
    await chain.mine(5)
    await chain.send(operator.address, 'setMetadataHash', [1n, hash(2)])
    await chain.mine(1)
    const source = chain.source()
    // The head of this reader lags for as long as the test runs, as one behind a slow provider does.
    const lag = { headMaxAgeMs: 600_000, headRefreshMs: 600_000 }
    const { contract } = chain
    const reader = createAssetReader({
      source,
      contract,
      interface: 'registry',
      trust: 'rpc',
      cache: 'events',
      cacheEntries: 10,
      ...lag,
      log,
    })
    after(async () => {
      reader.close()
      await source.close()
    })
    const histories = createHistories({
      assets: reader,
      index: { until: async (number) => ((await indexer.status()).indexed?.number ?? -1n) >= number },
      store: historyStore(database),
      contract,
      log,
    })
    await atHead(indexer, chain)
    const whole = await histories(1n)
    assert.ok(whole.available)
    assert.equal(whole.events.filter(({ type }) => type === 'MetadataHashSet').length, 1)

    await chain.reorg(3)
    await chain.mine(1)
    await atHead(indexer, chain)
    const { block, ...other } = await histories(1n)
    assert.deepEqual([block, other], [whole.block, { available: false, reason: 'INDEX_BEHIND' }])
  })
})

for (const { name, open, skip } of testDatabases())
  describe(`changes of state in ${name}, where the history is not available`, { skip }, () => {
    const database = useOpened(open)
    const chain = useOpened(startIndexChain)

    /** Reads the record of a token, and the head of the chain. */
    async function readingOf(tokenId: bigint) {
      const [, timestamp, state, flags] = (await chain.read('getAsset', tokenId)) as [Hex, bigint, StateCode, number]
      const head = (await chain.rpc('eth_getBlockByNumber', ['latest', false])) as { number: Hex; hash: Hex }
      const block = { number: BigInt(head.number), hash: head.hash }
      return { asset: { record: { state, flags, timestamp }, metadataHash: null }, block }
    }
    async function mineLater() {
      await chain.rpc('evm_increaseTime', [60])
      await chain.mine(1)
    }
    /** Brings the index to the head of the chain, and no further. */
    async function index() {
      const indexer = indexerOver(chain, database)
      indexer.start()
      await atHead(indexer, chain)
      await indexer.close()
    }
    async function ask(tokenId: bigint, reading: Awaited<ReturnType<typeof readingOf>>) {
      const store = historyStore(database)
      const { contract } = chain
      const options = { store, contract, log }
      const histories = createHistories({
        ...options,
        assets: { read: () => assert.fail('read'), emitsChanges: async () => true },
        index: { until: async (number) => ((await store.cursor())?.number ?? -1n) >= number },
      })
      const history = await histories(tokenId, reading)
      const source = chain.source()
      const changes = await createStateChanges({ ...options, source })(tokenId, reading)
      await source.close()
      const states = changes?.map(({ toState = '' }) => lifecycleStates.indexOf(toState as LifecycleState))
      return [history.available ? 'available' : history.reason, states ?? null] as const
    }
    /** Makes an item that was claimed and given back; returns its states. */
    async function giveBack(tokenId: bigint): Promise<number[]> {
      for (const [call, ...args] of [
        ['mint', operator.address, hash(0)],
        ['bindTag', tokenId, hash(Number(tokenId))],
        ['activate', tokenId],
      ] as const)
        assert.ok(await chain.send(operator.address, call, args))
      assert.ok(await chain.claim(tokenId, operator))
      assert.ok(await chain.send(operator.address, 'restock', [tokenId]))
      return [1, 2, 3, 4, 3]
    }

    it('are known to an index that is behind, once it has passed the last change of the record', async () => {
      const states = await giveBack(1n)
      await index()
      await chain.mine(1)
      // Blocks may share a second, so that another change of the same second could be missing.
      assert.deepEqual(await ask(1n, await readingOf(1n)), ['INDEX_BEHIND', null])
      await mineLater()
      await index()
      await chain.mine(1)
      assert.deepEqual(await ask(1n, await readingOf(1n)), ['INDEX_BEHIND', states])
      await mineLater()
      assert.ok(await chain.claim(1n, alice))
      assert.ok(await chain.send(alice.address, 'initiateTransfer', [1n, bob.address, 2n ** 40n, hash(0)]))
      assert.deepEqual(await ask(1n, await readingOf(1n)), ['INDEX_BEHIND', null])
    })

    it('are not known to an index that is behind on a branch which the chain has left', async () => {
      await chain.send(operator.address, 'mint', [operator.address, hash(0)])
      await chain.send(operator.address, 'bindTag', [2n, hash(2)])
      await chain.send(operator.address, 'activate', [2n])
      const [, activated] = (await chain.read('getAsset', 2n)) as [Hex, bigint]
      await mineLater()
      await index()
      await chain.reorg(1)
      await chain.rpc('anvil_setTime', [Number(activated)])
      assert.ok(await chain.claim(2n, operator))
      assert.ok(await chain.send(operator.address, 'restock', [2n]))
      const reading = await readingOf(2n)
      assert.deepEqual(await ask(2n, reading), ['INDEX_BEHIND', null])
      await index()
      assert.deepEqual(await ask(2n, reading), ['available', [1, 2, 3, 4, 3]])
    })

    it('are known of a token with more than a thousand events, at the block alone', async () => {
      const states = await giveBack(3n)
      assert.ok(await chain.claim(3n, alice))
      await index()
      const event = { ...noMembers, kind: eventKinds.MetadataHashSet, tokenId: '3', blockNumber: 1n, timestamp: 1n }
      const hashes = { data: hash(0), blockHash: hash(1), transactionHash: hash(1) }
      await insertEvents(
        database,
        Array.from({ length: 1_000 }, (_, logIndex) => ({ ...event, ...hashes, logIndex: logIndex + 100 })),
      )
      const reading = await readingOf(3n)
      assert.deepEqual(await ask(3n, reading), ['INDEX_UNAVAILABLE', [...states, 4]])
      const other = { ...reading, block: { ...reading.block, hash: hash(9) } }
      assert.deepEqual(await ask(3n, other), ['INDEX_BEHIND', null])
      await mineLater()
      await chain.send(alice.address, 'flag', [3n, 1, hash(0)])
      await index()
      assert.deepEqual(await ask(3n, reading), ['INDEX_UNAVAILABLE', [...states, 4]])
      const { block, asset } = await readingOf(3n)
      const stale = { block, asset: { ...asset, record: { ...asset.record, state: 4 as const } } }
      assert.deepEqual(await ask(3n, stale), ['INDEX_UNAVAILABLE', null], 'the changes lead to another state')
    })
  })
