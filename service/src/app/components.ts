/** The components of one process: their types, and the function that builds them. They close in reverse order. */
import { checksumAddress, type Hex } from '@touchstone/verdict'
import { createHistories, createMinters, createStateChanges } from '../assets/history.ts'
import type { Histories, Minters, StateChanges } from '../assets/history.ts'
import { cachedMetadata, type CachedMetadata } from '../assets/metadata-store.ts'
import { cachedPictures, type CachedPictures } from '../assets/pictures/store.ts'
import { createProofBundles, type ProofBundles } from '../assets/proof-bundle.ts'
import { createVerdicts, type Verdicts } from '../assets/verdicts.ts'
import { type AssetReader, createAssetReader } from '../chain/assets/reader.ts'
import { createIndexer, type Indexer } from '../chain/indexer/indexer.ts'
import { type AnyProvider, createAnyProvider } from '../chain/rpc/any-provider.ts'
import { requiredAnswers } from '../chain/rpc/trust.ts'
import type { RpcClient } from '../chain/rpc/client.ts'
import type { ChainCounts } from '../chain/rpc/provider.ts'
import { createChainSource, type RpcChainSource } from '../chain/rpc/source.ts'
import { type OperationStore, operationStore } from '../chain/transactions/operations.ts'
import { createTransferReads, type TransferReads } from '../chain/transactions/transfer-reads.ts'
import { createWriter, type Writer } from '../chain/transactions/writer.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { locks } from '../db/locks.ts'
import { createReadReplica, type ReadReplica } from '../db/replica.ts'
import { chainId } from '../domain/chain.ts'
import { recycleAct } from '../access/approvals/acts.ts'
import { ofContract, wholeIndex } from '../index/contract.ts'
import { classStore, type ClassStore } from '../index/queries/classes.ts'
import { type HistoryStore, historyStore } from '../index/history.ts'
import { outboxNotices } from '../index/outbox.ts'
import { tokenPages } from '../index/snapshot.ts'
import { indexStore } from '../index/store.ts'
import type { Log } from '../lib/log.ts'
import type { BrandTheme } from '../pages/brands/theme.ts'
import { readThemes } from './themes.ts'
import type { Issuer } from '../passport/signing/issuer.ts'
import {
  createStatusBits,
  createStatusIndexes,
  type StatusBits,
  statusCandidates,
} from '../passport/signing/status-list.ts'
import { type StatusIndex, statusStore } from '../passport/signing/status-store.ts'
import { createReplayLedger, createTapAnnouncement, createTapPruning } from '../tap/replay-ledger.ts'
import { createResolveTap, type ResolveTap } from '../tap/resolve-tap.ts'
import { type Claims, createItemClaims } from '../ownership/claims.ts'
import { createPageTransfers, type PageTransfers } from '../ownership/page-transfers.ts'
import type { SignedWriteDeps } from '../ownership/signed-writes.ts'
import { missingKeysRemedy } from '../tap/keys/shared.ts'
import { createAuthenticate } from '../tap/sun/authenticate.ts'
import { createSearchBudget } from '../tap/sun/search-budget.ts'
import { createTapLog, type TapLog } from '../tap/log/recorder.ts'
import { createTapTickets, type TapTickets } from '../tap/tap-ticket.ts'
import { createTapBinding, createTapChallenge, tapSecrets } from '../tap/tap-tokens.ts'
import type { TagHash } from '../tap/tag-hash.ts'
import { createVerifyTap } from '../tap/verify-tap.ts'
import { type Config, ConfigError } from './config/config.ts'
import { assertPageKeys, keysByRole, openRoleKeys, type RoleKey } from './keys.ts'
import { configuredTagHashes, joinStore, openApprovals, type StoreComponents } from './store.ts'

/** Times after which requests to the chain, and for the texts of verdicts, are given up. Tests on a busy machine set longer ones. */
type Deadlines = {
  readonly attemptTimeoutMs?: number
  readonly readTimeoutMs?: number
  readonly rpcTimeoutMs?: number
  readonly receiptWaitMs?: number
  readonly textTimeoutMs?: number
}

export type ComponentOverrides = { readonly deadlines?: Deadlines }

type ChainClient = 'verdicts' | 'agents' | 'index' | 'writes' | 'payments'

