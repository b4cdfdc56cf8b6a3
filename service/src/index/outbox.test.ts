/** Events are given out in the order of their numbers, and none comes later below one that was given (spec §6). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { testDatabases } from '../../test/support/database/databases.ts'
import { until } from '../../test/support/wait.ts'
import { isLockTimeout } from '../db/errors.ts'
import { retry } from '../lib/async/retry.ts'
import { matchesFilter, outboxStore, trimOutbox, type Place } from './outbox.ts'
import { indexStore } from './store.ts'
import type { Database, Sql } from '../db/database.ts'

const [, postgres] = testDatabases()
const insert = (sql: Sql, token: number) =>
  sql.query("insert into outbox (topic, token_id, payload) values ('tap', $1, '{}')", [String(token)])

describe('the outbox', { skip: postgres?.skip ?? true }, () => {
  it('waits for an event that was numbered earlier and is committed later', async () => {
    await using database = await postgres!.open()
    let statements = 0
    const query: Database['query'] = (text, values) => ((statements += 1), database.query(text, values))
    const outbox = outboxStore({ ...database, query })
    const [numbered, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = database.transaction(async (sql) => {
      await insert(sql, 1)
      numbered.resolve()
      await release.promise
    })
    await numbered.promise
    await database.transaction((sql) => insert(sql, 2)) // no writer waits for another

    let given: bigint[] | undefined
    const reading = outbox.after(0n, 10).then((events) => (given = events.map(({ tokenId }) => tokenId)))
    await until(() => statements > 2) // it has looked for writers twice
    assert.equal(given, undefined, 'the second event is not given before the first')
    release.resolve()
    await slow
    assert.deepEqual(await reading, [1n, 2n])
    assert.deepEqual(await outbox.after(2n, 10), [])
    assert.equal((await outbox.newest()).seq, 2n)
  })

  it('keeps no writer waiting while it waits for an earlier one', async () => {
    await using database = await postgres!.open()
    const outbox = outboxStore(database)
    const [numbered, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = database.transaction(async (sql) => {
      await insert(sql, 1)
      numbered.resolve()
      await release.promise
    })
    await numbered.promise
    await insert(database, 2)
    const patiently = { pausesMs: Array.from({ length: 60 }, () => 100), isRetryable: isLockTimeout }
    const reading = retry(() => Promise.all([outbox.after(0n, 10), outbox.newest()]), patiently)
    const writing = (async () => {
      for (let times = 0; times < 20; times += 1)
        await database.transaction(async (sql) => {
          await sql.query('set local lock_timeout = 100')
          await insert(sql, 3)
        })
    })()
    await writing.finally(release.resolve)
    await slow
    const [events, newest] = await reading
    assert.deepEqual([events[0]?.seq, events[1]?.seq], [1n, 2n])
    assert.ok(newest.seq >= 2n)
    assert.equal((await outbox.after(0n, 100)).length, 22)
  })

  it('gives every committed event once and in order, while writers commit and roll back in any order', async () => {
    await using database = await postgres!.open()
    const outbox = outboxStore(database)
    let isWriting = true
    const write = async () => {
      for (let times = 0; times < 100; times += 1)
        await database
          .transaction(async (sql) => {
            await insert(sql, 1)
            if (Math.random() < 0.3) await delay(Math.random() * 10)
            await insert(sql, 2)
            if (Math.random() < 0.2) throw new Error('undone')
          })
          .catch((error: Error) => assert.equal(error.message, 'undone'))
    }
    const writing = Promise.all(Array.from({ length: 6 }, write)).finally(() => (isWriting = false))
    const given: bigint[] = []
    const readAll = async () => {
      const limit = 1 + Math.floor(Math.random() * 20)
      const patiently = { pausesMs: Array.from({ length: 60 }, () => 100), isRetryable: isLockTimeout }
      const events = await retry(() => outbox.after(given.at(-1) ?? 0n, limit), patiently)
      given.push(...events.map(({ seq }) => seq))
      return events.length
    }
    while (isWriting) await readAll()
    await writing
    while ((await readAll()) > 0);
    const rows = await database.query<{ seq: bigint }>('select seq from outbox order by seq')
    assert.deepEqual(
      given,
      rows.map(({ seq }) => seq),
    )
  })

  it('knows the places that it gave out, the last one also after it is deleted, and none of another database', async () => {
    await using database = await postgres!.open()
    const outbox = outboxStore(database)
    const areKnown = (places: readonly Place[]) =>
      Promise.all(places.map(async (place) => (await outbox.check(place)).known))
    assert.deepEqual(await areKnown([await outbox.newest()]), [true])
    await insert(database, 1)
    const first = await outbox.newest()
    await insert(database, 2)
    const second = await outbox.newest()
    const others = [
      { ...second, seq: 3n },
      { ...second, micros: first.micros },
    ]
    assert.deepEqual(await areKnown([first, second, ...others]), [true, true, false, false])
    await database.query("update outbox set created_at = created_at - interval '40 days'")
    const aged = await outbox.newest()
    await trimOutbox(database, 30, BigInt(Math.floor(Date.now() / 1_000)))
    assert.deepEqual(await outbox.after(0n, 10), [])
    assert.deepEqual(await areKnown([await outbox.newest(), aged, ...others]), [true, true, false, false])
  })

  it('gives of a range the events that a filter names, all of them in their order', async () => {
    await using database = await postgres!.open()
    const outbox = outboxStore(database)
    const kinds = ['REGISTERED', 'TAG_BOUND', 'TRANSFER'] as const
    await database.query(
      `insert into outbox (topic, kind, token_id, payload)
       select 'chain', ($1::text[])[1 + n % 3], n % 4, '{}' from generate_series(1, 24) n`,
      [[...kinds]],
    )
    const all = await outbox.after(0n, 100)
    for (const filter of [
      {},
      { tokenId: 2n },
      { kinds: ['TRANSFER'] },
      { kinds: ['TRANSFER', 'REGISTERED'], tokenId: 2n },
      { kinds: ['TAG_BOUND', 'TRANSFER'] },
      { topic: 'tap', tokenId: 2n },
    ] as const) {
      const page = await outbox.range({ ...filter, after: 0n, upTo: 24n, limit: 100 })
      const expected = all.filter((event) => matchesFilter(event, filter))
      assert.deepEqual(
        page?.events,
        expected,
        JSON.stringify(filter, (_, value) => String(value)),
      )
    }
  })

  it('loses all old events of a busy time, before the table is tidied again', async () => {
    await using database = await postgres!.open()
    const at = Date.now()
    const index = indexStore(database, { now: () => at })
    const epoch = (await index.lead(`0x${'11'.repeat(20)}`))?.epoch ?? -1n
    const eventsAfterPruning = async () => {
      assert.equal(await index.prune({ epoch, keepFrom: 0n }), true)
      return (await database.query<{ n: number }>('select count(*)::int as n from outbox'))[0]?.n
    }
    await database.query(`insert into outbox (topic, token_id, payload, created_at)
      select 'tap', n, '{}', now() - interval '40 days' from generate_series(1, 105000) n`)
    assert.deepEqual([await eventsAfterPruning(), await eventsAfterPruning()], [5_000, 0])
  })

  it('loses its old events with the next block, or after ten seconds without one', async () => {
    await using database = await postgres!.open()
    const clock = { at: Date.now() }
    const index = indexStore(database, { now: () => clock.at })
    const epoch = (await index.lead(`0x${'11'.repeat(20)}`))?.epoch ?? -1n
    const oldEventsAfterPruning = async () => {
      await database.query(
        "insert into outbox (topic, token_id, payload, created_at) values ('tap', 1, '{}', now() - interval '40 days')",
      )
      assert.equal(await index.prune({ epoch, keepFrom: 0n }), true)
      return (await outboxStore(database).after(0n, 10)).length
    }
    assert.equal(await oldEventsAfterPruning(), 0)
    clock.at += 9_000
    assert.equal(await oldEventsAfterPruning(), 1)
    await database.query('update index_cursor set number = number + 1')
    assert.equal(await oldEventsAfterPruning(), 0)
    clock.at += 10_000
    assert.equal(await oldEventsAfterPruning(), 0)
  })

  it('gives no part of a range whose first events are deleted', async () => {
    await using database = await postgres!.open()
    for (const token of [1, 2, 3]) await insert(database, token)
    await database.query("update outbox set created_at = now() - interval '40 days' where seq = 1")
    await trimOutbox(database, 30, BigInt(Math.floor(Date.now() / 1_000)))
    const range = (after: bigint) => outboxStore(database).range({ topic: 'tap', after, upTo: 3n, limit: 9 })
    assert.equal(await range(0n), null)
    assert.deepEqual(
      (await range(1n))?.events.map(({ seq }) => seq),
      [2n, 3n],
    )
  })

  it('keeps its new events where the clock of the database alone is ahead', async () => {
    await using database = await postgres!.open()
    await insert(database, 1)
    const yearAgo = Date.now() - 366 * 86_400_000
    const index = indexStore(database, { now: () => yearAgo })
    const epoch = (await index.lead(`0x${'11'.repeat(20)}`))?.epoch ?? -1n
    await database.query("update outbox set created_at = created_at - interval '366 days'")
    assert.equal(await index.prune({ epoch, keepFrom: 0n }), true)
    assert.equal((await outboxStore(database).after(0n, 10)).length, 1)
  })
})
