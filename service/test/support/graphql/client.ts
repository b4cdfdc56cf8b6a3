/** GraphQL over real sockets for tests: an API key, stock clients, and the events of subscriptions. */
import { createClient, type Client } from 'graphql-ws'
import { WebSocket } from 'ws'
import { publishedAccounts } from '../../../src/domain/published-accounts.ts'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { keepSecret } from '../evidence.ts'
import type { World } from '../world.ts'

export const [operator, , alice, bob] = publishedAccounts(4) as [Account, Account, Account, Account]
export type Account = ReturnType<typeof publishedAccounts>[number]

type Json = Readonly<Record<string, unknown>>

/** Sends a body to a GraphQL host under an API key. */
export const postGraphql = (host: string, key: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${host}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
  })

export async function graphqlOf(world: World, scopes: readonly ('read' | 'write' | 'taps')[] = ['read', 'write']) {
  const { text: key, hash } = newApiKey()
  await world.components.apiKeys.create({ hash, name: 'test', scopes })
  keepSecret(key)
  const url = `${world.urls.graphql}/graphql`

  /** Returns the data. Errors are thrown. */
  async function ask<Data>(query: string, variables: Json = {}): Promise<Data> {
    const response = await postGraphql(world.urls.graphql, key, { query, variables })
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

  /** Subscribes, and returns the events from then on. */
  async function listen<Data extends Json>(query: string, variables: Json = {}): Promise<readonly Data[]> {
    const events: Data[] = []
    const client = socket()
    client.subscribe<Data>(
      { query, variables },
      {
        next: ({ data }) => void (data && events.push(data)),
        error: (error) => void events.push(error as Data),
        complete() {},
      },
    )
    // A subscription is not acknowledged; an operation after it on the same socket is answered.
    await client.iterate({ query: '{ __typename }' }).next()
    return events
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
