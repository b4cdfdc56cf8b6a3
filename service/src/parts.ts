/**
 * Opens every part of the service, joins them and closes them: this file and its `parts-*` are the only ones that know them all.
 */
import { checksumAddress } from '@touchstone/verdict'
import { bytesToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { cachedMetadata } from './asset/metadata.ts'
import { createProofBundles } from './asset/proof-bundle.ts'
import { createVerdicts } from './asset/verdicts.ts'
import { createAssetReader } from './chain/asset-reader.ts'
import { createChainSource } from './chain/providers.ts'
import { createTransferReads } from './chain/transfer-reads.ts'
import { createWriter, type OperatorKeys } from './chain/writer.ts'
import { ConfigError, type Config } from './config.ts'
import type { Log } from './log.ts'
import { createIndexParts } from './parts-index.ts'
import { joinStore, longStatementMs, openLists, openStore } from './parts-store.ts'
import { createTapFlow } from './parts-tap.ts'
import { createStatusIndexes } from './passport/status-list.ts'
import type { Database } from './store/database.ts'
import { operationStore } from './store/operations.ts'
import { statusPlaceStore } from './store/status-lists.ts'
import { createStatusBits } from './verification/passport-status-bits.ts'

export const chainId = 84532

export type Parts = AsyncDisposable & Awaited<ReturnType<typeof joinParts>>
export type StoreParts = AsyncDisposable & Awaited<ReturnType<typeof joinStore>>

/** Everything but the listeners: what a command of the CLI works with. */
export const openParts = (config: Config, log: Log): Promise<Parts> => opening(config, log, joinParts)

/** What needs no chain: batches, keys, the registry of tags. */
export const openStoreParts = (config: Config, log: Log): Promise<StoreParts> => opening(config, log, joinStore)

/** The database alone and as it is, with time for long statements: for what changes its schema, or fills it. */
export const openBareDatabase = (config: Pick<Config, 'dataDir' | 'store'>): Promise<Database> =>
  openStore(config, { poolSize: 2, statementTimeoutMs: longStatementMs })

type Join<T> = (config: Config, log: Log, opened: AsyncDisposableStack) => Promise<T>

async function opening<T>(config: Config, log: Log, joinAll: Join<T>): Promise<T & AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const joined = await joinAll(config, log, opened)
  const rest = opened.move()
  return { ...joined, [Symbol.asyncDispose]: () => rest.disposeAsync() }
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
  // Of its own: an agent registry with a huge answer must not count against those who read verdicts.
  const agentSource = opened.adopt(
    createChainSource({ ...config.chain, contract, chainId, log: log.child('agents') }),
    (it) => it.close(),
  )
  const metadataTexts = cachedMetadata(metadata)
  const verdicts = createVerdicts({
    assets: reader,
    metadata: metadataTexts,
    contract,
    chainId,
    maxEntries: config.chain.cacheEntries,
    log: log.child('verdicts'),
  })
  const proofs =
    config.proofBundle && codeHash !== undefined
      ? createProofBundles({ source, contract, chainId, codeHash, recordsSlot })
      : undefined

  const { close: closeIndex, ...index } = createIndexParts({
    config,
    database,
    reader,
    contract,
    chainId,
    log: log.child('indexer'),
  })
  opened.defer(closeIndex)
  const lists = openLists(config, database, log)
  opened.defer(() => lists.close())
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
    onMined: (blockNumber) => {
      reader.dropHead(blockNumber)
      index.indexer.nudge()
    },
    log: log.child('writer'),
  })
  opened.defer(() => writer.close())

  const tap = createTapFlow({ config, database, fleet, verdicts, log: log.child('tap') })

  return {
    ...store,
    source,
    agentSource,
    reader,
    verdicts,
    metadataTexts,
    proofs,
    ...index,
    lists,
    statusIndexOf: createStatusIndexes(places),
    statusBits: createStatusBits({ reader, places }),
    issuerName: config.passport.issuerName,
    pages: { ...config.pages, windowSeconds: config.tap.windowSeconds, examples: config.demo ? demoTokens : [] },
    writer,
    operations,
    transferReads: createTransferReads({ rpcUrl, contract, chainId }),
    chainInterface: config.chain.interface,
    operator: keys.issuer?.address ?? null,
    contract: checksumAddress(contract),
    ...tap,
  }
}

/** The products of the demonstration are the first tokens of its chain. */
const demoTokens = Array.from({ length: 14 }, (_token, index) => BigInt(index + 1))

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
