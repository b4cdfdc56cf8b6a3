/** Opens the GraphQL host over the components (spec §4.9, §5, §6): schema, keys, sockets, playground. */
import type { Hex } from '@touchstone/verdict'
import { zeroAddress } from 'viem'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import type { ClientKey } from '../../http/client-ip.ts'
import { identified } from '../../http/request-id.ts'
import { createAuthenticate } from '../../graphql/api-keys.ts'
import { createEventDispatcher } from '../../graphql/subscriptions/dispatcher.ts'
import { createGraphqlHost } from '../../hosts/graphql/host.ts'
import { createHttpOperation } from '../../graphql/server/operation.ts'
import { contextFactory, createLoaders, indexStores } from '../../graphql/context.ts'
import { mutationResolvers } from '../../graphql/mutations/resolvers.ts'
import { playgroundRoutes } from '../../graphql/playground/playground.ts'
import { createPrepareOperation, type PrepareOperation } from '../../graphql/server/prepare.ts'
import { queryResolvers } from '../../graphql/queries/queries.ts'
import { graphqlSchema } from '../../graphql/schema.ts'
import { createFormatError } from '../../graphql/errors.ts'
import { createSocketServer } from '../../graphql/socket/server.ts'
import { payloadLoader, subscriptionResolvers } from '../../graphql/subscriptions/subscriptions.ts'
import type { Log } from '../../lib/log.ts'
import type { Components } from '../components.ts'
import { chainId } from '../../domain/chain.ts'
import type { Limits } from '../limits.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { refreshAssetItem } from '../../index/assets.ts'
import { outboxChannel, outboxStore } from '../../index/outbox.ts'

/** Unknown keys that one client may try in a minute. */
const attemptsAMinute = 30
/** The longest wait of a mutation for the index, in ms. */
const indexWaitMs = 2_000

export async function openGraphql({
  components,
  introspection,
  metrics,
  limiter,
  limits,
  clientKey,
  log,
}: {
  readonly components: Components
  readonly introspection: boolean
  readonly metrics: Pick<Metrics, 'watch' | 'countOperation'> | undefined
  readonly limiter: RateLimiter | undefined
  readonly limits: Pick<Limits, 'limiterOf'>
  readonly clientKey: ClientKey
  readonly log: Log
}) {
  const { database, apiKeys, reader, indexer, lists } = components
  const contract = components.contract.toLowerCase() as Hex
  const stores = indexStores(database)
  lists.start()
  const keys = await components.attestationKeys()
  const dispatcher = await createEventDispatcher({
    outbox: outboxStore(database),
    listen: (onNotice) => database.listen(outboxChannel, onNotice),
    load: payloadLoader(
      () => createLoaders(stores),
      () => keys.address() ?? zeroAddress,
    ),
    log,
  })
  const schema = graphqlSchema(
    queryResolvers({ metadata: components.metadataTexts, chainId, contract }),
    mutationResolvers({
      ...components,
      transfers: components.transferReads,
      awaitIndexed: (block) => {
        reader.dropHead(block)
        indexer.wake()
        return indexer.until(block, indexWaitMs)
      },
      itemChanged: (tokenId) => refreshAssetItem(database, tokenId),
      log,
    }),
    subscriptionResolvers(dispatcher),
  )
  const prepare = createPrepareOperation({ schema, introspection })
  const shared = {
    prepare: metrics === undefined ? prepare : counted(prepare, metrics),
    createContext: contextFactory(stores, indexStores(lists.database)),
    formatError: createFormatError(log),
    authenticate: createAuthenticate({
      keys: apiKeys,
      attempts: limits.limiterOf(attemptsAMinute, { scope: 'wrong-keys', windowSeconds: 60 }),
      log,
    }),
    limiter,
    clientKey,
    log,
  }
  const sockets = createSocketServer({ ...shared, keys: apiKeys })
  metrics?.watch({ sockets: sockets.count, ...(lists.stats && { replica: lists.stats }) })
  const { listener, upgrade } = createGraphqlHost({
    ...shared,
    operation: createHttpOperation(shared),
    playground: playgroundRoutes(),
    upgrade: sockets.upgrade,
  })
  return {
    onRequest: identified(listener),
    onUpgrade: upgrade,
    stop: () => void sockets.close(),
    close: async () => {
      await sockets.close()
      await dispatcher[Symbol.asyncDispose]()
    },
  }
}

function counted(prepare: PrepareOperation, { countOperation }: Pick<Metrics, 'countOperation'>): PrepareOperation {
  return (request) => {
    const prepared = prepare(request)
    countOperation(prepared.ok ? prepared.kind : 'refused')
    return prepared
  }
}
