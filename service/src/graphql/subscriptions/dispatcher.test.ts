/** The dispatcher on PGlite and on PostgreSQL, whose listening connection is ended during the test. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { GraphQLError } from 'graphql'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { createLog } from '../../lib/log.ts'
import type { Database, Sql } from '../../db/database.ts'
import { outboxChannel, outboxStore, type OutboxEvent } from '../../index/outbox.ts'
import {
  channelOf,
  createEventDispatcher,
  createSubscriberQueue,
  queueLimit,
  type EventDispatcher,
  type EventDispatcherOptions,
} from './dispatcher.ts'
import { until } from '../../../test/support/wait.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`the event dispatcher on ${name}`, { skip }, () => {
    let database: Database
    let dispatcher: EventDispatcher<OutboxEvent>
    let lines: string[]
    before(async () => void (database = await open()))
    after(() => database.close())
    beforeEach(() => void (lines = []))
    afterEach(() => dispatcher[Symbol.asyncDispose]())

    async function start(options: Partial<EventDispatcherOptions<OutboxEvent>> = {}) {
      dispatcher = await createEventDispatcher({
        outbox: outboxStore(database),
        listen: (onNotice) => database.listen(outboxChannel, onNotice),
        load: async (events) => events,
        log: createLog((line) => lines.push(line)),
        ...options,
      })
    }

    /** Subscribes, and reads as fast as possible or waits after each event. */
    function subscriber(channel: string, beforeEach: () => Promise<unknown> = turn) {
      const queue = createSubscriberQueue<OutboxEvent>(() => stop())
      const stop = dispatcher.subscribe(channel, queue)
      const events: OutboxEvent[] = []
      const ended = (async () => {
        for await (const event of queue.events) {
          events.push(event)
          await beforeEach()
        }
      })().then(
        () => null,
        (error: unknown) => error,
      )
      return { queue, events, ended, stop: async () => void (await queue.events.return?.()) }
    }

    const insert = (sql: Sql, topic: string, token: bigint, count = 1, writer = 0, from = 0) =>
      sql.query(
        `insert into outbox (topic, token_id, payload)
         select $1, $2::text::numeric, jsonb_build_object('writer', $3::int, 'n', n) from generate_series($4::int, $5::int) n`,
        [topic, String(token), writer, from, from + count - 1],
      )

    it('neither loses nor reorders 10,000 events of two writers while its listening connection is ended', async () => {
      await start()
      const all = subscriber('tap')
      const one = subscriber(channelOf('transfer', 7n))
      const write = async (writer: number) => {
        for (let n = 0; n < 5_000;) {
          const count = Math.min(1 + Math.floor(Math.random() * 40), 5_000 - n)
          const from = n
          await database.transaction(async (sql) => {
            await insert(sql, 'tap', 2n ** 255n, count, writer, from)
            if (Math.random() < 0.2) await delay(Math.random() * 5)
            if (from % 3 === 0) await insert(sql, 'transfer', BigInt(from % 2 === 0 ? 7 : 8), 1, writer, from)
          })
          n += count
          if (database.dialect === 'postgres' && Math.random() < 0.05) await endListening(database)
        }
      }
      await Promise.all([write(1), write(2)])
      await until(() => all.events.length >= 10_000)
      const seqs = all.events.map(({ seq }) => seq)
      assert.equal(all.events.length, 10_000)
      assert.deepEqual(
        seqs,
        seqs.toSorted((a, b) => (a < b ? -1 : 1)),
      )
      for (const writer of [1, 2]) {
        const numbers = all.events
          .map(({ payload }) => payload as unknown as Numbered)
          .filter((one) => one.writer === writer)
        assert.deepEqual(
          numbers.map(({ n }) => n),
          Array.from({ length: 5_000 }, (_, n) => n),
        )
      }
      const expected = await database.query<{ seq: bigint }>(
        `select seq from outbox where topic = 'transfer' and token_id = 7 order by seq`,
      )
      await until(() => one.events.length >= expected.length)
      assert.ok(expected.length > 5)
      assert.deepEqual(
        one.events.map(({ seq }) => seq),
        expected.map(({ seq }) => seq),
      )
      await Promise.all([all.stop(), one.stop()])
    })

    it('delivers no earlier event, and none that is not committed', async () => {
      await insert(database, 'tap', 1n)
      await start({ pollMs: 20 })
      const { events, stop } = subscriber('tap')
      await database.transaction(async (sql) => {
        await insert(sql, 'tap', 2n)
        await delay(100) // longer than a poll
        assert.deepEqual(events, [])
      })
      await until(() => events.length > 0)
      await assert.rejects(
        database.transaction(async (sql) => {
          await insert(sql, 'tap', 3n)
          throw new Error('undone')
        }),
      )
      await insert(database, 'tap', 4n)
      await until(() => events.length > 1)
      assert.deepEqual(
        events.map(({ tokenId }) => tokenId),
        [2n, 4n],
      )
      await stop()
    })

    it('ends a subscriber that does not read with an error that explains what to do; others get everything', async () => {
      await start()
      const stuck = subscriber('tap', () => new Promise(() => {}))
      const reader = subscriber('tap')
      for (let round = 0; round < 10; round += 1) await insert(database, 'tap', 1n, 100)
      await until(() => reader.events.length === 1_000)
      assert.equal(stuck.queue.waiting(), 0, 'the queue is emptied')
      await assert.rejects(
        stuck.queue.events.next(),
        (error) =>
          error instanceof GraphQLError &&
          error.extensions['code'] === 'RATE_LIMITED' &&
          /Subscribe again/.test(error.message),
      )
      assert.equal((await stuck.queue.events.next()).done, true)
      await reader.stop()
    })

    it('overflows no subscriber that reads, in a burst of many times the queue', async () => {
      await start()
      const reader = subscriber('tap', () => delay(1))
      await insert(database, 'tap', 1n, queueLimit * 4)
      await until(() => reader.events.length === queueLimit * 4)
      await reader.stop()
      assert.equal(await reader.ended, null)
    })

    // PGlite runs one transaction at a time, so that nothing can hold the lock.
    it(
      'starts while a writer holds the lock of the outbox, and says that it waits',
      { skip: name === 'PGlite' },
      async () => {
        const [holding, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
        const writer = database.transaction(async (sql) => {
          await insert(sql, 'tap', 1n)
          holding.resolve()
          await release.promise
        })
        await holding.promise
        const starting = start()
        const waits = until(() => lines.some((line) => line.includes('a writer holds the events')))
        await Promise.race([starting, waits]).finally(() => release.resolve())
        await writer
        await starting
      },
    )

    it('resumes where it stopped after a fault of the database, and logs it once', async () => {
      const outbox = outboxStore(database)
      let away = false
      const after: typeof outbox.after = (...range) =>
        away ? Promise.reject(new Error('connection refused')) : outbox.after(...range)
      await start({ outbox: { ...outbox, after }, pollMs: 20 })
      const { events, stop } = subscriber('tap')
      away = true
      await insert(database, 'tap', 1n, 300)
      await delay(200)
      assert.deepEqual(events, [])
      away = false
      await until(() => events.length === 300 && lines.length > 1)
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { event: string }).event),
        ['events not read', 'events are read again'],
      )
      await stop()
    })

    it('loads payloads again after a failure, and ends the subscription after repeated ones', async () => {
      let failures = 2
      await start({
        pollMs: 20,
        load: async (events) => {
          if (failures > 0) throw new Error(`failure ${(failures -= 1)}`)
          return events
        },
      })
      const patient = subscriber('tap')
      await insert(database, 'tap', 5n)
      await until(() => patient.events.length === 1)
      failures = 1_000
      await insert(database, 'tap', 6n)
      const error = await patient.ended
      assert.ok(error instanceof GraphQLError && error.extensions['code'] === 'INTERNAL')
      failures = 0
      const next = subscriber('tap')
      await insert(database, 'tap', 7n)
      await until(() => next.events.length === 1)
      assert.equal(next.events[0]?.tokenId, 7n)
      await next.stop()
    })

    it('follows a database that counts from an earlier event again', async () => {
      await insert(database, 'tap', 1n, 10)
      await start({ pollMs: 20 })
      await database.exec('truncate outbox restart identity')
      await delay(200)
      const { events, stop } = subscriber('tap')
      await insert(database, 'tap', 2n)
      await until(() => events.length === 1)
      await stop()
    })
  })
}

type Numbered = { writer: number; n: number }

async function endListening(database: Database): Promise<void> {
  await database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
     and pid <> pg_backend_pid() and query like 'listen%'`,
  )
}