export type Components = StoreComponents & {
  /** The registry contract, EIP-55 checksummed. */
  readonly contract: Hex
  readonly source: RpcChainSource
  /** Connections of their own: an agent registry with a huge answer must not delay verdicts. */
  readonly agentSource: RpcChainSource
  /** Connections of their own: a wide range of logs takes long. */
  readonly indexSource: RpcChainSource
  /** Counters of all that ask the chain, for the metrics. `writes` also counts transfer reads and claims. */
  readonly chainClients: Readonly<Record<ChainClient, { readonly stats: () => ChainCounts }>>
  readonly reader: AssetReader
  readonly metadataTexts: CachedMetadata
  readonly pictureForms: CachedPictures
  readonly verdicts: Verdicts
  /** Undefined where PROOF_BUNDLE is off. */
  readonly proofs: ProofBundles | undefined
  readonly chainInterface: Config['chain']['interface']
  readonly startBlock: bigint
  readonly indexer: Indexer
  readonly history: Histories
  readonly stateChanges: StateChanges
  readonly minters: Minters
  readonly historyRows: HistoryStore
  readonly classes: ClassStore
  /** GraphQL lists are read from here: the replica where there is one, else the database itself. */
  readonly lists: Pick<ReadReplica, 'over' | 'start' | 'close'> & {
    readonly stats: ReadReplica['stats'] | undefined
  }
  readonly issuerName: string
  /** Settings of the pages, and the tokens that the start page shows as examples. */
  readonly pages: Omit<Config['pages'], 'themeDir'> & {
    readonly windowSeconds: number
    readonly examples: readonly bigint[]
    readonly themes: readonly BrandTheme[]
  }
  readonly statusIndexOf: (tokenId: bigint) => Promise<StatusIndex>
  readonly statusBits: (list: number) => Promise<StatusBits | null>
  readonly operations: OperationStore
  readonly writer: Writer
  /** Connections of their own, over all providers. */
  readonly paymentRpc: RpcClient
  readonly roleKeys: readonly RoleKey[]
  /** The issuer's address; null where no key of it is set. */
  readonly operator: Hex | null
  readonly transferReads: TransferReads
  /** Undefined where tags are committed to with a pepper, and none is set. */
  readonly tagHash: TagHash | undefined
  /** The commitment with TAG_PEPPER_PREVIOUS, which only reads use. Undefined where none is set. */
  readonly formerTagHash: TagHash | undefined
  /** Reads the token that a tag is bound to under its former commitment; null without one. Throws CHAIN_UNAVAILABLE. */
  readonly formerBinding: (uid: Uint8Array) => Promise<bigint | null>
  readonly resolveTap: ResolveTap
  /** Undefined unless PAGE_OWNERSHIP names `claim`. */
  readonly pageClaims: { readonly claims: Claims; readonly tickets: TapTickets } | undefined
  /** Undefined unless PAGE_OWNERSHIP names `transfer`. */
  readonly pageTransfers: { readonly steps: PageTransfers; readonly tickets: TapTickets } | undefined
  /** Undefined without TAG_KEK: no tap can be verified then. */
  readonly reportTickets: TapTickets | undefined
  readonly certificateTickets: TapTickets | undefined
}

/** The components of a service, which has opened the keys of the issuer. */
export type ServiceComponents = Components & { readonly issuer: Issuer }

