/** GraphQL over real sockets for tests: an API key of the world's own, stock clients, and what a subscription has heard. */
import { createClient, type Client } from 'graphql-ws'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { publishedAccounts } from '../src/chain/local-chain-accounts.ts'
import { newApiKey } from '../src/store/api-keys.ts'
import { keepSecret } from './_evidence.ts'
import type { World } from './_world.ts'

export const [operator, , alice, bob] = publishedAccounts(4) as [Account, Account, Account, Account]
export type Account = ReturnType<typeof publishedAccounts>[number]

type Json = Readonly<Record<string, unknown>>

export async function graphqlOf(world: World, scopes: readonly ('read' | 'write')[] = ['read', 'write']) {
  const { text: key, hash } = newApiKey()
  await world.parts.apiKeys.create({ hash, name: 'test', scopes })
  keepSecret(key)
  const url = `${world.urls.graphql}/graphql`

  /** The data; errors are thrown. */
  async function ask<Data>(query: string, variables: Json = {}): Promise<Data> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` },
      body: JSON.stringify({ query, variables }),
    })
    const answer = (await response.json()) as { readonly data: Data; readonly errors?: readonly unknown[] }
    if (answer.errors !== undefined) throw new Error(JSON.stringify(answer.errors))
    return answer.data
  }

  const sockets: Client[] = []
  function socket(): Client {
    const client = createClient({
      url: url.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${key}` },
    })
    sockets.push(client)
    return client
  }

  /** What a subscription hears from when it is set up on. */
  async function listen<Data extends Json>(query: string, variables: Json = {}): Promise<readonly Data[]> {
    const heard: Data[] = []
    const client = socket()
    const connected = new Promise<void>((resolve) => client.on('connected', () => resolve()))
    client.subscribe<Data>(
      { query, variables },
      {
        next: ({ data }) => void (data && heard.push(data)),
        error: (error) => void heard.push(error as Data),
        complete() {},
      },
    )
    await connected
    await delay(100)
    return heard
  }

  return {
    key,
    url,
    ask,
    socket,
    listen,
    async close() {
      for (const client of sockets) await client.dispose()
    },
  }
}

/** Waits until it holds; false after `withinMs`. */
export async function eventually(holds: () => boolean | Promise<boolean>, withinMs = 5_000): Promise<boolean> {
  for (const end = performance.now() + withinMs; performance.now() < end; await delay(20))
    if (await holds()) return true
  return holds()
}
