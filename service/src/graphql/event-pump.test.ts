/** From the outbox to subscribers, on PGlite and on PostgreSQL, whose listening connection is cut under it. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { GraphQLError } from 'graphql'
import { testDatabases } from '../../test/_databases.ts'
import { createLog } from '../log.ts'
import type { Database, Sql } from '../store/database.ts'
import { migrate } from '../store/migrate.ts'
import { outboxChannel, outboxStore, type OutboxEvent } from '../store/outbox.ts'
import { channelOf, createEventPump, type EventPump, type EventPumpOptions } from './event-pump.ts'
import { createSubscriberQueue, queueLimit } from './subscriber-queue.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`the event pump on ${name}`, { skip }, () => {
    let database: Database
    let pump: EventPump<OutboxEvent>
    let lines: string[]
    before(async () => {
      database = await open()
      await migrate(database)
    })
    after(() => database.close())
    beforeEach(() => void (lines = []))
    afterEach(() => pump[Symbol.asyncDispose]())

    async function start(options: Partial<EventPumpOptions<OutboxEvent>> = {}) {
      pump = await createEventPump({
        outbox: outboxStore(database),
        listen: (onNotice) => database.listen(outboxChannel, onNotice),
        present: async (events) => events,
        log: createLog((line) => lines.push(line)),
        ...options,
      })
    }

    /** A subscriber that reads as fast as it can, or waits before each event. */
    function subscriber(channel: string, beforeEach: () => Promise<unknown> = turn) {
      const queue = createSubscriberQueue<OutboxEvent>(() => stop())
      const stop = pump.subscribe(channel, queue)
      const heard: OutboxEvent[] = []
      const ended = (async () => {
        for await (const event of queue.events) {
          heard.push(event)
          await beforeEach()
        }
      })().then(
        () => null,
        (error: unknown) => error,
      )
      return { queue, heard, ended, stop: async () => void (await queue.events.return?.()) }
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
      await until(() => all.heard.length >= 10_000)
      const seqs = all.heard.map(({ seq }) => seq)
      assert.equal(all.heard.length, 10_000)
      assert.deepEqual(
        seqs,
        seqs.toSorted((a, b) => (a < b ? -1 : 1)),
      )
      for (const writer of [1, 2]) {
        const numbers = all.heard.map(({ payload }) => payload as Told).filter((told) => told.writer === writer)
        assert.deepEqual(
          numbers.map(({ n }) => n),
          Array.from({ length: 5_000 }, (_, n) => n),
        )
      }
      const expected = await database.query<{ seq: bigint }>(
        `select seq from outbox where topic = 'transfer' and token_id = 7 order by seq`,
      )
      await until(() => one.heard.length >= expected.length)
      assert.ok(expected.length > 5)
      assert.deepEqual(
        one.heard.map(({ seq }) => seq),
        expected.map(({ seq }) => seq),
      )
      await Promise.all([all.stop(), one.stop()])
    })

    it('tells nothing of before, and nothing that is not committed', async () => {
      await insert(database, 'tap', 1n)
      await start()
      const { heard, stop } = subscriber('tap')
      await database.transaction(async (sql) => {
        await insert(sql, 'tap', 2n)
        await delay(1_200) // more than one look
        assert.deepEqual(heard, [])
      })
      await until(() => heard.length > 0)
      await assert.rejects(
        database.transaction(async (sql) => {
          await insert(sql, 'tap', 3n)
          throw new Error('undone')
        }),
      )
      await insert(database, 'tap', 4n)
      await until(() => heard.length > 1)
      assert.deepEqual(
        heard.map(({ tokenId }) => tokenId),
        [2n, 4n],
      )
      await stop()
    })

    it('ends a subscriber that does not read with an error that says what to do; others hear everything', async () => {
      await start()
      const stuck = subscriber('tap', () => new Promise(() => {}))
      const reader = subscriber('tap')
      for (let round = 0; round < 10; round += 1) await insert(database, 'tap', 1n, 100)
      await until(() => reader.heard.length === 1_000)
      assert.equal(stuck.queue.waiting(), 0, 'what waited was let go')
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

    it('overruns nobody who reads with a burst that is many times the queue', async () => {
      await start()
      const reader = subscriber('tap', () => delay(1))
      await insert(database, 'tap', 1n, queueLimit * 4)
      await until(() => reader.heard.length === queueLimit * 4)
      await reader.stop()
      assert.equal(await reader.ended, null)
    })

    it('goes on where it stopped when the database was away, and logs it once', async () => {
      const outbox = outboxStore(database)
      let away = false
      const after: typeof outbox.after = (...range) =>
        away ? Promise.reject(new Error('connection refused')) : outbox.after(...range)
      await start({ outbox: { ...outbox, after }, pollMs: 20 })
      const { heard, stop } = subscriber('tap')
      away = true
      await insert(database, 'tap', 1n, 300)
      await delay(200)
      assert.deepEqual(heard, [])
      away = false
      await until(() => heard.length === 300 && lines.length > 1)
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { event: string }).event),
        ['events not read', 'events are read again'],
      )
      await stop()
    })

    it('reads what belongs to events again, and ends the subscription where that is in vain', async () => {
      let failures = 2
      await start({
        pollMs: 20,
        present: async (events) => {
          if (failures > 0) throw new Error(`failure ${(failures -= 1)}`)
          return events
        },
      })
      const patient = subscriber('tap')
      await insert(database, 'tap', 5n)
      await until(() => patient.heard.length === 1)
      failures = 1_000
      await insert(database, 'tap', 6n)
      const error = await patient.ended
      assert.ok(error instanceof GraphQLError && error.extensions['code'] === 'INTERNAL')
      failures = 0
      const next = subscriber('tap')
      await insert(database, 'tap', 7n)
      await until(() => next.heard.length === 1)
      assert.equal(next.heard[0]?.tokenId, 7n)
      await next.stop()
    })

    it('hears a database that counts from an earlier event again', async () => {
      await insert(database, 'tap', 1n, 10)
      await start({ pollMs: 20 })
      await database.exec('truncate outbox restart identity')
      await delay(200)
      const { heard, stop } = subscriber('tap')
      await insert(database, 'tap', 2n)
      await until(() => heard.length === 1)
      await stop()
    })
  })
}

type Told = { writer: number; n: number }

async function endListening(database: Database): Promise<void> {
  await database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
     and pid <> pg_backend_pid() and query like 'listen%'`,
  )
}

async function until(isSo: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 60_000; !isSo(); await delay(5))
    assert.ok(performance.now() < deadline, 'it did not happen within 60 s')
}