/** Opens the components for a service, or for a command of the CLI that needs the chain. Throws a ConfigError for a setting that is missing. */
export async function openComponents(
  config: Config,
  log: Log,
  { deadlines }: ComponentOverrides = {},
): Promise<Components & AsyncDisposable> {
  const { contract, rpcUrls, codeHash, recordsSlot } = config.chain
  if (rpcUrls.length === 0)
    throw new ConfigError('CHAIN_RPC_URLS must name at least one JSON-RPC provider, such as https://sepolia.base.org.')
  if (contract === null) throw new ConfigError('CHAIN_CONTRACT must be the address of the registry contract.')

  await using opened = new AsyncDisposableStack()
  const owned = <T extends { readonly close: () => void | Promise<void> }>(component: T): T =>
    opened.adopt(component, (it) => it.close())
  const openSource = (name: string, timeouts = {}): RpcChainSource =>
    owned(createChainSource({ ...config.chain, ...deadlines, contract, chainId, log: log.child(name), ...timeouts }))
  const store = await joinStore(config, log, opened)
  const { database } = store

  const source = openSource('chain')
  const agentSource = openSource('agents')
  const indexSource = openSource('indexer', { attemptTimeoutMs: 10_000, readTimeoutMs: 20_000 })
  const reader = owned(createAssetReader({ ...config.chain, ...deadlines, source, contract, log: log.child('reader') }))

  const metadataTexts = cachedMetadata(store.metadata)
  const verdicts = createVerdicts({
    assets: reader,
    metadata: metadataTexts,
    contract,
    maxEntries: config.chain.cacheEntries,
    // The embedded database is in this process, so that it cannot hang alone.
    textTimeoutMs: database.dialect === 'pglite' ? Infinity : deadlines?.textTimeoutMs,
    log: log.child('verdicts'),
  })
  const proofs =
    config.proofBundle && codeHash !== undefined
      ? createProofBundles({ source, contract, codeHash, recordsSlot })
      : undefined

  const indexer = owned(
    createIndexer({
      source: indexSource,
      store: indexStore(database, { retentionDays: config.index.eventRetentionDays }),
      contract,
      startBlock: config.chain.startBlock,
      lock: () => database.hold(locks.indexLeader),
      pollMs: config.index.pollMs,
      confirmations: BigInt(config.index.confirmations),
      check: { ...config.chain, contract, pages: tokenPages(database), everyMs: config.index.checkSeconds * 1_000 },
      ...(config.tap.retentionDays > 0 && {
        housekeeping: createTapPruning({ sql: database, days: config.tap.retentionDays }),
      }),
      log: log.child('indexer'),
    }),
  )
  const indexed = ofContract(database, contract)
  const whole = wholeIndex(indexed)
  const historyRows = historyStore(indexed)
  const history = createHistories({
    assets: reader,
    index: indexer,
    store: historyRows,
    contract,
    log: log.child('indexer'),
  })
  const stateChanges = createStateChanges({ store: historyRows, source, contract, log: log.child('indexer') })
  const minters = createMinters({ assets: reader, index: indexer, store: historyRows })
  const lists = owned(openLists(config, database, log))
  const statusIndexes = statusStore(database)

  const operations = operationStore(database)
  const roleKeys = await openRoleKeys(config, store.keyStores)
  const keys = keysByRole(roleKeys)
  assertPageKeys(config, keys)
  const openAny = (name: string): AnyProvider =>
    owned(
      createAnyProvider({
        ...deadlines,
        rpcUrls,
        contract,
        chainId,
        neededForReceipts: requiredAnswers(config.chain),
        log: log.child(name),
      }),
    )
  const transactions = openAny('writer')
  const payments = openAny('payments')
  const writer = owned(
    createWriter({
      ...deadlines,
      rpc: transactions.rpc,
      contract,
      chainId,
      keys,
      operations,
      local: config.demo,
      onMined: (blockNumber) => {
        reader.dropHead(blockNumber)
        indexer.wake()
      },
      log: log.child('writer'),
    }),
  )
  const { maxHeadAgeSeconds } = config.chain
  const transferReads = createTransferReads({ rpc: transactions.rpc, contract, chainId, maxHeadAgeSeconds })
  const onChain = recycleAct({ writer, operations, transfers: transferReads })
  const approvals = openApprovals(config, log, store, onChain, whole)
  const { tagHash, formerTagHash } = configuredTagHashes(config)
  const tapLog = opened.use(createTapLog({ database, log: log.child('tap') }))
  const components: Components = {
    ...store,
    contract: checksumAddress(contract),
    source,
    agentSource,
    indexSource,
    chainClients: { verdicts: source, agents: agentSource, index: indexSource, writes: transactions, payments },
    reader,
    metadataTexts,
    pictureForms: cachedPictures(store.pictures),
    verdicts,
    proofs,
    chainInterface: config.chain.interface,
    startBlock: config.chain.startBlock,
    indexer,
    history,
    stateChanges,
    minters,
    historyRows,
    classes: classStore(whole),
    lists,
    issuerName: config.passport.issuerName,
    pages: {
      ...config.pages,
      windowSeconds: config.tap.windowSeconds,
      examples: config.demo ? demoTokens : [],
      themes: config.roles.has('verification') ? readThemes(config.pages.themeDir) : [],
    },
    statusIndexOf: createStatusIndexes(statusIndexes, statusCandidates(config.tap.pepper ?? config.tap.kek)),
    statusBits: createStatusBits({ reader, store: statusIndexes }),
    operations,
    writer,
    paymentRpc: payments.rpc,
    roleKeys,
    operator: keys.issuer?.address ?? null,
    transferReads,
    approvals,
    tagHash,
    formerTagHash,
    formerBinding: async (uid) =>
      formerTagHash === undefined ? null : (await reader.readByTag(formerTagHash(uid))).tokenId,
    ...openPages(config, store.tags, { writer, operations, transfers: transferReads }),
    resolveTap: createTapFlow(config, { ...store, verdicts, tagHash, formerTagHash, tapLog }, log.child('tap')),
  }
  const resources = opened.move()
  return { ...components, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

/** The products of the demonstration are the first tokens of its chain. */
const demoTokens = Array.from({ length: 16 }, (_token, index) => BigInt(index + 1))

function openLists({ store: { readUrl: url }, roles }: Config, database: Database, log: Log): Components['lists'] {
  if (url === null || !roles.has('graphql'))
    return { over: (view) => view(database), stats: undefined, start: () => {}, close: async () => {} }
  return createReadReplica({
    primary: database,
    open: (pool) => openDatabase({ url, ...pool }),
    log: log.child('replica'),
  })
}

/** Makes the tickets of pages after a tap, and the steps of ownership that a page offers. Without TAG_KEK no tap can be verified. */
function openPages(
  { pages: { ownership }, tap }: Config,
  { revokedBatches }: Pick<StoreComponents['tags'], 'revokedBatches'>,
  deps: SignedWriteDeps,
): Pick<Components, 'reportTickets' | 'certificateTickets' | 'pageClaims' | 'pageTransfers'> {
  const ticketsFor = (purpose: Parameters<typeof createTapTickets>[0]['purpose']) =>
    createTapTickets({ ...tapSecrets(tap), revokedBatches, purpose })
  return {
    reportTickets: tap.kek === null ? undefined : ticketsFor('difference report'),
    certificateTickets: tap.kek === null ? undefined : ticketsFor('certificate'),
    pageClaims: ownership.has('claim') ? { claims: createItemClaims(deps), tickets: ticketsFor('claim') } : undefined,
    pageTransfers: ownership.has('transfer')
      ? { steps: createPageTransfers(deps), tickets: ticketsFor('transfer') }
      : undefined,
  }
}

/** The tap flow (spec §4.4). Without a tag hash no tag can be found on chain, so that the verifier is not configured. */
function createTapFlow(
  { tap, pages: { ownership } }: Config,
  parts: Pick<Components, 'database' | 'tagKeys' | 'verdicts' | 'tagHash' | 'formerTagHash'> & { tapLog: TapLog },
  log: Log,
): ResolveTap {
  const { database, tagKeys, verdicts, tagHash, formerTagHash, tapLog } = parts
  const { keys } = tagKeys
  const { windowSeconds } = tap
  let noted = ''
  async function missing(): Promise<readonly string[]> {
    const batches = await tagKeys.missing()
    if (noted !== batches.join()) {
      if (batches.length === 0) log.info('tag keys are complete again')
      else log.warn('tag keys are missing or not the newest', { batches: batches.join(' '), remedy: missingKeysRemedy })
      noted = batches.join()
    }
    return batches
  }
  const secrets = tapSecrets(tap)
  const notifyReaders = outboxNotices(database)
  return createResolveTap({
    verifyTap: createVerifyTap({
      keys: tagHash === undefined ? { likely: () => [] } : keys,
      missing,
      authenticate: createAuthenticate({ keys, budget: createSearchBudget() }),
      ledger: createReplayLedger({
        sql: database,
        windowSeconds,
        onSetBack: (until) =>
          log.error('the clock of the database was set back: a tap is good for one request', {
            until: new Date(until).toISOString(),
            remedy: 'set that clock right, then start every process again',
          }),
      }),
      tagHash: tagHash ?? (() => `0x${'0'.repeat(64)}`),
      formerTagHash,
      binding:
        tap.bind || ownership.has('claim') || ownership.has('transfer')
          ? createTapBinding({ ...secrets, windowSeconds })
          : undefined,
      mustBind: tap.bind,
      challenge: tap.challenge ? createTapChallenge(secrets) : undefined,
      record: tapLog.record,
      onAnomaly: ({ kind, batchId, counter, lastCounter }) =>
        log.warn('unusual tap', { kind, batchId, counter, lastCounter }),
    }),
    verdicts,
    announce: createTapAnnouncement(database),
    onVerified: (tag, verdict) => {
      notifyReaders()
      log.info('product verified', { tokenId: verdict.token_id, tapCounter: tag.tapCounter })
    },
    onRefused: (kind, reason, batchId) => log.info('tap refused', { kind, reason, batchId }),
  })
}
