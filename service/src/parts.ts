/**
 * Opens every part of the service, joins them and closes them: the only file that knows them all.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { checksumAddress } from '@touchstone/verdict'
import { bytesToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { createHistories } from './asset/history.ts'
import { cachedMetadata } from './asset/metadata.ts'
import { createProofBundles } from './asset/proof-bundle.ts'
import { createVerdicts, type Verdicts } from './asset/verdicts.ts'
import { createAssetReader } from './chain/asset-reader.ts'
import { createChainSource } from './chain/providers.ts'
import { createWriter, type OperatorKeys } from './chain/writer.ts'
import { ConfigError, type Config } from './config.ts'
import type { Log } from './log.ts'
import { createStatusIndexes } from './passport/status-list.ts'
import { openDatabase, type Database } from './store/database.ts'
import { itemStore } from './store/items.ts'
import { metadataStore } from './store/metadata.ts'
import { migrate } from './store/migrate.ts'
import { operationStore } from './store/operations.ts'
import { statusPlaceStore } from './store/status-lists.ts'
import { batchStore } from './store/tags-batches.ts'
import { tagStore } from './store/tags.ts'
import { createAuthenticate } from './tap/authenticate.ts'
import { announceOnce, createLedger } from './tap/counter.ts'
import { openFleet, type Fleet } from './tap/fleet.ts'
import { createTapBinding, createTapChallenge } from './tap/presence.ts'
import { createTagHash } from './tap/tag-hash.ts'
import { createVerifyTap } from './tap/verify-tap.ts'
import { openIssuer } from './verification/passport-keys.ts'
import { createStatusBits } from './verification/passport-status-bits.ts'
import { createPresentTap } from './verification/present-tap.ts'

export const chainId = 84532

export type Parts = AsyncDisposable & Awaited<ReturnType<typeof joinParts>>
export type StoreParts = AsyncDisposable & Awaited<ReturnType<typeof joinStore>>

/** Everything but the listeners: what a command of the CLI works with. */
export const openParts = (config: Config, log: Log): Promise<Parts> => opening(config, log, joinParts)

/** What needs no chain: batches, keys, the registry of tags. */
export const openStoreParts = (config: Config, log: Log): Promise<StoreParts> => opening(config, log, joinStore)

type Join<T> = (config: Config, log: Log, opened: AsyncDisposableStack) => Promise<T>

async function opening<T>(config: Config, log: Log, joinAll: Join<T>): Promise<T & AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const joined = await joinAll(config, log, opened)
  const rest = opened.move()
  return { ...joined, [Symbol.asyncDispose]: () => rest.disposeAsync() }
}

async function joinStore(config: Config, log: Log, opened: AsyncDisposableStack) {
  const database = opened.adopt(await openStore(config), (db) => db.close())
  const migrated = await migrate(database)
  if (migrated.length > 0) log.info('database migrated', { files: migrated.join(' ') })
  const metadata = metadataStore(database)
  const tags = { ...tagStore(database), ...batchStore(database) }
  const { kek } = config.tap
  const keyFile = kek === null ? null : { kek, demo: config.demo }
  const folder = join(config.dataDir, 'keys')
  const fleet = await openFleet({ folder, keyFile, shared: tags })
  const issuer = await openIssuer({ folder, signing: config.passport.signing })
  return { database, metadata, tags, items: itemStore(database), fleet, issuer }
}

async function joinParts(config: Config, log: Log, opened: AsyncDisposableStack) {
  const { contract, rpcUrls, codeHash, recordsSlot } = config.chain
  const [rpcUrl] = rpcUrls
  if (rpcUrl === undefined)
    throw new ConfigError('CHAIN_RPC_URLS must name at least one JSON-RPC provider, such as https://sepolia.base.org.')
  if (contract === null) throw new ConfigError('CHAIN_CONTRACT must be the address of the registry contract.')

  const store = await joinStore(config, log, opened)
  const { database, metadata, fleet } = store
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

  const history = createHistories({
    ...config.chain,
    assets: reader,
    source,
    contract,
    chainId,
    log: log.child('history'),
  })
  const places = statusPlaceStore(database)

  const operations = operationStore(database)
  const keys = operatorKeys(config)
  const writer = createWriter({
    rpcUrl,
    contract,
    chainId,
    keys,
    operations,
    local: config.demo,
    log: log.child('writer'),
  })
  opened.defer(() => writer.close())

  const tap = createTapFlow({ config, database, fleet, verdicts, log: log.child('tap') })

  return {
    ...store,
    source,
    reader,
    verdicts,
    proofs,
    history,
    statusIndexOf: createStatusIndexes(places),
    statusBits: createStatusBits({ reader, places }),
    issuerName: config.passport.issuerName,
    pages: { ...config.pages, windowSeconds: config.tap.windowSeconds, examples: config.demo ? demoTokens : [] },
    writer,
    operator: keys.issuer?.address ?? null,
    contract: checksumAddress(contract),
    ...tap,
  }
}

/** The products of the demonstration are the first tokens of its chain. */
const demoTokens = Array.from({ length: 14 }, (_token, index) => BigInt(index + 1))

/** Without a pepper no tag can be found on chain, so that the verifier is not configured. */
function createTapFlow({
  config,
  database,
  fleet,
  verdicts,
  log,
}: {
  config: Config
  database: Database
  fleet: Fleet
  verdicts: Verdicts
  log: Log
}) {
  const { commitment, pepper, kek, windowSeconds, bind, challenge } = config.tap
  const tagHash =
    commitment === 'hmac'
      ? pepper === null
        ? undefined
        : createTagHash({ scheme: 'hmac', pepper })
      : createTagHash({ scheme: commitment })
  const { keys } = fleet
  const secret = createHash('sha256')
    .update('touchstone tap tokens')
    .update(kek ?? '')
    .digest()
  const verifyTap = createVerifyTap({
    keys: tagHash === undefined ? { ...keys, ready: () => false } : keys,
    authenticate: createAuthenticate({ keys }),
    ledger: createLedger({ sql: database, windowSeconds }),
    tagHash: tagHash ?? (() => zeroHash),
    binding: bind ? createTapBinding({ secret }) : undefined,
    challenge: challenge ? createTapChallenge({ secret }) : undefined,
    onAnomaly: ({ kind, batchId, counter, lastCounter }) =>
      log.warn('unusual tap', { kind, batchId, counter, lastCounter }),
  })
  const presentTap = createPresentTap({
    verifyTap,
    verdicts,
    announce: async (tag, verdict) => {
      if (await announceOnce(database, tag))
        log.info('product verified', { tokenId: verdict.token_id, tapCounter: tag.tapCounter })
    },
    onRefused: (kind, reason) => log.info('tap refused', { kind, reason }),
  })
  return { presentTap, tagHash }
}

const zeroHash = `0x${'0'.repeat(64)}` as const

/** One key for all operator roles, one for the attester; a role without key writes nothing. */
function operatorKeys({ operator }: Config): OperatorKeys {
  const { key, attesterKey } = operator
  const account = key === null ? undefined : privateKeyToAccount(bytesToHex(key))
  const attester = attesterKey === null ? undefined : privateKeyToAccount(bytesToHex(attesterKey))
  return {
    ...(account && {
      issuer: account,
      binder: account,
      qa: account,
      guardian: account,
      recycler: account,
      relayer: account,
    }),
    ...(attester && { attester }),
  }
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
