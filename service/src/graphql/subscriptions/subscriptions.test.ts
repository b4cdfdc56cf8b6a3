/** Queries and subscriptions that begin at an earlier event read the outbox, on PGlite and on PostgreSQL (spec §6). */
import assert from 'node:assert/strict'
import { after as afterAll, before, beforeEach, describe, it } from 'node:test'
import { execute, type ExecutionResult, type GraphQLSchema, parse, subscribe } from 'graphql'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { openEvents } from '../../../test/support/graphql/socket.ts'
import { alice, hashOf, insertAsset } from '../../../test/support/index/rows.ts'
import { until } from '../../../test/support/wait.ts'
import { cachedMetadata, metadataStore } from '../../assets/metadata-store.ts'
import type { Database } from '../../db/database.ts'
import { IndexIncompleteError, wholeIndex } from '../../index/contract.ts'
import { formatPosition, outboxStore, parsePosition } from '../../index/outbox.ts'
import { createLog } from '../../lib/log.ts'
import { contextFactory, type GraphqlContext } from '../context.ts'
import { fieldResolvers } from '../queries/fields.ts'
import { graphqlSchema, type ResolverMap } from '../schema.ts'
import { indexStores } from '../stores.ts'
import { type EventDispatcher, notLoaded } from './dispatcher.ts'
import { createEventStream } from './stream.ts'
import { type SubscriptionEvent, subscriptionResolvers } from './subscriptions.ts'

