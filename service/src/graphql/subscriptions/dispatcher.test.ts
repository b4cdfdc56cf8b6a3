/** The dispatcher on PGlite and on PostgreSQL, whose listening connection is ended during the test. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { GraphQLError } from 'graphql'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { createLog } from '../../lib/log.ts'
import type { Database, Sql } from '../../db/database.ts'
import { type EventFilter, outboxChannel, outboxStore, type OutboxEvent } from '../../index/outbox.ts'
import { createEventDispatcher, queueLimit, type EventDispatcher, type EventDispatcherOptions } from './dispatcher.ts'
import { createEventStream } from './stream.ts'
import { until } from '../../../test/support/wait.ts'
import { useOpened } from '../../../test/support/opened.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`the event dispatcher on ${name}`, { skip }, () => {
    let dispatcher: EventDispatcher<OutboxEvent>
    let lines: string[]
    const database = useOpened(open)
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
    function subscriber(
      filter: EventFilter = { topic: 'tap' },
      beforeNext: () => Promise<unknown> = turn,
      after: bigint | null = null,
    ) {
      const outbox = outboxStore(database)
      const goneError = () => Promise.resolve(new GraphQLError('gone'))
      const log = createLog((line) => lines.push(line))
      const load = async (events: readonly OutboxEvent[]) => events
      const streams = { dispatcher, outbox, load, goneError, log }
      const stream = createEventStream(streams, { filter, after })
      const events: OutboxEvent[] = []
      const ended = (async () => {
        for await (const event of stream) {
          events.push(event)
          await beforeNext()
        }
      })().then(
        () => null,
        (error: unknown) => error,
      )
      return { events, ended, stop: async () => void (await stream.return?.()) }
    }

    const insert = (sql: Sql, topic: string, token: bigint, count = 1, writer = 0, from = 0) =>
      sql.query(
        `insert into outbox (topic, kind, token_id, payload)
         select $1, case $1 when 'tap' then 'VERIFIED' else 'TRANSFER' end, $2::text::numeric,
           jsonb_build_object('writer', $3::int, 'n', n) from generate_series($4::int, $5::int) n`,
        [topic, String(token), writer, from, from + count - 1],
      )

    it('neither loses nor reorders 10,000 events of two writers while its listening connection is ended', async () => {
      await start()
      const all = subscriber()
      const one = subscriber({ topic: 'transfer', tokenId: 7n })
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
          if (database.dialect !== 'pglite' && Math.random() < 0.05) await endListening(database)
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
      const outbox = outboxStore(database)
      let polls = 0
      const after: typeof outbox.after = (...range) => outbox.after(...range).finally(() => (polls += 1))
      await start({ outbox: { ...outbox, after }, pollMs: 20 })
      const { events, stop } = subscriber()
      await database.transaction(async (sql) => {
        await insert(sql, 'tap', 2n)
        const before = polls
        // The embedded database has one connection, so that a poll waits for the transaction.
        if (database.dialect !== 'pglite') await until(() => polls > before + 1)
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

    it('costs a queue for a subscriber that does not read, and sends it everything once it reads again', async () => {
      await start()
      const { promise: reads, resolve: read } = Promise.withResolvers<void>()
      const stuck = subscriber({ topic: 'tap' }, () => reads)
      const reader = subscriber()
      for (let round = 0; round < 10; round += 1) await insert(database, 'tap', 1n, 100)
      await until(() => reader.events.length === 1_000)
      assert.equal(stuck.events.length, 1)
      read()
      await until(() => stuck.events.length === 1_000)
      assert.deepEqual(stuck.events, reader.events)
      await insert(database, 'tap', 2n)
      await until(() => stuck.events.length === 1_001 && reader.events.length === 1_001)
      await Promise.all([stuck.stop(), reader.stop()])
      assert.deepEqual(await Promise.all([stuck.ended, reader.ended]), [null, null])
    })

    it('sends what came after a number, then what comes, while writers write', async () => {
      const { seq } = await outboxStore(database).newest()
      await insert(database, 'tap', 3n, 300)
      await insert(database, 'transfer', 4n, 5)
      await start()
      const readers: ReturnType<typeof subscriber>[] = []
      for (let round = 0; round < 20; round += 1) {
        readers.push(subscriber({}, turn, seq), subscriber({ kinds: ['TRANSFER'] }, turn, seq))
        await insert(database, 'tap', 3n, 40)
        await insert(database, 'transfer', 4n)
      }
      await until(() => readers.every(({ events }, index) => events.length === (index % 2 === 0 ? 1_125 : 25)))
      for (const [index, { events, stop }] of readers.entries()) {
        const filter = index % 2 === 0 ? {} : { kinds: ['TRANSFER' as const] }
        const expected = await outboxStore(database).range({
          ...filter,
          after: seq,
          upTo: seq + 100_000n,
          limit: 2_000,
        })
        assert.deepEqual(events, expected?.events)
        await stop()
      }
    })

    it('sends an event that follows many others which are not wanted, once', async () => {
      const { seq } = await outboxStore(database).newest()
      await insert(database, 'tap', 3n, 12_000)
      await insert(database, 'transfer', 4n)
      await insert(database, 'tap', 3n, 10_500)
      await start()
      const { events, stop } = subscriber({ topic: 'transfer', tokenId: 4n }, turn, seq)
      await until(() => events.length === 1)
      await insert(database, 'transfer', 4n, 2)
      await until(() => events.length === 3)
      const expected = [12_001n, 22_502n, 22_503n].map((number) => seq + number)
      assert.deepEqual(
        events.map((event) => event.seq),
        expected,
      )
      await stop()
    })

    it('reads no events without a subscriber, and knows the newest', async () => {
      const outbox = outboxStore(database)
      let reads = 0
      const after: typeof outbox.after = (...range) => {
        reads += 1
        return outbox.after(...range)
      }
      await start({ outbox: { ...outbox, after }, pollMs: 20 })
      await insert(database, 'tap', 3n, 300)
      const { seq } = await outbox.newest()
      await until(() => dispatcher.newest().seq === seq)
      assert.equal(reads, 0)
      const { events, stop } = subscriber()
      await insert(database, 'tap', 4n)
      await until(() => events.length > 0)
      assert.deepEqual(
        events.map((event) => event.seq),
        [seq + 1n],
      )
      await stop()
    })

    it('sends a first subscriber what is committed while the newest event is looked up', async () => {
      const outbox = outboxStore(database)
      let [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      answer.resolve()
      const newest: typeof outbox.newest = async (...known) => {
        const place = await outbox.newest(...known)
        asked.resolve()
        await answer.promise
        return place
      }
      await start({ outbox: { ...outbox, newest }, pollMs: 20 })
      const first = dispatcher.newest().seq + 1n
      answer = Promise.withResolvers<void>()
      await insert(database, 'tap', 3n)
      asked = Promise.withResolvers<void>()
      await Promise.race([asked.promise, delay(200)])
      const { events, stop } = subscriber()
      answer.resolve()
      await until(() => events.length > 0)
      assert.equal(events[0]?.seq, first)
      await stop()
    })

    it('overflows no subscriber that reads, in a burst of many times the queue', async () => {
      await start()
      const reader = subscriber({ topic: 'tap' }, () => delay(1))
      await insert(database, 'tap', 1n, queueLimit * 4)
      await until(() => reader.events.length === queueLimit * 4)
      await reader.stop()
      assert.equal(await reader.ended, null)
    })

    // PGlite runs one transaction at a time, so that nothing can hold the lock.
    describe('while a writer holds the lock of the outbox', { skip: name === 'PGlite' }, () => {
      let release: () => void
      let writer: Promise<void>
      beforeEach(async () => {
        const [holding, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
        release = released.resolve
        writer = database.transaction(async (sql) => {
          await insert(sql, 'tap', 1n)
          holding.resolve()
          await released.promise
        })
        await holding.promise
      })

      it('starts when it is free, and says that it waits', async () => {
        const starting = start()
        const waits = until(() => lines.some((line) => line.includes('a writer holds the events')))
        await Promise.race([starting, waits]).finally(release)
        await writer
        await starting
      })

      it('does not start where the lock is never free, and says what to look for', async () => {
        const starting = assert.rejects(
          start({ startPausesMs: [1] }),
          /^Error: A transaction holds .* pg_stat_activity/,
        )
        await starting.finally(release)
        await writer
        await start()
      })
    })

    it('resumes where it stopped after a fault of the database, and logs it once', async () => {
      const outbox = outboxStore(database)
      let away = false
      const after: typeof outbox.after = (...range) =>
        away ? Promise.reject(new Error('connection refused')) : outbox.after(...range)
      await start({ outbox: { ...outbox, after }, pollMs: 20 })
      const { events, stop } = subscriber()
      away = true
      await insert(database, 'tap', 1n, 300)
      await until(() => lines.length > 0)
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
      const patient = subscriber()
      await insert(database, 'tap', 5n)
      await until(() => patient.events.length === 1)
      failures = 1_000
      await insert(database, 'tap', 6n)
      const error = await patient.ended
      assert.ok(error instanceof GraphQLError && error.extensions['code'] === 'INTERNAL')
      failures = 0
      const next = subscriber()
      await insert(database, 'tap', 7n)
      await until(() => next.events.length === 1)
      assert.equal(next.events[0]?.tokenId, 7n)
      await next.stop()
    })

    it('ends subscriptions, and follows, when the database counts from an earlier event again', async () => {
      await insert(database, 'tap', 1n, 10)
      await start({ pollMs: 20 })
      const before = subscriber()
      await database.exec('truncate outbox restart identity')
      const error = await before.ended
      assert.ok(error instanceof GraphQLError && error.extensions['code'] === 'EVENTS_GONE')
      const { events, stop } = subscriber()
      await insert(database, 'tap', 2n)
      await until(() => events.length === 1)
      await stop()
    })

    it('ends subscriptions when the database counts past the last event again, before it was read', async () => {
      await insert(database, 'tap', 1n, 10)
      await start({ pollMs: 20 })
      const { ended } = subscriber()
      await database.transaction(async (sql) => {
        await sql.query('truncate outbox restart identity')
        await insert(sql, 'tap', 2n, 30)
      })
      const error = await ended
      assert.ok(error instanceof GraphQLError && error.extensions['code'] === 'EVENTS_GONE')
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
