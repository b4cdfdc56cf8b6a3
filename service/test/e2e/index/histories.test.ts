/** The history of a token while reader and index are on different branches of the chain (spec §2.2, §3). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createHistories } from '../../../src/assets/history.ts'
import { createAssetReader } from '../../../src/chain/assets/reader.ts'
import type { Database } from '../../../src/db/database.ts'
import { historyStore } from '../../../src/index/history.ts'
import { createLog } from '../../../src/lib/log.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { atHead, hash, indexerOver, operator, startIndexChain, type IndexChain } from '../../support/index/world.ts'

const log = createLog(() => {}, 'silent')
const [pglite] = testDatabases()
assert.ok(pglite)

describe('the history of a token', () => {
  let chain: IndexChain
  let database: Database
  before(async () => {
    ;[chain, database] = await Promise.all([startIndexChain(), pglite.open()])
  })
  after(async () => {
    await Promise.all([chain.close(), database.close()])
  })

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
      chainId: 84532,
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
    await indexer.close()
  })
})
