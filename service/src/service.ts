/**
 * Opens every part of the service, joins them and closes them: the only file that knows them all.
 */
import { join } from 'node:path'
import { cachedMetadata } from './asset/metadata.ts'
import { createProofBundles } from './asset/proof-bundle.ts'
import { createVerdicts, type Verdicts } from './asset/verdicts.ts'
import { createAssetReader, type AssetReader } from './chain/asset-reader.ts'
import { createChainSource } from './chain/providers.ts'
import { ConfigError, type Config } from './config.ts'
import { clientKeys } from './http/client-key.ts'
import { createRateLimiter } from './http/rate-limit.ts'
import { listen } from './http/server.ts'
import type { Log } from './log.ts'
import { openDatabase, type Database } from './store/database.ts'
import { metadataStore, type MetadataStore } from './store/metadata.ts'
import { migrate } from './store/migrate.ts'
import { verificationListener } from './verification/host.ts'

export const chainId = 84532

export type Service = AsyncDisposable & {
  /** Where the verification host is reached, without a slash at the end. */
  readonly verificationUrl: string
  readonly database: Database
  readonly metadata: MetadataStore
  readonly reader: AssetReader
  readonly verdicts: Verdicts
  /** Stops accepting, answers what was accepted, closes every part; at most `withinMs` for the requests under way. */
  readonly close: (withinMs?: number) => Promise<void>
}

/** Starts the service. What cannot be started throws one sentence, and whatever was open by then is closed. */
export async function startService(config: Config, log: Log): Promise<Service> {
  await using opened = new AsyncDisposableStack()
  const { contract, rpcUrls } = config.chain
  if (rpcUrls.length === 0)
    throw new ConfigError('CHAIN_RPC_URLS must name at least one JSON-RPC provider, such as https://sepolia.base.org.')
  if (contract === null) throw new ConfigError('CHAIN_CONTRACT must be the address of the registry contract.')

  const database = opened.adopt(await openStore(config), (db) => db.close())
  const migrated = await migrate(database)
  if (migrated.length > 0) log.info('database migrated', { files: migrated.join(' ') })
  const metadata = metadataStore(database)

  const { codeHash, recordsSlot } = config.chain
  const source = opened.adopt(
    createChainSource({ ...config.chain, contract, chainId, log: log.child('chain') }),
    (it) => it.close(),
  )
  const reader = createAssetReader({ ...config.chain, source, contract, log: log.child('reader') })
  opened.defer(() => reader.close())
  const verdicts = createVerdicts({
    assets: reader,
    metadata: cachedMetadata(metadata),
    contract,
    chainId,
    maxEntries: config.chain.cacheEntries,
    log: log.child('verdicts'),
  })
  const proofs =
    config.proofBundle && codeHash !== undefined
      ? createProofBundles({ source, contract, chainId, codeHash, recordsSlot })
      : undefined

  const { limits, hosts } = config
  const limiter =
    limits.asset === 0 ? undefined : createRateLimiter({ limit: limits.asset, windowSeconds: limits.windowSeconds })
  const listener = await listen({
    name: 'verification host',
    host: hosts.bind,
    port: hosts.verificationPort,
    onRequest: verificationListener({
      verdicts,
      proofs,
      limiter,
      clientKey: clientKeys(limits.trustedProxies),
      log: log.child('verification'),
    }),
  })
  log.info('verification host listens', { port: listener.port })

  const parts = opened.move()
  let closing: Promise<void> | undefined
  const close = (withinMs?: number) => (closing ??= listener.close(withinMs).then(() => parts.disposeAsync()))
  const verificationUrl = hosts.baseUrl?.replace(/\/$/, '') ?? `http://127.0.0.1:${listener.port}`
  return { verificationUrl, database, metadata, reader, verdicts, close, [Symbol.asyncDispose]: () => close() }
}

async function openStore({ dataDir, store }: Config): Promise<Database> {
  const folder = join(dataDir, 'store')
  try {
    return await openDatabase(store.databaseUrl === null ? { dataDir: folder } : { url: store.databaseUrl })
  } catch (error) {
    const sentence =
      store.databaseUrl === null
        ? `The database in ${folder} cannot be opened. Restore the folder from a backup, or move it away to start with an empty one.`
        : 'PostgreSQL cannot be reached under DATABASE_URL.'
    throw new ConfigError(sentence, { cause: error })
  }
}
