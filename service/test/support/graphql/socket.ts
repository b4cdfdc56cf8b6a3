/**
 * Subscriptions over a database of their own, for tests. There are stock clients of WebSockets and event streams in front, events by SQL
 * behind.
 */
import { createClient as createStreamClient } from 'graphql-sse'
import { createClient, type Client } from 'graphql-ws'
import { WebSocket } from 'ws'
import { apiKeyStore, createKeyAuthentication } from '../../../src/access/api-keys.ts'
import { createEventDispatcher } from '../../../src/graphql/subscriptions/dispatcher.ts'
import { createLoaders } from '../../../src/graphql/context.ts'
import { indexStores, type IndexStores } from '../../../src/graphql/stores.ts'
import type { ConnectionsOptions } from '../../../src/graphql/connections/connections.ts'
import type { TrustedDocuments } from '../../../src/graphql/server/trusted-documents.ts'
import { createFormatError } from '../../../src/graphql/errors.ts'
import { createSocketServer, type SocketServerOptions } from '../../../src/graphql/connections/socket.ts'
import { payloadLoader, subscriptionResolvers } from '../../../src/graphql/subscriptions/subscriptions.ts'
import { clientAddresses, clientKeys } from '../../../src/http/client-ip.ts'
import { createLog, type Log } from '../../../src/lib/log.ts'
import type { Database } from '../../../src/db/database.ts'
import { outboxChannel, outboxStore } from '../../../src/index/outbox.ts'
import { keepLog } from '../evidence.ts'
import { serve } from '../http.ts'
import { startGraphql } from './host.ts'

/** The verifier that the events name, with the capitals of EIP-55. */
export const verifier = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

export type SocketWorld = Awaited<ReturnType<typeof startSockets>>

type StreamClient = ReturnType<typeof createStreamClient>

type EventsOptions = {
  readonly stores?: IndexStores
  readonly log?: Log
  readonly pollMs?: number
}

type SocketWorldOptions = Partial<Omit<SocketServerOptions, 'connections'>> & {
  readonly documents?: TrustedDocuments | null
  readonly connections?: Partial<ConnectionsOptions>
  readonly stuckMs?: number
}

/** Opens the events of a database: the function that loads their payloads, and the dispatcher. Left out: nothing is logged. */
export async function openEvents(
  database: Database,
  { stores = indexStores(database), log = createLog(() => {}), ...more }: EventsOptions = {},
) {
  const outbox = outboxStore(database)
  const load = payloadLoader(
    () => createLoaders(stores),
    () => verifier.toLowerCase() as `0x${string}`,
    outbox,
  )
  const listen = (onNotice: () => void) => database.listen(outboxChannel, onNotice)
  const dispatcher = await createEventDispatcher({ outbox, listen, load, log, ...more })
  return { outbox, load, dispatcher, log }
}

/** `database` is migrated. Several servers may share it. */
export async function startSockets(
  database: Database,
  { documents = null, connections = {}, stuckMs = 14_000, ...options }: SocketWorldOptions = {},
) {
  const lines: string[] = []
  const log = createLog((line) => lines.push(line), 'debug')
  const stores = indexStores(database)
  const keys = apiKeyStore(database)
  const loads = { products: 0 }
  const byTokens: typeof stores.products.byTokens = (tokenIds) => {
    loads.products += 1
    return stores.products.byTokens(tokenIds)
  }
  const counted = { ...stores, products: { ...stores.products, byTokens } }
  const events = await openEvents(database, { stores: counted, log })
  const { dispatcher } = events
  let subscriptions = 0
  const subscribe: typeof dispatcher.subscribe = (...subscription) => {
    const stop = dispatcher.subscribe(...subscription)
    subscriptions += 1
    return () => {
      stop()
      subscriptions -= 1
    }
  }
  const graphql = await startGraphql(database, {
    documents,
    connections,
    stuckMs,
    resolvers: [subscriptionResolvers({ ...events, dispatcher: { ...dispatcher, subscribe } })],
  })
  const onUpgrade = createSocketServer({
    prepare: graphql.prepare,
    createContext: graphql.createContext,
    formatError: createFormatError(log),
    authenticate: createKeyAuthentication({ keys, log }),
    connections: graphql.connections,
    clientKey: clientKeys([]),
    clientAddress: clientAddresses([]),
    log,
    ...options,
  })
  const { server, port } = await serve((_request, response) => response.end())
  server.on('upgrade', onUpgrade)
  const url = `ws://127.0.0.1:${port}/graphql`
  const clients: Client[] = []

  async function close() {
    keepLog(lines)
    for (const client of clients) await client.dispose()
    await graphql.connections.close()
    server.close()
    await dispatcher[Symbol.asyncDispose]()
    await graphql.end()
  }
  let closing: Promise<void> | undefined
  const end = () => (closing ??= close())

  return {
    ...graphql,
    httpUrl: graphql.url,
    httpLines: graphql.lines,
    url,
    lines,
    loads,
    subscriptions: () => subscriptions,
    /** Creates a stock client that does not reconnect. */
    connect(key: string = graphql.key): Client {
      const client = createClient({
        url,
        webSocketImpl: WebSocket,
        connectionParams: { authorization: `Bearer ${key}` },
        retryAttempts: 0,
        lazy: true,
      })
      clients.push(client)
      return client
    },
    /** Creates a stock client of event streams that does not reconnect. */
    connectStream(key: string = graphql.key) {
      return createStreamClient({
        url: `${graphql.url}/graphql`,
        headers: { Authorization: `Bearer ${key}` },
        retryAttempts: 0,
      })
    },
    end,
    [Symbol.asyncDispose]: end,
  }
}

/** Subscribes with the stock client. Returns the events so far, and how the subscription ends. */
export function subscribe<T>(
  client: Pick<Client, 'subscribe'> | Pick<StreamClient, 'subscribe'>,
  query: string,
  variables: Record<string, unknown> = {},
) {
  const events: T[] = []
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const stop = client.subscribe<T>(
    { query, variables },
    {
      next: ({ data, errors }) => {
        if (errors !== undefined) resolve(errors)
        if (data !== undefined && data !== null) events.push(data)
      },
      error: resolve,
      complete: () => resolve(null),
    },
  )
  return { events, ended: promise, stop }
}
