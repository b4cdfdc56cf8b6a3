/** Subscriptions that begin at an earlier event read the outbox, on PGlite and on PostgreSQL (spec §6). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse, subscribe, type ExecutionResult } from 'graphql'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { alice } from '../../../test/support/index/rows.ts'
import { outboxChannel, outboxStore } from '../../index/outbox.ts'
import { createLog } from '../../lib/log.ts'
import { contextFactory, createLoaders } from '../context.ts'
import { graphqlSchema } from '../schema.ts'
import { indexStores } from '../stores.ts'
import { createEventDispatcher } from './dispatcher.ts'
import { payloadLoader, subscriptionResolvers } from './subscriptions.ts'

for (const { name, open, skip } of testDatabases())
  describe(`subscriptions since a position on ${name}`, { skip }, () => {
    it('of one key read the database four at a time, however many they are', async () => {
      const database = await open()
      await database.query(
        `insert into outbox (topic, kind, token_id, payload) select 'tap', 'VERIFIED', 7, '{}' from generate_series(1, 300)`,
      )
      const log = createLog(() => {})
      const stores = indexStores(database)
      const store = outboxStore(database)
      let [running, most] = [0, 0]
      const outbox: typeof store = {
        ...store,
        async range(range) {
          most = Math.max(most, (running += 1))
          return store.range(range).finally(() => (running -= 1))
        },
      }
      const load = payloadLoader(
        () => createLoaders(stores),
        () => alice,
      )
      const listen = (onNotice: () => void) => database.listen(outboxChannel, onNotice)
      await using dispatcher = await createEventDispatcher({ outbox: store, listen, load, log })
      const schema = graphqlSchema(subscriptionResolvers({ dispatcher, outbox, load, log }))
      const key = { id: 'testtest', name: 'test', scopes: ['read'], brands: null } as const
      const { oldest } = await store.check({ seq: 0n, micros: 0n })
      const document = parse(`subscription { events(after: "${oldest.seq}-${oldest.micros.toString(36)}") { kind } }`)
      const contextValue = contextFactory(stores)(key, 'request')
      const streams = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const stream = await subscribe({ schema, document, contextValue })
          assert.ok(Symbol.asyncIterator in stream)
          return stream
        }),
      )
      const counts = await Promise.all(streams.map((stream) => readAll(stream, 300)))
      assert.deepEqual([new Set(counts), most], [new Set([300]), 4])
      await database.close()
    })
  })

/** Reads so many events, and ends the subscription. */
async function readAll(stream: AsyncGenerator<ExecutionResult>, count: number): Promise<number> {
  let found = 0
  for await (const { data } of stream) {
    assert.deepEqual({ ...(data?.['events'] as object) }, { kind: 'VERIFIED' })
    if ((found += 1) === count) break
  }
  return found
}
