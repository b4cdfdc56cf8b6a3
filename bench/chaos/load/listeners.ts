/**
 * A subscription on each instance, with the stock client, which reconnects by itself. It records the events it received, and whether it was
 * cut off meanwhile.
 */
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import type { Instance } from '../services/instance.ts'

export type Listener = {
  readonly name: string
  /** `token at`, in the order of arrival. */
  readonly received: readonly string[]
  /** How often it had to be set up. */
  readonly setUps: () => number
  readonly close: () => Promise<void>
}

type Verified = { readonly productVerified: { readonly product: { readonly id: string }; readonly verifiedAt: string } }

const query = 'subscription { productVerified { product { id } verifiedAt } }'
const againMs = 250

export function listenTo(instance: Instance, key: string): Listener {
  const received: string[] = []
  let setUps = 0
  let closed = false
  const client = createClient({
    url: () => `${instance.urls().graphql.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${key}` },
    retryAttempts: 1_000_000,
    shouldRetry: () => true,
    retryWait: () => new Promise((resolve) => setTimeout(resolve, againMs)),
    keepAlive: 2_000,
    on: { connected: () => void (setUps += 1) },
  })
  function subscribe(): void {
    const again = () => {
      if (!closed) setTimeout(subscribe, againMs)
    }
    client.subscribe<Verified>(
      { query },
      {
        next: ({ data }) =>
          void (data && received.push(`${data.productVerified.product.id} ${data.productVerified.verifiedAt}`)),
        error: again,
        complete: again,
      },
    )
  }
  subscribe()
  return {
    name: instance.name,
    received,
    setUps: () => setUps,
    close: async () => {
      closed = true
      await Promise.resolve(client.dispose()).catch(() => {}) // it was on its way to an instance that is not there
    },
  }
}
