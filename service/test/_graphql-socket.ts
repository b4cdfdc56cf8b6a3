/** The WebSocket of GraphQL over a database of its own, for tests: the stock client in front, events by SQL behind. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createClient, type Client } from 'graphql-ws'
import { WebSocket } from 'ws'
import { createAuthenticate } from '../src/graphql/api-keys.ts'
import { createEventPump } from '../src/graphql/event-pump.ts'
import { createContextOf, createLoaders } from '../src/graphql/loaders.ts'
import { createShowError } from '../src/graphql/shown-error.ts'
import { createSocketServer, type SocketServerOptions } from '../src/graphql/socket.ts'
import { createSubscriptionEvents } from '../src/graphql/subscription-events.ts'
import { subscriptionResolvers } from '../src/graphql/subscriptions.ts'
import { clientKeys } from '../src/http/client-key.ts'
import { createLog } from '../src/log.ts'
import { apiKeyStore } from '../src/store/api-keys.ts'
import { keysInForce } from '../src/store/api-keys-in-force.ts'
import type { Database } from '../src/store/database.ts'
import { outboxChannel, outboxStore } from '../src/store/outbox.ts'
import { productHistoryStore } from '../src/store/product-history.ts'
import { productStore } from '../src/store/products.ts'
import { transferStore } from '../src/store/transfers.ts'
import { keepLog } from './_evidence.ts'
import { startGraphql } from './_graphql-host.ts'

/** The verifier that the events name, with the capitals of EIP-55. */
export const verifier = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

export type SocketWorld = Awaited<ReturnType<typeof startSockets>>

/** `database` is migrated. Several servers may share it. */
export async function startSockets(database: Database, options: Partial<SocketServerOptions> = {}) {
  const lines: string[] = []
  const log = createLog((line) => lines.push(line), 'debug')
  const stores = {
    products: productStore(database),
    transfers: transferStore(database),
    productHistory: productHistoryStore(database),
  }
  const loads = { products: 0 }
  const pump = await createEventPump({
    outbox: outboxStore(database),
    listen: (onNotice) => database.listen(outboxChannel, onNotice),
    present: createSubscriptionEvents({
      verifier: () => verifier.toLowerCase() as `0x${string}`,
      loaders: () => {
        const products = {
          ...stores.products,
          byTokens: (tokenIds: readonly bigint[]) => {
            loads.products += 1
            return stores.products.byTokens(tokenIds)
          },
        }
        return createLoaders({ ...stores, products })
      },
    }),
    log,
  })
  let subscriptions = 0
  const subscribe: typeof pump.subscribe = (...hearing) => {
    const stop = pump.subscribe(...hearing)
    subscriptions += 1
    return () => {
      stop()
      subscriptions -= 1
    }
  }
  const graphql = await startGraphql(database, { resolvers: [subscriptionResolvers({ pump: { subscribe } })] })
  const sockets = createSocketServer({
    prepare: graphql.prepare,
    contextOf: createContextOf(stores),
    showError: createShowError(log),
    authenticate: createAuthenticate({ keys: apiKeyStore(database), log }),
    inForce: keysInForce(database),
    clientKey: clientKeys([]),
    log,
    ...options,
  })
  const server = createServer((_request, response) => response.end()).on('upgrade', sockets.upgrade)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`
  const clients: Client[] = []

  return {
    ...graphql,
    url,
    lines,
    loads,
    sockets,
    subscriptions: () => subscriptions,
    /** The stock client, which does not come again. */
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
    async end() {
      keepLog(lines)
      for (const client of clients) await client.dispose()
      await sockets.close()
      server.close()
      await pump[Symbol.asyncDispose]()
      await graphql.end()
    },
  }
}

/** A subscription of the stock client: what it got so far, and how it ended. */
export function hear<T>(client: Client, query: string, variables: Record<string, unknown> = {}) {
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
