/** Our side of `bench:index`: the indexer in a process of its own. It runs as in the service, on a chain and a database. */
import { fileURLToPath } from 'node:url'
import type { Hex } from '@touchstone/verdict'
import { readConfig } from '../../service/src/app/config/config.ts'
import { createBlockAnnouncements } from '../../service/src/chain/indexer/announcements.ts'
import { createIndexer } from '../../service/src/chain/indexer/indexer.ts'
import { createChainSource } from '../../service/src/chain/rpc/source.ts'
import { createLog } from '../../service/src/lib/log.ts'
import { openDatabase } from '../../service/src/db/database.ts'
import { locks } from '../../service/src/db/locks.ts'
import { indexStore } from '../../service/src/index/store.ts'
import { migrate } from '../../service/src/db/migrate.ts'
import { run, type Running } from '../lib/program.ts'

export type OwnOptions = {
  readonly rpcUrl: string
  readonly contract: Hex
  readonly databaseUrl: string
  /** The WebSocket that announces blocks; left out, the head is polled alone. */
  readonly wsUrl?: string
}

/** Starts the process on the first core. */
export function startOurs({ rpcUrl, contract, databaseUrl, wsUrl = '' }: OwnOptions): Running {
  const args = [fileURLToPath(import.meta.url), rpcUrl, contract, databaseUrl, wsUrl]
  return run({ command: process.execPath, args, core: 0 })
}

async function index({ rpcUrl, contract, databaseUrl, wsUrl }: Required<OwnOptions>): Promise<void> {
  const log = createLog((line) => process.stderr.write(`${line}\n`), 'warn')
  const database = await openDatabase({ url: databaseUrl, poolSize: 4 })
  await migrate(database)
  const source = createChainSource({
    rpcUrls: [rpcUrl],
    contract,
    chainId: 84532,
    blockTag: 'latest',
    trust: 'rpc',
    quorum: 2,
    maxHeadAgeSeconds: 0,
    log,
  })
  const indexer = createIndexer({
    source,
    store: indexStore(database),
    contract,
    startBlock: 0n,
    lock: () => database.hold(locks.indexLeader),
    pollMs: readConfig({}).index.pollMs,
    log,
  })
  indexer.start()
  const urls = wsUrl === '' ? [] : [wsUrl]
  const announcements = createBlockAnnouncements({ urls, onBlock: indexer.wake, log })
  process.once('SIGTERM', () => {
    void Promise.all([indexer.close(), announcements.close()])
      .then(() => Promise.all([source.close(), database.close()]))
      .then(() => process.exit(0))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , rpcUrl = '', contract = '', databaseUrl = '', wsUrl = ''] = process.argv
  await index({ rpcUrl, contract: contract as Hex, databaseUrl, wsUrl })
}