for (const { name, open, skip } of testDatabases())
  describe(`events since a position on ${name}`, { skip }, () => {
    let database: Database
    let dispatcher: EventDispatcher<SubscriptionEvent>
    let schema: GraphQLSchema
    let events: ResolverMap
    let contextValue: GraphqlContext
    let after: string
    /** The most reads of the outbox that ran at one time. */
    let most = 0
    before(async () => {
      database = await open()
      await database.query(
        `insert into outbox (topic, kind, token_id, payload) select 'tap', 'VERIFIED', 7, '{}' from generate_series(1, 300)`,
      )
      const opened = await openEvents(database)
      const store = opened.outbox
      dispatcher = opened.dispatcher
      let running = 0
      const outbox: typeof store = {
        ...store,
        async range(range) {
          most = Math.max(most, (running += 1))
          return store.range(range).finally(() => (running -= 1))
        },
      }
      events = subscriptionResolvers({ ...opened, outbox })
      schema = graphqlSchema(events)
      contextValue = contextFactory(indexStores(database))(
        { id: 'testtest', name: 'test', scopes: ['read'], brands: null } as const,
        'request',
      )
      after = formatPosition((await store.check({ seq: 0n, micros: 0n })).oldest)
    })
    afterAll(async () => {
      await dispatcher[Symbol.asyncDispose]()
      await database.close()
    })
    beforeEach(() => void (most = 0))

    it('are not read for a page of no legal size, or of no kind', async () => {
      const size = '"first" is from 0 to 100.'
      const kinds = 'Name at least one kind, or leave "kinds" out.'
      for (const [given, refusal] of [
        ['first: -1', size],
        ['first: 101', size],
        ['kinds: []', kinds],
      ] as const) {
        const { errors = [] } = await execute({
          schema,
          document: parse(`{ events(${given}) { edges { cursor } } }`),
          contextValue,
        })
        assert.deepEqual(
          errors.map(({ message, extensions }) => [message, extensions['code']]),
          [[refusal, 'BAD_USER_INPUT']],
        )
      }
      const stream = await subscribe({
        schema,
        document: parse('subscription { events(kinds: []) { kind } }'),
        contextValue,
      })
      assert.deepEqual('errors' in stream && stream.errors?.map(({ message }) => message), [kinds])
      assert.equal(most, 0)
    })

    it('are read four at a time for the subscriptions of a key, however many they are', async () => {
      const document = parse(`subscription { events(after: "${after}") { kind } }`)
      const streams = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const stream = await subscribe({ schema, document, contextValue })
          assert.ok(Symbol.asyncIterator in stream)
          return stream
        }),
      )
      const counts = await Promise.all(streams.map((stream) => readAll(stream, 300)))
      assert.deepEqual([new Set(counts), most], [new Set([300]), 4])
    })

    it('are read four at a time for the queries of a key', async () => {
      const document = parse(`{ events(first: 2, after: "${after}") { edges { node { kind } } } }`)
      const answers = await Promise.all(
        Array.from({ length: 20 }, async () => execute({ schema, document, contextValue })),
      )
      const texts = answers.map(({ data }) => JSON.stringify(data))
      const events = { edges: [1, 2].map(() => ({ node: { kind: 'VERIFIED' } })) }
      assert.deepEqual([new Set(texts), most], [new Set([JSON.stringify({ events })]), 4])
    })

    it('leave out taps of a product that the index does not have, and have them for a client that reads them again', async () => {
      const document = parse(`subscription { productVerified(after: "${after}") { position } }`)
      const [early, late] = await Promise.all([1, 2].map(() => subscribe({ schema, document, contextValue })))
      assert.ok(
        early !== undefined && Symbol.asyncIterator in early && late !== undefined && Symbol.asyncIterator in late,
      )
      const first = early.next()
      await until(() => most > 0)
      await insertAsset(database, { tokenId: 8 })
      await database.query(`insert into outbox (topic, kind, token_id, payload) values ('tap', 'VERIFIED', 8, '{}')`)
      const seqOf = ({ value }: IteratorResult<ExecutionResult>) =>
        parsePosition((value as { data: { productVerified: { position: string } } }).data.productVerified.position)?.seq
      assert.equal(seqOf(await first), 301n)
      await insertAsset(database, { tokenId: 7 })
      assert.equal(seqOf(await late.next()), 1n)
      await Promise.all([early.return(), late.return()])
    })

    it('come while the index is being filled, with an error in place of their product', async () => {
      const filling = await openEvents(database, { stores: indexStores(database, wholeIndex(database, { waitMs: 0 })) })
      await using _dispatcher = filling.dispatcher
      const resolvers = subscriptionResolvers(filling)
      const document = parse(`subscription { events(after: "${after}") { kind product { id } } }`)
      const stream = await subscribe({ schema: graphqlSchema(resolvers), document, contextValue })
      assert.ok(Symbol.asyncIterator in stream)
      const { value } = await stream.next()
      await stream.return()
      assert.equal(JSON.stringify(value?.data), '{"events":{"kind":"VERIFIED","product":null}}')
      assert.ok(value?.errors?.[0]?.originalError instanceof IndexIncompleteError)
    })

    it('have an error of their own in place of the product of a transfer that a reorganisation took away', async () => {
      const { seq } = await outboxStore(database).newest()
      const transfer = { id: '12-1', status: 'FAILED', from: alice, to: alice, initiatedTx: hashOf(1) }
      await database.query(
        `insert into outbox (topic, kind, token_id, payload) values ('chain', 'TRANSFER', 12, $1::text::jsonb)`,
        [JSON.stringify({ ...transfer, initiatedAt: '2026-01-01T00:00:00Z' })],
      )
      await until(() => dispatcher.newest().seq > seq)
      const resolvers = fieldResolvers({
        metadata: cachedMetadata(metadataStore(database)),
        chainId: 84532,
        contract: alice,
      })
      const document = parse('{ events(productId: "12") { edges { node { transfer { id product { id } } } } } }')
      const whole = graphqlSchema(resolvers, events)
      const { errors } = await execute({ schema: whole, document, contextValue })
      assert.deepEqual(
        errors?.map(({ path, extensions }) => [path?.slice(-2).join('.'), extensions['code']]),
        [['transfer.product', 'NOT_FOUND']],
      )
    })

    it('name no newest position before the one that was asked for, which another process has read', async () => {
      const behind = await openEvents(database)
      await behind.dispatcher[Symbol.asyncDispose]() // it reads no further
      await database.query(`insert into outbox (topic, kind, token_id, payload) values ('tap', 'VERIFIED', 7, '{}')`)
      const newest = formatPosition(await outboxStore(database).newest())
      const document = parse(`{ events(after: "${newest}") { newest edges { cursor } pageInfo { hasNextPage } } }`)
      const { data } = await execute({ schema: graphqlSchema(subscriptionResolvers(behind)), document, contextValue })
      const expected = { events: { newest, edges: [], pageInfo: { hasNextPage: false } } }
      assert.equal(JSON.stringify(data), JSON.stringify(expected))
    })

    it('are loaded for a key with brands only where they are of these', async () => {
      const newest = formatPosition(await outboxStore(database).newest())
      await insertAsset(database, { tokenId: 20, brand: 'Acme' })
      await insertAsset(database, { tokenId: 21, brand: 'Bolt' })
      const statement = `insert into outbox (topic, kind, token_id, payload) select 'tap', 'VERIFIED', 21, '{}' from generate_series(1, 300)`
      await database.query(statement)
      await database.query(`insert into outbox (topic, kind, token_id, payload) values ('tap', 'VERIFIED', 20, '{}')`)
      const opened = await openEvents(database)
      await using _dispatcher = opened.dispatcher
      const loaded: bigint[] = []
      const resolvers = subscriptionResolvers({
        ...opened,
        load: (given) => (loaded.push(...given.map(({ tokenId }) => tokenId)), opened.load(given)),
      })
      const document = parse(`subscription { events(after: "${newest}") { productId } }`)
      const forAcme = { ...contextValue, key: { ...contextValue.key, brands: ['Acme'] } }
      const stream = await subscribe({ schema: graphqlSchema(resolvers), document, contextValue: forAcme })
      assert.ok(Symbol.asyncIterator in stream)
      const { value } = await stream.next()
      await stream.return()
      assert.equal(JSON.stringify(value?.data), '{"events":{"productId":"20"}}')
      assert.deepEqual(loaded, [20n])
    })

    it('come in pages to a key with brands, also empty ones, each from where the one before ended', async () => {
      const newest = await outboxStore(database).newest()
      const insert = (token: number, count: number) =>
        database.query(
          `insert into outbox (topic, kind, token_id, payload) select 'tap', 'VERIFIED', $1::int, '{}' from generate_series(1, $2::int)`,
          [token, count],
        )
      await insertAsset(database, { tokenId: 10, brand: 'Acme' })
      await insertAsset(database, { tokenId: 11, brand: 'Bolt' })
      for (const [token, count] of [
        [11, 7_000],
        [10, 3],
        [11, 5_500],
        [10, 2],
        [11, 1],
      ] as const)
        await insert(token, count)
      const last = (await outboxStore(database).newest()).seq
      await until(() => dispatcher.newest().seq === last)
      const forAcme = { ...contextValue, key: { ...contextValue.key, brands: ['Acme'] } }
      let position = formatPosition(newest)
      const lengths: number[] = []
      const found: bigint[] = []
      for (let more = true; more;) {
        const document = parse(
          `{ events(first: 2, after: "${position}") { edges { node { position } } pageInfo { hasNextPage endCursor } } }`,
        )
        const { data } = await execute({ schema, document, contextValue: forAcme })
        const { edges, pageInfo } = (data as { events: EventPageData }).events
        lengths.push(edges.length)
        found.push(...edges.map(({ node }) => parsePosition(node.position)?.seq ?? 0n))
        more = pageInfo.hasNextPage
        assert.ok(!more || pageInfo.endCursor !== null)
        assert.ok(!more || (parsePosition(pageInfo.endCursor ?? '')?.seq ?? 0n) > (parsePosition(position)?.seq ?? 0n))
        position = pageInfo.endCursor ?? ''
      }
      const expected = [7_001n, 7_002n, 7_003n, 12_504n, 12_505n].map((number) => newest.seq + number)
      assert.deepEqual(found, expected)
      assert.ok(lengths.includes(0), `pages of ${lengths.join(', ')}`)
      assert.ok(lengths.length < 12, `pages of ${lengths.join(', ')}`)
    })
  })

