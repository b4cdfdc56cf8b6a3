/** Subscriptions over a real socket with the stock client (spec §5, §6). */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { before, describe, it } from 'node:test'
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { openOwnDatabase, noPostgres, testDatabases } from '../../../test/support/database/databases.ts'
import { subscribe, startSockets, verifier, type SocketWorld } from '../../../test/support/graphql/socket.ts'
import { bob, hashOf, insertAsset, insertTransfer } from '../../../test/support/index/rows.ts'
import { keepSecret } from '../../../test/support/evidence.ts'
import { newApiKey } from '../../access/api-keys.ts'
import { createRateLimiter } from '../../http/rate-limit/limiter.ts'
import { until } from '../../../test/support/wait.ts'
import { useOpened } from '../../../test/support/opened.ts'

const transferred = `subscription ($id: ID!) { productTransferred(productId: $id) {
  transfer { id status timestamp from { address } to { address } } product { id name currentOwner { address } } } }`
const verified = `subscription { productVerified {
  product { id tagId name verified } verifiedAt verifiedBy { address displayName } } }`

type Transferred = { productTransferred: { transfer: { id: string; status: string }; product: { id: string } } }
type Verified = { productVerified: { product: { id: string }; verifiedAt: string; verifiedBy: object } }

for (const { name, open, skip } of testDatabases())
  describe(`subscriptions on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const world = useOpened(() => startSockets(database))
    before(async () => {
      const asset = { state: 4, tagHash: hashOf(9), tagId: 'TAG-1', name: 'Watch', tapped: true }
      const pk = await insertAsset(database, { tokenId: 1, ...asset })
      await insertAsset(database, { tokenId: 2, name: 'Bag' })
      await insertTransfer(database, { id: '1-1', assetPk: pk, status: 'CONFIRMED', settledTx: hashOf(5) })
    })

    const emit = (topic: string, tokenId: number, payload: object) =>
      database.query(
        'insert into outbox (topic, token_id, payload, happened_at) values ($1, $2, $3, $4::text::timestamptz)',
        [topic, tokenId, JSON.stringify(payload), 'at' in payload ? payload.at : null],
      )

    it('delivers every change of a transfer with the status it brought, of this product only', async () => {
      const { events, stop } = subscribe<Transferred>(world.connect(), transferred, { id: '1' })
      await subscribed(world)
      await emit('transfer', 1, { id: '1-1', status: 'PENDING' }) // in the index it is CONFIRMED by now
      await emit('transfer', 2, { id: '2-1', status: 'PENDING' })
      await emit('transfer', 1, { id: '1-99', status: 'PENDING' }) // does not exist
      await emit('transfer', 1, { id: '1-1', status: 'CONFIRMED' })
      await until(() => events.length === 2)
      stop()
      const [first, second] = events.map(({ productTransferred }) => productTransferred)
      assert.deepEqual(first, {
        transfer: {
          id: '1-1',
          status: 'PENDING',
          timestamp: '2026-01-02T00:00:00.000Z',
          from: { address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
          to: { address: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' },
        },
        product: { id: '1', name: 'Watch', currentOwner: { address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' } },
      })
      assert.equal(second?.transfer.status, 'CONFIRMED')
    })

    it('delivers a tap with the product as it is then, read once for all subscribers', async () => {
      const subscribers = [1, 2, 3].map(() => subscribe<Verified>(world.connect(), verified))
      await subscribed(world, 3)
      world.loads.products = 0
      const times = ['2026-02-03T04:05:06.789Z', '2026-02-03T04:05:07.000Z']
      for (const at of times) {
        await emit('tap', 404, { at }) // a product that does not exist
        await emit('tap', 1, { at })
      }
      await until(() => subscribers.every(({ events }) => events.length === times.length))
      for (const { events, stop } of subscribers) {
        stop()
        assert.deepEqual(
          events,
          times.map((verifiedAt) => ({
            productVerified: {
              product: { id: '1', tagId: 'TAG-1', name: 'Watch', verified: true },
              verifiedAt,
              verifiedBy: { address: verifier, displayName: null },
            },
          })),
        )
      }
      assert.ok(world.loads.products <= 4, `${world.loads.products} reads for four events`)
    })

    it('shows a change of the product between two events of one subscription', async () => {
      const { events, stop } = subscribe<Transferred>(world.connect(), transferred, { id: '1' })
      await subscribed(world)
      await emit('transfer', 1, { id: '1-1', status: 'PENDING' })
      await until(() => events.length === 1)
      await database.query('update asset set owner = $1 where token_id = 1', [
        new Uint8Array(Buffer.from(bob.slice(2), 'hex')),
      ])
      await emit('transfer', 1, { id: '1-1', status: 'CONFIRMED' })
      await until(() => events.length === 2)
      stop()
      const owners = events.map(({ productTransferred: { product } }) => product as unknown as { currentOwner: object })
      assert.notDeepEqual(owners[0]?.currentOwner, owners[1]?.currentOwner)
    })

    it('answers queries too, under the same checks', async () => {
      const client = world.connect()
      const ask = async (query: string) => {
        const { events, ended } = subscribe<object>(client, query)
        return { ended: await ended, events }
      }
      assert.deepEqual(await ask('{ product(id: "2") { name } }'), {
        ended: null,
        events: [{ product: { name: 'Bag' } }],
      })
      const deep = `{ product(id: "1") ${'{ transfers { product '.repeat(8)} { id } ${'} }'.repeat(8)} }`
      assert.match(JSON.stringify((await ask(deep)).ended), /TOO_COMPLEX/)
      assert.match(JSON.stringify((await ask('{ nothing }')).ended), /BAD_USER_INPUT|Cannot query/)
      const wrong = await ask('subscription { productTransferred(productId: "0x7") { product { id } } }')
      assert.match(JSON.stringify(wrong.ended), /decimal token id.*BAD_USER_INPUT/)
    })

    it('resumes after a position that is kept, and names the oldest where it is not', async () => {
      const feed =
        'query ($after: ID) { events(first: 100, after: $after) { oldest newest edges { node { position kind } } } }'
      type Feed = { events: { oldest: string; newest: string; edges: { node: { position: string } }[] } }
      const ask = async (after: string | null) => (await world.ask(feed, { after })).data as unknown as Feed
      const insert = (count: number) =>
        database.query(
          `insert into outbox (topic, kind, token_id, payload) select 'tap', 'VERIFIED', 2, '{}' from generate_series(1, $1::int)`,
          [count],
        )
      const { newest: begin } = (await ask(null)).events
      await insert(5)
      await until(async () => (await ask(begin)).events.edges.length === 5)
      const [first, second, third] = (await ask(begin)).events.edges.map(({ node }) => node.position)
      await database.query('delete from outbox where seq <= $1', [second?.split('-')[0]])

      const resumed = 'subscription ($after: ID) { events(after: $after) { position kind } }'
      const gone = subscribe(world.connect(), resumed, { after: first })
      const [error] = (await gone.ended) as [{ extensions: object }]
      assert.deepEqual(error.extensions, { code: 'EVENTS_GONE', oldest: second })
      assert.deepEqual((await world.ask(feed, { after: begin })).errors[0]?.extensions['oldest'], second)
      const { events, stop } = subscribe<{ events: { position: string } }>(world.connect(), resumed, { after: second })
      await until(() => events.length === 3)
      assert.equal(events[0]?.events.position, third)
      await insert(1)
      await until(() => events.length === 4)
      stop()

      const forged = second?.replace(/-.*/, '-zzz')
      for (const [after, code] of [
        [forged, 'EVENTS_GONE'],
        ['999999-abc', 'EVENTS_GONE'],
        ['no position', 'BAD_USER_INPUT'],
      ])
        assert.equal((await world.ask(feed, { after })).errors[0]?.extensions['code'], code, after)
    })

    it('cost so much together for a key, however they are spread over its connections', async () => {
      const { text } = await world.newKey(['read'])
      const { text: other } = await world.newKey(['read'])
      const costly = `subscription { productVerified { product { transfers { ${'product { transfers { id } }'} } } } }` // 121
      const subscribers = Array.from({ length: 16 }, () => subscribe(world.connect(text), costly))
      await subscribed(world, 16)
      const ended = (await subscribe(world.connect(text), costly).ended) as [{ message: string; extensions: object }]
      assert.deepEqual([ended[0].extensions], [{ code: 'RATE_LIMITED' }])
      assert.match(ended[0].message, /may cost 2000 together/)
      const stream = (await subscribe(world.connectStream(text), costly).ended) as [{ extensions: object }]
      assert.deepEqual(stream[0].extensions, { code: 'RATE_LIMITED' })
      const another = subscribe(world.connect(other), costly)
      await subscribed(world, 17)
      subscribers[0]?.stop()
      await subscribed(world, 16)
      const next = subscribe(world.connect(text), costly)
      await subscribed(world, 17)
      for (const { stop } of [...subscribers, another, next]) stop()
      await subscribed(world, 0)
    })

    it('that are 500 of one key get every tap', async () => {
      const { text } = await world.newKey(['read'])
      const clients = Array.from({ length: 10 }, () => world.connect(text))
      const subscribers = clients.flatMap((client) => Array.from({ length: 50 }, () => subscribe(client, verified)))
      await subscribed(world, 500)
      await emit('tap', 1, {})
      await until(() => subscribers.every(({ events }) => events.length === 1))
      for (const { stop } of subscribers) stop()
      await subscribed(world, 0)
    })

    it('demands the scope read', async () => {
      const { text } = await world.newKey(['write'])
      const { ended } = subscribe(world.connect(text), verified)
      assert.match(JSON.stringify(await ended), /FORBIDDEN/)
    })
  })

describe('the key of a socket', { skip: noPostgres }, () => {
  const database = useOpened(() => openOwnDatabase('migrated'))
  const world = useOpened(() =>
    startSockets(database, {
      connections: { maxConnectionsPerKey: 3, checkKeysMs: 100 },
      maxOperations: 3,
    }),
  )

  /** The code with which the server closes after `connection_init`. */
  async function closing(payload: object | undefined, headers: Record<string, string> = {}): Promise<number> {
    const socket = new WebSocket(world.url, 'graphql-transport-ws', { headers })
    await once(socket, 'open')
    socket.send(JSON.stringify({ type: 'connection_init', payload }))
    const first = await Promise.race([once(socket, 'message'), once(socket, 'close')])
    socket.close()
    return typeof first[0] === 'number' ? first[0] : 0
  }

  it('comes as parameter or header: none closes with 4401, a wrong one with 4403', async () => {
    const bearer = `Bearer ${world.key}`
    assert.equal(await closing(undefined), 4401)
    assert.equal(await closing({ authorization: '' }), 4401)
    assert.equal(await closing({ authorization: 7 }), 4401)
    assert.equal(await closing({ authorization: `Bearer ts_live_${'A'.repeat(43)}` }), 4403)
    assert.equal(await closing({ authorization: world.key }), 4403)
    assert.equal(await closing({ authorization: bearer }), 0)
    assert.equal(await closing({}, { Authorization: bearer }), 0)
    assert.equal(await closing({}, { Authorization: 'Bearer no' }), 4403)
    assert.ok(!world.lines.join('\n').includes(world.key))
  })

  it('closes with 4403 soon after it is revoked, and no event reaches it any more', { timeout: 240_000 }, async () => {
    const { text, id } = await world.newKey(['read'])
    const { ended } = subscribe(world.connect(text), verified)
    const other = subscribe(world.connect(), verified)
    await subscribed(world, 2)
    await world.keys.revoke(id)
    const event = (await ended) as { code: number }
    assert.equal(event.code, 4403)
    await until(async () => (await closing({ authorization: `Bearer ${text}` })) === 4403) // it was cached
    await subscribed(world) // that of the other key is still there
    other.stop()
    await subscribed(world, 0)
  })

  it('has at most so many connections, and a connection so many operations', async () => {
    const { text } = await world.newKey(['read'])
    const subscribers = [1, 2, 3].map(() => subscribe(world.connect(text), verified))
    await subscribed(world, 3)
    assert.equal(await closing({ authorization: `Bearer ${text}` }), 1013)
    // A stock client with its own defaults tries again.
    const waiting = createClient({
      url: world.url,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${text}` },
      retryAttempts: Infinity,
      on: { closed: () => subscribers[0]?.stop() },
    })
    assert.equal(await subscribe(waiting, '{ __typename }').ended, null)
    await waiting.dispose()
    for (const { stop } of subscribers) stop()
    await subscribed(world, 0)
    await until(() => world.connections.count() === 0) // the connections of the stock client go after their last operation
    const client = world.connect(text)
    const three = [1, 2, 3].map(() => subscribe(client, verified))
    await subscribed(world, 3)
    assert.match(JSON.stringify(await subscribe(client, verified).ended), /RATE_LIMITED/)
    three[0]?.stop()
    await subscribed(world, 2)
    assert.equal(await subscribe(client, '{ __typename }').ended, null)
    for (const { stop } of three) stop()
  })

  it('has one quota for the operations of all its connections', async () => {
    await using own = await startSockets(database, { limiter: createRateLimiter({ limit: 2 }) })
    const ask = () => subscribe(own.connect(), '{ __typename }').ended
    assert.deepEqual([await ask(), await ask()], [null, null])
    assert.match(JSON.stringify(await ask()), /RATE_LIMITED/)
  })

  it('is good in its networks only', async () => {
    for (const [network, code] of [
      ['127.0.0.0/8', 0],
      ['192.0.2.0/24', 4403],
    ] as const) {
      const { text, hash } = newApiKey()
      keepSecret(text)
      await world.keys.create({ hash, name: 'office', scopes: ['read'], networks: [network] })
      assert.equal(await closing({ authorization: `Bearer ${text}` }), code, network)
    }
  })

  it('is asked for at /graphql only, and nothing goes on before it was shown', async () => {
    const socket = new WebSocket(world.url.replace('/graphql', '/playground'), 'graphql-transport-ws')
    const [error] = (await once(socket, 'error')) as [Error]
    assert.match(error.message, /404/)
    const early = new WebSocket(world.url, 'graphql-transport-ws')
    await once(early, 'open')
    early.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: verified } }))
    assert.equal((await once(early, 'close'))[0], 4401)
  })
})

/** An event reaches only those who had subscribed by then. */
function subscribed(world: SocketWorld, count = 1): Promise<void> {
  return until(() => world.subscriptions() === count)
}
