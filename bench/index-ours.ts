/** Our side of `bench:index`: the indexer in a process of its own, as the service runs it, on a chain and a database. */
import { fileURLToPath } from 'node:url'
import type { Hex } from '@touchstone/verdict'
import { createIndexer } from '../service/src/chain/indexer.ts'
import { createChainSource } from '../service/src/chain/providers.ts'
import { createLog } from '../service/src/log.ts'
import { openDatabase } from '../service/src/store/database.ts'
import { indexSink } from '../service/src/store/index-sink.ts'
import { migrate } from '../service/src/store/migrate.ts'
import { run, type Running } from './program.ts'

export type OwnOptions = { readonly rpcUrl: string; readonly contract: Hex; readonly databaseUrl: string }

/** Starts the process on the first core. */
export function startOurs({ rpcUrl, contract, databaseUrl }: OwnOptions): Running {
  const args = [fileURLToPath(import.meta.url), rpcUrl, contract, databaseUrl]
  return run({ command: process.execPath, args, core: 0 })
}

async function index({ rpcUrl, contract, databaseUrl }: OwnOptions): Promise<void> {
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
    sink: indexSink(database),
    contract,
    startBlock: 0n,
    lock: () => database.hold(84_532, 3),
    pollMs: 20,
    log,
  })
  indexer.start()
  process.once('SIGTERM', () => {
    void indexer
      .close()
      .then(() => Promise.all([source.close(), database.close()]))
      .then(() => process.exit(0))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , rpcUrl = '', contract = '', databaseUrl = ''] = process.argv
  await index({ rpcUrl, contract: contract as Hex, databaseUrl })
}
