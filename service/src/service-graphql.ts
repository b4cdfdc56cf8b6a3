/** The GraphQL host made of the parts (spec §4.9, §5, §6): schema, keys, sockets, playground. */
import type { Hex } from '@touchstone/verdict'
import { zeroAddress } from 'viem'
import type { RateLimiter } from './http/rate-limit.ts'
import type { ClientKey } from './http/client-key.ts'
import { identified } from './http/request-id.ts'
import { createAuthenticate } from './graphql/api-keys.ts'
import { createEventPump } from './graphql/event-pump.ts'
import { createGraphqlHost } from './graphql/host.ts'
import { createHttpOperation } from './graphql/http-operation.ts'
import { createContextOf, createLoaders } from './graphql/loaders.ts'
import { mutationResolvers } from './graphql/mutations.ts'
import { playgroundRoutes } from './graphql/playground.ts'
import { createPrepareOperation, type PrepareOperation } from './graphql/prepare-operation.ts'
import { queryResolvers } from './graphql/queries.ts'
import { graphqlSchema } from './graphql/resolvers.ts'
import { createShowError } from './graphql/shown-error.ts'
import { createSocketServer } from './graphql/socket.ts'
import { createSubscriptionEvents } from './graphql/subscription-events.ts'
import { subscriptionResolvers } from './graphql/subscriptions.ts'
import type { Log } from './log.ts'
import { parseGtin } from './passport/gtin.ts'
import { isRegistrableSerial } from './passport/serial.ts'
import { chainId, type Parts } from './parts.ts'
import type { OpenHost } from './service-hosts.ts'
import type { Limits } from './service-limits.ts'
import type { Metrics } from './service-metrics.ts'
import { keysInForce } from './store/api-keys-in-force.ts'
import { refreshAssetItem } from './store/index-refresh.ts'
import { outboxChannel, outboxStore } from './store/outbox.ts'
import { productHistoryStore } from './store/product-history.ts'
import { productStore } from './store/products.ts'
import type { ListDatabase } from './store/read-replica.ts'
import { registrationStore } from './store/registrations.ts'
import { transferMessageStore } from './store/transfer-messages.ts'
import { transferStore } from './store/transfers.ts'

/** Wrong keys that one client may try in a minute. */
const attemptsAMinute = 30

export async function openGraphql({
  parts,
  introspection,
  metrics,
  limiter,
  limits,
  clientKey,
  log,
}: {
  readonly parts: Parts
  readonly introspection: boolean
  readonly metrics: Pick<Metrics, 'watch' | 'countOperation'> | undefined
  readonly limiter: RateLimiter | undefined
  readonly limits: Pick<Limits, 'limiterOf'>
  readonly clientKey: ClientKey
  readonly log: Log
}): Promise<OpenHost> {
  const { database, apiKeys } = parts
  const contract = parts.contract.toLowerCase() as Hex
  const stores = indexStores(database)
  parts.lists.start()
  const keys = await parts.attestationKeys()
  const pump = await createEventPump({
    outbox: outboxStore(database),
    listen: (onNotice) => database.listen(outboxChannel, onNotice),
    present: createSubscriptionEvents({
      loaders: () => createLoaders(stores),
      verifier: () => keys.address() ?? zeroAddress,
    }),
    log,
  })
  const schema = graphqlSchema(
    queryResolvers({ metadata: parts.metadataTexts, chainId, contract }),
    mutationResolvers({
      ...parts,
      registrations: registrationStore(database),
      messages: transferMessageStore(database),
      transfers: parts.transferReads,
      index: { until: parts.indexer.until, nudge: () => parts.indexer.nudge() },
      itemChanged: (tokenId) => refreshAssetItem(database, tokenId),
      gs1: { isGtin: (text) => parseGtin(text).ok, isSerial: isRegistrableSerial },
      log,
    }),
    subscriptionResolvers({ pump }),
  )
  const prepare = createPrepareOperation({ schema, introspection })
  const shared = {
    prepare: metrics === undefined ? prepare : counted(prepare, metrics),
    contextOf: createContextOf(stores, indexStores(parts.lists.database)),
    showError: createShowError(log),
    authenticate: createAuthenticate({
      keys: apiKeys,
      attempts: limits.limiterOf(attemptsAMinute, { scope: 'wrong-keys', windowSeconds: 60 }),
      log,
    }),
    limiter,
    clientKey,
    log,
  }
  const sockets = createSocketServer({ ...shared, inForce: keysInForce(database) })
  metrics?.watch({ sockets: sockets.count, ...(parts.lists.stats && { replica: parts.lists.stats }) })
  const { listener, upgrade } = createGraphqlHost({
    ...shared,
    operation: createHttpOperation(shared),
    playground: playgroundRoutes(),
    socket: sockets.upgrade,
  })
  return {
    onRequest: identified(listener),
    onUpgrade: upgrade,
    stop: () => void sockets.close(),
    close: async () => {
      await sockets.close()
      await pump[Symbol.asyncDispose]()
    },
  }
}

function indexStores(database: ListDatabase) {
  return {
    products: productStore(database),
    transfers: transferStore(database),
    productHistory: productHistoryStore(database),
  }
}

function counted(prepare: PrepareOperation, { countOperation }: Pick<Metrics, 'countOperation'>): PrepareOperation {
  return (request) => {
    const prepared = prepare(request)
    countOperation(prepared.ok ? prepared.kind : 'refused')
    return prepared
  }
}
