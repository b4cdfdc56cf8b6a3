/** Builds each host of the service (spec §1) from the components, once all listen, so that links can name every port. */
import type { RequestListener } from 'node:http'
import { type Hex, zeroAddress } from '@touchstone/verdict'
import { createA2aAgent } from '../agents/a2a/agent.ts'
import { createTaskStore } from '../agents/a2a/tasks.ts'
import { createRemoteFiles } from '../agents/erc8004/fetch.ts'
import { createRegistryReads } from '../agents/erc8004/reads.ts'
import { createAgents } from '../agents/erc8004/registry.ts'
import { createReputations } from '../agents/erc8004/reputation.ts'
import { identityAt, mcpDocuments } from '../agents/mcp/protocol.ts'
import { createTools } from '../agents/tools/tools.ts'
import { takesWrites } from '../db/database.ts'
import { discoveryDocuments } from '../discovery/documents.ts'
import { packageDocuments } from '../discovery/packages.ts'
import type { HostName, HostUrls } from '../discovery/instance.ts'
import { openApiDocument } from '../discovery/openapi.ts'
import { chainId } from '../domain/chain.ts'
import { type AuthenticateKey, createKeyAuthentication } from '../access/api-keys.ts'
import { contextFactory, createLoaders, refusalNotes } from '../graphql/context.ts'
import { liveStores } from '../graphql/live-stores.ts'
import { indexStores } from '../graphql/stores.ts'
import { createTurns } from '../graphql/turns.ts'
import { createFormatError } from '../graphql/errors.ts'
import { mutationResolvers } from '../graphql/mutations/resolvers.ts'
import { playgroundRoutes } from '../graphql/playground/playground.ts'
import { queryResolvers } from '../graphql/queries/queries.ts'
import { tapResolvers } from '../graphql/queries/taps.ts'
import { graphqlSchema } from '../graphql/schema.ts'
import { createHttpOperation } from '../graphql/server/operation.ts'
import { createPrepareOperation, type PrepareOperation } from '../graphql/server/prepare.ts'
import { prepareTrusted, readTrustedDocuments } from '../graphql/server/trusted-documents.ts'
import { createConnections } from '../graphql/connections/connections.ts'
import { createStreamOperation } from '../graphql/connections/event-stream.ts'
import { createSocketServer } from '../graphql/connections/socket.ts'
import { createEventDispatcher } from '../graphql/subscriptions/dispatcher.ts'
import { payloadLoader, subscriptionResolvers } from '../graphql/subscriptions/subscriptions.ts'
import { openGateway } from '../hosts/gateway/gateway.ts'
import { createGraphqlHost } from '../hosts/graphql/host.ts'
import { verificationListener } from '../hosts/verification/host.ts'
import { docsPages } from '../hosts/verification/docs/sources.ts'
import { clientCountries } from '../http/client-country.ts'
import { clientAddresses, clientKeys } from '../http/client-ip.ts'
import type { OnUpgrade } from '../http/listener.ts'
import { identified } from '../http/request.ts'
import { withDocument } from '../http/static-document.ts'
import { ofContract, wholeIndex } from '../index/contract.ts'
import type { IndexDatabase } from '../index/steps.ts'
import { refreshAssetItem } from '../index/assets/registrations.ts'
import { outboxChannel, outboxStore } from '../index/outbox.ts'
import type { Log } from '../lib/log.ts'
import { programVersion } from '../lib/version.ts'
import { createChannelStore } from '../payments/channels/store.ts'
import { readSecretHeaders } from '../payments/facilitator/headers.ts'
import { createNonceSlots } from '../payments/facilitator/slots.ts'
import { openHolder } from '../payments/holder.ts'
import { createPaymentLedger } from '../payments/ledger/ledger.ts'
import type { PaymentTerms } from '../payments/x402/terms.ts'
import type { ServiceComponents } from './components.ts'
import { ConfigError, type Config } from './config/config.ts'
import { channelKeys, facilitatorAccounts } from './keys.ts'
import type { Limits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { openWallets } from './wallets.ts'

export type OpenHost = Readonly<{
  onRequest: RequestListener
  onUpgrade?: OnUpgrade
  /** Ends connections that would keep the listener from closing. */
  stop?: () => void
  /** Runs after the last answer. */
  close?: () => Promise<void>
}>

type Opening = Readonly<{
  config: Config
  components: ServiceComponents
  urls: HostUrls
  limits: Limits
  metrics: Metrics | undefined
  log: Log
}>

export const hosts: Readonly<Record<HostName, (opening: Opening) => OpenHost | Promise<OpenHost>>> = {
  verification: openVerification,
  gateway: openGatewayHost,
  graphql: openGraphql,
}

async function openVerification({ config, components, urls, limits, log }: Opening): Promise<OpenHost> {
  const { limits: most, pages } = config
  const wallets = await openWallets(config.passport, log)
  const { clientKey, clientAddress } = clientsOf(config, log)
  const { mcp, documents, stop, close, ...agents } = openAgentInterfaces({ config, components, urls, log })
  const limiter = limits.limiterOf(most.asset, { scope: 'asset' })
  const agentLimiter = limits.limiterOf(most.mcp, { scope: 'agents' })
  const gatewayUrl = namedGateway(config, urls)
  const discovery = discoveryDocuments({
    urls: { ...urls, gateway: gatewayUrl },
    operator: components.issuerName,
    contract: components.contract,
    rpcUrl: pages.publicRpcUrl ?? 'https://sepolia.base.org',
    exampleTokenId: components.pages.examples[4] ?? 1n,
    docs: docsPages(),
    securityContact: config.agents.securityContact,
    startedAt: new Date(),
  })
  return {
    stop,
    close,
    onRequest: verificationListener({
      ...components,
      wallets,
      baseUrl: urls.verification,
      gatewayUrl: gatewayUrl ?? undefined,
      graphqlUrl: urls.graphql,
      discovery: new Map([...discovery, ...documents, ...packageDocuments()]),
      limiter,
      tapLimiter: limits.limiterOf(most.tap, { scope: 'tap', name: 'taps' }),
      forgeryLimiter: limits.limiterOf(most.forgedTaps, { scope: 'forged-taps' }),
      agents: {
        ...agents,
        limiter,
        a2aLimiter: agentLimiter,
        mcp: { ...mcp, limiter: agentLimiter, otherLimiter: limiter },
      },
      clientKey,
      keyAccess: { authenticate: authenticateBy({ components, limits, log }), clientAddress },
      clientCountry: clientCountries(config.tap.countryHeader, most.trustedProxies),
      log,
    }),
  }
}

/** Names the client of a request. A proxy that names none is logged once. */
function clientsOf({ limits: { trustedProxies } }: Config, log: Log) {
  let isNoted = false
  const noteOnce = () => {
    if (!isNoted)
      log.warn('a proxy of TRUSTED_PROXIES names no address in X-Forwarded-For', {
        remedy: 'let it send the address of the client: until then all its clients share one limit',
      })
    isNoted = true
  }
  return {
    clientKey: clientKeys(trustedProxies, noteOnce),
    clientAddress: clientAddresses(trustedProxies, noteOnce),
  }
}

/** Returns the URL of the gateway for documents. It is null where proofs are sold neither here nor at a configured URL. */
function namedGateway({ gateway: { payTo }, hosts: { gateway } }: Config, urls: HostUrls): string | null {
  return payTo === null && gateway.url === null ? null : urls.gateway
}

/** The interfaces for agents (spec §4.2, §4.3, §9): tools, MCP, A2A, and the agent registries with connections of their own. */
function openAgentInterfaces({ config, components, urls, log }: Omit<Opening, 'limits' | 'metrics'>) {
  const { id, identity, reputation, reviewers, remoteFiles, origins } = config.agents
  const { verdicts, history, contract, agentSource } = components
  const tools = createTools({ verdicts, histories: history, contract, log })
  const own = identityAt(urls.verification, programVersion, components.issuerName)
  const reads = createRegistryReads(agentSource)
  const remote = remoteFiles ? createRemoteFiles() : undefined
  const stopping = new AbortController()
  return {
    a2a: createA2aAgent({ tools, tasks: createTaskStore(), stopping: stopping.signal }),
    agents: createAgents({ reads, identity, remote }),
    reputations: createReputations({ reads, identity, reputation, reviewers }),
    ownAgent: {
      baseUrl: urls.verification,
      gatewayUrl: namedGateway(config, urls),
      name: own.title,
      operator: components.issuerName,
      description: own.description,
      programVersion,
      agentId: id === null ? null : BigInt(id),
      identity,
    },
    mcp: { tools, identity: own, origins },
    documents: mcpDocuments(own),
    stop: () => stopping.abort(),
    close: async () => remote?.close(),
  }
}

/** The payment gateway (spec §2.6, §4.7, §4.8). */
async function openGatewayHost({ config, components, urls, limits, metrics, log }: Opening): Promise<OpenHost> {
  const { asset, facilitatorUrl, facilitatorHeadersFile, allowHighPrice, v2Header } = config.gateway
  const terms = paymentTermsOf(config, urls.gateway)
  const keys = await components.attestationKeys()
  keys.active() // throws the reason when there is none
  if (facilitatorHeadersFile !== null) await readSecretHeaders(facilitatorHeadersFile) // throws why it cannot be used
  await using opened = new AsyncDisposableStack()
  const holder = opened.use(await openHolder(components.database))
  const rows = { chainId, asset: asset.address, holder }
  const [channelKey, ...otherKeys] = channelKeys(config)
  const gateway = await openGateway({
    terms,
    allowHighPrice,
    v2Header,
    contract: components.contract.toLowerCase() as Hex,
    verdicts: components.verdicts,
    ledger: createPaymentLedger(components.database, rows),
    slots: createNonceSlots(components.database, rows),
    channels: channelKey && {
      store: createChannelStore(components.database, rows),
      accounts: [channelKey, ...otherKeys],
    },
    takesWrites: () => takesWrites(components.database),
    isIndexFaulty: async () => (await components.indexer.status()).fault !== null,
    rpc: components.paymentRpc,
    facilitator:
      facilitatorUrl === null
        ? {
            accounts: await facilitatorAccounts(config, components.keyStores),
            walletFactories: config.gateway.walletFactories,
          }
        : { url: facilitatorUrl, headersFile: facilitatorHeadersFile },
    keys,
    limiter: limits.limiterOf(config.limits.gateway, { scope: 'gateway' }),
    refusals: limits.limiterOf(config.limits.gateway, { scope: 'refused-payments' }),
    clientKey: clientsOf(config, log).clientKey,
    retentionDays: config.gateway.retentionDays,
    // The embedded database has one process, so that no other one leaves payments behind.
    ...(components.database.dialect === 'pglite' && { reconcileMs: 5_000 }),
    log,
  })
  opened.use(gateway)
  metrics?.watch({ gateway })
  const onRequest = identified(withDocument('/openapi.json', openApiDocument(urls), gateway.onRequest))
  const owned = opened.move()
  return { onRequest, close: () => owned.disposeAsync() }
}

/** Throws a ConfigError without an address that is paid. */
export function paymentTermsOf({ gateway: { payTo, price, asset } }: Config, gatewayUrl: string): PaymentTerms {
  if (payTo === null) throw new ConfigError('The gateway needs PAYMENT_PAY_TO, the address that buyers pay.')
  const token = { asset: asset.address, tokenName: asset.name, tokenVersion: asset.version }
  return { price, payTo, resource: `${gatewayUrl}/verify`, ...token }
}

/** Unknown keys that one client may try in a minute. */
const attemptsAMinute = 30

function authenticateBy({ components, limits, log }: Pick<Opening, 'components' | 'limits' | 'log'>): AuthenticateKey {
  const attempts = limits.limiterOf(attemptsAMinute, { scope: 'wrong-keys', windowSeconds: 60 })
  return createKeyAuthentication({ keys: components.apiKeys, attempts, log })
}

/** The longest wait of a mutation for the index, in ms. */
const indexWaitMs = 2_000

/** The GraphQL host (spec §4.9, §5, §6): schema, keys, sockets, playground. */
async function openGraphql({ config, components, limits, metrics, log }: Opening): Promise<OpenHost> {
  const { database, apiKeys, reader, indexer, lists } = components
  const contract = components.contract.toLowerCase() as Hex
  const own = (from: IndexDatabase) => ofContract(from, contract)
  const wholeOf = (from: IndexDatabase) => wholeIndex(own(from))
  const whole = wholeOf(database)
  const stores = liveStores(indexStores(own(database), whole), reader)
  const listStores = liveStores(indexStores(lists.over(own), lists.over(wholeOf)), reader)
  lists.start()
  const keys = await components.attestationKeys()
  const outbox = outboxStore(database)
  const load = payloadLoader(
    () => createLoaders(stores),
    () => keys.address() ?? zeroAddress,
    outbox,
  )
  await using opened = new AsyncDisposableStack()
  const dispatcher = opened.use(
    await createEventDispatcher({
      outbox,
      listen: (onNotice) => database.listen(outboxChannel, onNotice),
      load,
      log,
    }),
  )
  const schema = graphqlSchema(
    queryResolvers({
      metadata: components.metadataTexts,
      chainId,
      contract,
      chainStatus: () => readChainStatus(components),
    }),
    mutationResolvers({
      ...components,
      transfers: components.transferReads,
      awaitIndexed: (block) => {
        reader.dropHead(block)
        indexer.wake()
        return indexer.until(block, indexWaitMs)
      },
      itemChanged: (tokenId) => refreshAssetItem(database, tokenId),
      forgeryLimiter: limits.limiterOf(config.limits.forgedTaps, { scope: 'forged-taps' }),
      log,
    }),
    subscriptionResolvers({ dispatcher, outbox, branded: outboxStore(whole), load, log }),
    tapResolvers,
  )
  // The embedded database runs one statement at a time. A second one that waits would only delay those of others.
  const turns = createTurns(database.dialect === 'pglite' ? { readsAtOnce: 1 } : {})
  const documents = await trustedDocumentsOf(config, schema)
  const { introspection } = config.graphql
  const prepare = prepareTrusted(createPrepareOperation({ schema, introspection }), documents)
  const shared = {
    prepare: metrics === undefined ? prepare : counted(prepare, metrics),
    createContext: contextFactory(stores, listStores, refusalNotes(database, log), turns),
    formatError: createFormatError(log),
    authenticate: authenticateBy({ components, limits, log }),
    limiter: limits.limiterOf(config.limits.graphql, { scope: 'graphql' }),
    ...clientsOf(config, log),
    log,
  }
  const connections = createConnections({ keys: apiKeys, log })
  metrics?.watch({ sockets: connections.count, ...(lists.stats && { replica: lists.stats }) })
  const listener = createGraphqlHost({
    ...shared,
    operation: createHttpOperation(shared),
    stream: createStreamOperation({ ...shared, connections }),
    playground: playgroundRoutes(),
  })
  const onUpgrade = createSocketServer({ ...shared, connections })
  const owned = opened.move()
  return {
    onRequest: identified(listener),
    onUpgrade,
    stop: () => void connections.close(),
    close: async () => {
      await connections.close()
      await owned.disposeAsync()
    },
  }
}

/** Reads the file of GRAPHQL_PERSISTED; null without one. Throws one sentence for a file that cannot be used. */
export async function trustedDocumentsOf({ graphql: { persisted } }: Config, schema = graphqlSchema()) {
  return persisted === null ? null : readTrustedDocuments(persisted, schema)
}

const headWaitMs = 2_000

/** The head is the reader's own where it was resolved lately. */
async function readChainStatus({ indexer, reader, source }: ServiceComponents) {
  const [{ fault }, head] = await Promise.all([
    indexer.status(),
    reader.head() ?? source.head({ deadline: performance.now() + headWaitMs }).catch(() => null),
  ])
  return { head: head?.number ?? null, isFaulty: fault !== null }
}

function counted(prepare: PrepareOperation, { countOperation }: Metrics): PrepareOperation {
  return (request) => {
    const prepared = prepare(request)
    countOperation(prepared.ok ? prepared.kind : 'refused')
    return prepared
  }
}
