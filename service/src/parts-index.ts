/** The index of the chain among the parts (spec §4.9, §6): who follows the chain, and who tells the history from it. */
import type { Hex } from '@touchstone/verdict'
import { createHistories } from './asset/history.ts'
import type { AssetReader } from './chain/asset-reader.ts'
import { createIndexer } from './chain/indexer.ts'
import { createChainSource } from './chain/providers.ts'
import type { Config } from './config.ts'
import type { Log } from './log.ts'
import type { Database } from './store/database.ts'
import { historyStore } from './store/history.ts'
import { indexSink } from './store/index-sink.ts'

/** The leader of the indexers of one database holds this advisory lock; the migrations have (84532, 1), the outbox (84532, 2). */
const leaderLock = [84532, 3] as const

export function createIndexParts({
  config,
  database,
  reader,
  contract,
  chainId,
  log,
}: {
  readonly config: Config
  readonly database: Database
  readonly reader: AssetReader
  readonly contract: Hex
  readonly chainId: number
  readonly log: Log
}) {
  const { pollMs, confirmations } = config.index
  // Its own connections and breakers: a wide range of logs may take long, and must not count against those who read verdicts.
  const source = createChainSource({
    ...config.chain,
    contract,
    chainId,
    attemptTimeoutMs: 10_000,
    readTimeoutMs: 20_000,
    log,
  })
  const indexer = createIndexer({
    source,
    sink: indexSink(database),
    contract,
    startBlock: config.chain.startBlock,
    lock: () => database.hold(...leaderLock),
    pollMs,
    confirmations: BigInt(confirmations),
    log,
  })
  const historyRows = historyStore(database)
  const history = createHistories({ assets: reader, index: indexer, store: historyRows, contract, chainId, log })
  async function close(): Promise<void> {
    await indexer.close()
    await source.close()
  }
  return { indexer, indexSource: source, history, historyRows, close }
}
