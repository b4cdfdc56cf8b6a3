/** GraphQL over server-sent events with the stock client of graphql-sse, with curl and with bare requests. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { before, describe, it } from 'node:test'
import { openOwnDatabase, noPostgres } from '../../../test/support/database/databases.ts'
import { postGraphql } from '../../../test/support/graphql/client.ts'
import { subscribe, startSockets } from '../../../test/support/graphql/socket.ts'
import { hashOf, insertAsset } from '../../../test/support/index/rows.ts'
import { until } from '../../../test/support/wait.ts'
import { useOpened } from '../../../test/support/opened.ts'

const verified = 'subscription ($after: ID) { productVerified(after: $after) { verifiedAt product { id name } } }'
const feed = 'subscription ($after: ID) { events(after: $after) { position productId } }'

type Verified = { productVerified: { verifiedAt: string; product: { id: string; name: string } } }
type Feed = { events: { position: string; productId: string } }

describe('an event stream of GraphQL', { skip: noPostgres }, () => {
  const database = useOpened(() => openOwnDatabase('migrated'))
  before(() => insertAsset(database, { tokenId: 1, name: 'Watch', tagHash: hashOf(9), state: 4, tapped: true }))
  const world = useOpened(() => startSockets(database, { connections: { maxConnectionsPerKey: 3, checkKeysMs: 100 } }))

  const tap = (count = 1) =>
    database.query(
      `insert into outbox (topic, kind, token_id, payload, happened_at)
       select 'tap', 'VERIFIED', 1, '{"at":"2026-01-01T00:00:00Z"}', '2026-01-01T00:00:00Z' from generate_series(1, $1::int)`,
      [count],
    )
  const subscribed = (count: number) => until(() => world.subscriptions() === count)
  const request = ({ accept = 'text/event-stream', query = '{ __typename }', key = world.key, ...more }) =>
    postGraphql(world.httpUrl, key, { query, ...more }, { Accept: accept })

  it('sends the events of a subscription to the stock client, and ends with it', async () => {
    const { events, stop } = subscribe<Verified>(world.connectStream(), verified)
    await subscribed(1)
    await tap(2)
    await until(() => events.length === 2)
    assert.deepEqual(events[0]?.productVerified, {
      verifiedAt: '2026-01-01T00:00:00Z',
      product: { id: '1', name: 'Watch' },
    })
    stop()
    await subscribed(0)
    await until(() => world.connections.count() === 0)
  })

  it('resumes after a position: nothing is missing and nothing comes twice', async () => {
    const { data } = await world.ask('{ events(first: 0) { newest } }')
    const { newest } = (data as unknown as { events: { newest: string } }).events
    await tap(300)
    const first = subscribe<Feed>(world.connectStream(), feed, { after: newest })
    await until(() => first.events.length === 300)
    first.stop()
    const seen = first.events.slice(0, 120).map(({ events }) => events.position)
    const second = subscribe<Feed>(world.connectStream(), feed, { after: seen.at(-1) })
    await until(() => second.events.length === 180)
    second.stop()
    assert.deepEqual(
      [...seen, ...second.events.map(({ events }) => events.position)],
      first.events.map(({ events }) => events.position),
    )
  })

  it('answers queries and their errors, under the same checks', async () => {
    const ask = async (query: string) => {
      const { events, ended } = subscribe<object>(world.connectStream(), query)
      return { ended: await ended, events }
    }
    assert.deepEqual(await ask('{ product(id: "1") { name } }'), {
      ended: null,
      events: [{ product: { name: 'Watch' } }],
    })
    const deep = `{ product(id: "1") ${'{ transfers { product '.repeat(8)} { id } ${'} }'.repeat(8)} }`
    assert.match(JSON.stringify(await ask(deep)), /TOO_COMPLEX/)
    assert.match(JSON.stringify(await ask('{ nothing }')), /BAD_USER_INPUT/)
    assert.match(JSON.stringify(await ask('{')), /BAD_USER_INPUT/)
    assert.match(JSON.stringify(await ask('subscription { events(after: "no") { kind } }')), /BAD_USER_INPUT/)
    assert.match(JSON.stringify(await ask('subscription { events(after: "999999-abc") { kind } }')), /EVENTS_GONE/)
    assert.equal(world.subscriptions(), 0)
    const { text } = await world.newKey(['write'])
    assert.match(await (await request({ query: verified, key: text })).text(), /^event: next\ndata: .*FORBIDDEN/m)
  })

  it('ends with an error as its last result where the database was restored from before the last event', async () => {
    const { events, ended } = subscribe<Verified>(world.connectStream(), verified)
    await subscribed(1)
    await tap()
    await until(() => events.length > 0)
    await database.exec('truncate outbox restart identity')
    assert.match(JSON.stringify([events, await ended]), /EVENTS_GONE/)
    await subscribed(0)
    await until(() => world.connections.count() === 0)
  })

  it('is what curl prints, line by line', async (t) => {
    const headers = ['-H', 'Accept: text/event-stream', '-H', `Authorization: Bearer ${world.key}`]
    const url = `${world.httpUrl}/graphql?query=${encodeURIComponent(verified)}`
    const curl = spawn('curl', ['-sN', ...headers, url], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => curl.kill())
    const lines: string[] = []
    createInterface(curl.stdout).on('line', (line) => lines.push(line))
    await subscribed(1)
    await tap()
    await until(() => lines.some((line) => line.startsWith('data: ')))
    assert.deepEqual(lines.slice(0, 3), [':', '', 'event: next'])
    assert.equal(JSON.parse(lines[3]?.slice(6) ?? '').data.productVerified.product.name, 'Watch')
    curl.kill()
    await subscribed(0)
  })

  it('is given to requests that accept nothing else', async () => {
    const stream = await request({})
    assert.equal(stream.status, 200)
    assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    assert.equal(stream.headers.get('cache-control'), 'no-store')
    assert.equal(stream.headers.get('x-accel-buffering'), 'no')
    assert.match(
      await stream.text(),
      /^:\n\nevent: next\ndata: {"data":{"__typename":"Query"}.*}\n\nevent: complete\ndata:\n\n$/,
    )
    const without = await request({ accept: 'application/json;q=0, text/event-stream' })
    assert.equal(without.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    await without.text()
    const refused = await request({ accept: 'text/event-stream;q=0, text/html' })
    assert.equal(refused.status, 406)
    const json = await request({ accept: 'application/graphql-response+json, application/json, text/event-stream' })
    assert.match(json.headers.get('content-type') ?? '', /^application\/graphql-response\+json/)
    const over = await request({ accept: 'application/json', query: verified })
    assert.match(await over.text(), /Accept: text\/event-stream, or over a WebSocket.*BAD_USER_INPUT/)
  })

  it('is refused in JSON where there is nothing to run', async () => {
    const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${world.key}` }
    const answer = async (init: RequestInit, search = '') => {
      const response = await fetch(`${world.httpUrl}/graphql${search}`, { headers, ...init })
      const { errors } = (await response.json()) as { errors: [{ extensions: { code: string } }] }
      return [response.status, errors[0].extensions.code]
    }
    const mutation = `?query=${encodeURIComponent('mutation { registerProduct(input: { tagId: "a", name: "b" }) { success } }')}`
    assert.deepEqual(await answer({}), [400, 'BAD_USER_INPUT'])
    assert.deepEqual(await answer({ method: 'PUT' }), [405, 'BAD_USER_INPUT'])
    assert.deepEqual(await answer({}, mutation), [405, 'BAD_USER_INPUT'])
    assert.equal((await fetch(`${world.httpUrl}/graphql${mutation}`, { headers })).headers.get('allow'), 'POST')
    assert.deepEqual(await answer({ method: 'POST', body: 'x' }), [415, 'BAD_USER_INPUT'])
    assert.deepEqual(await answer({ headers: { Accept: 'text/event-stream' } }), [401, 'UNAUTHENTICATED'])
    await until(() => world.connections.count() === 0)
  })

  it('counts with WebSockets towards the connections of a key', async () => {
    const { text } = await world.newKey(['read'])
    const socket = subscribe(world.connect(text), verified)
    const streams = [1, 2].map(() => subscribe(world.connectStream(text), verified))
    await subscribed(3)
    const refused = await request({ key: text })
    assert.equal(refused.status, 429)
    assert.match(await refused.text(), /at most|may have 3 connections.*RATE_LIMITED/)
    for (const { stop } of [socket, ...streams]) stop()
    await subscribed(0)
    await until(() => world.connections.count() === 0)
  })

  it('ends soon after its key is revoked', async () => {
    const { text, id } = await world.newKey(['read'])
    const { ended } = subscribe(world.connectStream(text), verified)
    await subscribed(1)
    await world.keys.revoke(id)
    assert.notEqual(await ended, null) // not completed: the client would come again, and get 401
    await until(async () => (await request({ key: text })).status === 401)
    await subscribed(0)
  })

  it('ends without `complete` when the server stops, so that the client comes again', async () => {
    await using own = await startSockets(database)
    const { ended } = subscribe(own.connectStream(), verified)
    await until(() => own.subscriptions() === 1)
    await own.connections.close()
    assert.notEqual(await ended, null)
    const later = await fetch(`${own.httpUrl}/graphql?query={__typename}`, {
      headers: { Accept: 'text/event-stream', Authorization: `Bearer ${own.key}` },
    })
    assert.equal(later.status, 503)
  })
})