type EventPageData = {
  readonly edges: readonly { readonly node: { readonly position: string } }[]
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null }
}

/** Reads so many events, and ends the subscription. */
async function readAll(stream: AsyncGenerator<ExecutionResult>, count: number): Promise<number> {
  let found = 0
  for await (const { data } of stream) {
    assert.deepEqual({ ...(data?.['events'] as object) }, { kind: 'VERIFIED' })
    if ((found += 1) === count) break
  }
  return found
}

describe('the events of one subscription', () => {
  it('end with an error where they cannot be read, and where the error comes before the next event is asked for', async () => {
    let fail = (_error: ReturnType<typeof notLoaded>) => {}
    const streamOf = (after: bigint | null) =>
      createEventStream(
        {
          dispatcher: {
            subscribe: (_filter, subscriber) => ((fail = subscriber.fail), () => {}),
            newest: () => ({ seq: 9n, micros: 0n }),
          },
          outbox: { range: () => Promise.reject(new Error('the database is away')) },
          load: async () => [],
          goneError: async () => notLoaded(),
          log: createLog(() => {}),
        },
        { filter: {}, after },
      )
    const [unread, live] = [streamOf(1n), streamOf(null)]
    fail(notLoaded())
    for (const stream of [unread, live]) {
      await assert.rejects(stream.next(), notLoaded())
      assert.deepEqual(await stream.next(), { done: true, value: undefined })
    }
  })
})
