/** The replay ledger and the announcement of taps (spec §6), on PGlite and on PostgreSQL, with a clock of their own. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { ServiceError } from '../lib/errors.ts'
import { toHex } from './bytes.ts'
import type { Database } from '../db/database.ts'
import { createLedger, createTapAnnouncement, type Tap } from './replay-ledger.ts'
import { newUid } from '../../test/support/tap/tags.ts'
import { testDatabases } from '../../test/support/database/databases.ts'

type LedgerSql = Pick<Database, 'query' | 'dialect'>

const newPicc = () => Uint8Array.from(randomBytes(16))

for (const { name, open, skip } of testDatabases()) {
  describe(`the tap ledger on ${name}`, { skip }, () => {
    let database: Awaited<ReturnType<typeof open>>
    const announce: ReturnType<typeof createTapAnnouncement> = (tap) => createTapAnnouncement(database)(tap)
    before(async () => void (database = await open()))
    after(() => database.close())

    const start = Date.parse('2026-01-01T00:00:00Z')
    function world({ windowSeconds = 300 } = {}) {
      let time = start
      const ledger = createLedger({ sql: database, windowSeconds, now: () => new Date(time) })
      const uid = newUid()
      const taps = new Map<number, Tap>()
      const tapOf = (counter: number, change: Partial<Tap> = {}): Tap => {
        const tap = taps.get(counter) ?? { uid, epoch: 0, counter, picc: newPicc(), batchId: 'test' }
        taps.set(counter, tap)
        return { ...tap, ...change }
      }
      return {
        uid,
        tapOf,
        at: (seconds: number) => void (time = start + seconds * 1000),
        tap: async (counter: number, change?: Partial<Tap>) => (await ledger.consume(tapOf(counter, change))).outcome,
        answer: (counter: number, change?: Partial<Tap>) => ledger.consume(tapOf(counter, change)),
      }
    }

    it('takes a counter once, and its repeats as the same tap', async () => {
      const { tap } = world()
      assert.deepEqual([await tap(1), await tap(1), await tap(1)], ['FRESH', 'SAME_TAP', 'SAME_TAP'])
      assert.deepEqual([await tap(4), await tap(1), await tap(4)], ['FRESH', 'SAME_TAP', 'SAME_TAP'])
    })

    it('keeps the window from the first acceptance, never sliding', async () => {
      const { at, tap } = world()
      assert.equal(await tap(1), 'FRESH')
      for (const second of [100, 200, 299, 299.999]) {
        at(second)
        assert.equal(await tap(1), 'SAME_TAP', `${second} s`)
      }
      at(300)
      assert.equal(await tap(1), 'REPLAY')
      at(299)
      assert.equal(await tap(1), 'SAME_TAP')
      at(100_000)
      assert.equal(await tap(1), 'REPLAY')
    })

    it('bounds the window also after the clock of the database was set back', async () => {
      const { at, tap } = world()
      await tap(1)
      at(-299)
      assert.equal(await tap(1), 'SAME_TAP')
      at(-86_400)
      assert.equal(await tap(1), 'REPLAY')
    })

    it('keeps the window of counter n after n + 1', async () => {
      const { at, tap } = world()
      await tap(1)
      at(200)
      assert.equal(await tap(2), 'FRESH')
      at(299)
      assert.deepEqual([await tap(1), await tap(2)], ['SAME_TAP', 'SAME_TAP'])
      at(301)
      assert.deepEqual([await tap(1), await tap(2)], ['REPLAY', 'SAME_TAP'])
    })

    it('with window 0 takes each tap for one request only', async () => {
      const { at, tap } = world({ windowSeconds: 0 })
      assert.deepEqual([await tap(1), await tap(1)], ['FRESH', 'REPLAY'])
      at(-5)
      assert.equal(await tap(1), 'REPLAY', 'a clock that was set back opens nothing')
    })

    it('never takes an unseen lower counter or other bytes of a known one', async () => {
      const { tap, answer } = world()
      await tap(10)
      assert.deepEqual(await answer(9), { outcome: 'REPLAY', anomalies: ['unseen_lower'], lastCounter: 10 })
      assert.deepEqual(await answer(10, { picc: newPicc() }), {
        outcome: 'REPLAY',
        anomalies: ['other_picc'],
        lastCounter: 10,
      })
      assert.equal(await tap(10), 'SAME_TAP')
    })

    it('reports gaps above 50 and counters that near their end, and takes them', async () => {
      const { answer } = world()
      assert.deepEqual((await answer(500)).anomalies, [], 'a first tap has no gap')
      assert.deepEqual((await answer(550)).anomalies, [])
      assert.deepEqual(await answer(601), { outcome: 'FRESH', anomalies: ['gap'], lastCounter: 550 })
      assert.deepEqual((await answer(0xff0000)).anomalies, ['gap', 'near_end'])
      assert.deepEqual(await answer(0xffffff), {
        outcome: 'FRESH',
        anomalies: ['gap', 'near_end'],
        lastCounter: 0xff0000,
      })
    })

    it('starts a new epoch at 1 and closes the old one', async () => {
      const { tap } = world()
      await tap(100)
      assert.equal(await tap(1, { epoch: 1 }), 'FRESH')
      assert.equal(await tap(101), 'REPLAY')
      assert.equal(await tap(100), 'SAME_TAP')
      assert.equal(await tap(2, { epoch: 1 }), 'FRESH')
    })

    it('reads the status of the batch with every tap', async () => {
      const { tap } = world()
      const batchId = `batch-${randomBytes(4).toString('hex')}`
      assert.equal(await tap(1, { batchId }), 'FRESH')
      await database.query('insert into tag_batch (id, epoch, status) values ($1, 0, $2)', [batchId, 'retired'])
      assert.equal(await tap(2, { batchId }), 'FRESH')
      await database.query(`update tag_batch set status = 'revoked' where id = $1`, [batchId])
      assert.deepEqual([await tap(2, { batchId }), await tap(3, { batchId })], ['REVOKED', 'REVOKED'])
      await database.query(`update tag_batch set status = 'active' where id = $1`, [batchId])
      assert.equal(await tap(3, { batchId }), 'FRESH', 'what was refused was not consumed')
    })

    it('gives one FRESH to 64 duplicates at once, and SAME TAP to all others', async () => {
      for (const windowSeconds of [300, 0]) {
        const { tap } = world({ windowSeconds })
        const outcomes = await Promise.all(Array.from({ length: 64 }, () => tap(7)))
        assert.equal(outcomes.filter((outcome) => outcome === 'FRESH').length, 1)
        assert.equal(outcomes.filter((outcome) => outcome === (windowSeconds ? 'SAME_TAP' : 'REPLAY')).length, 63)
      }
    })

    it('takes counters of one tag that come together in their order', async () => {
      const { tap } = world()
      const outcomes = await Promise.all([5, 1, 3, 2, 4, 3].map((counter) => tap(counter)))
      assert.deepEqual(outcomes, ['FRESH', 'FRESH', 'FRESH', 'FRESH', 'FRESH', 'SAME_TAP'])
    })

    it('takes the taps of one turn with one statement, or one for each shard', async () => {
      let statements = 0
      const sql: LedgerSql = {
        dialect: database.dialect,
        query: (...call) => {
          statements += 1
          return database.query(...call)
        },
      }
      const ledger = createLedger({ sql })
      const taps = Array.from({ length: 50 }, () => world().tapOf(1))
      const answers = await Promise.all(taps.map(ledger.consume))
      assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['FRESH']))
      if (database.dialect !== 'citus') return assert.equal(statements, 1)
      const [table] = await database.query<{ n: bigint }>(
        `select count(*) as n from pg_dist_shard where logicalrelid = 'tag'::regclass`,
      )
      assert.ok(statements <= 1 + Number(table?.n), `${statements} statements`)
    })

    it('takes the neighbours of a tap that the database refuses', async () => {
      const ledger = createLedger({ sql: database })
      const tapOf = (uid: Uint8Array): Tap => ({ uid, epoch: 0, counter: 1, picc: newPicc(), batchId: 'test' })
      const uids = [newUid(), new Uint8Array(3), newUid()]
      const answers = await Promise.allSettled(uids.map((uid) => ledger.consume(tapOf(uid))))
      assert.deepEqual(
        answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.outcome : 'refused')),
        ['FRESH', 'refused', 'FRESH'],
      )
    })

    it('obeys a simple model for any order of taps', async () => {
      const steps = fc.array(
        fc.record({ counter: fc.integer({ min: 1, max: 6 }), wait: fc.constantFrom(0, 1, 150, 300) }),
        { maxLength: 12 },
      )
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const { at, tap } = world()
          const firstSeen = new Map<number, number>()
          let seconds = 0
          for (const { counter, wait } of sequence) {
            seconds += wait
            at(seconds)
            const seen = firstSeen.get(counter)
            const last = Math.max(0, ...firstSeen.keys())
            const expected =
              seen === undefined ? (counter > last ? 'FRESH' : 'REPLAY') : seconds - seen < 300 ? 'SAME_TAP' : 'REPLAY'
            if (expected === 'FRESH') firstSeen.set(counter, seconds)
            assert.equal(await tap(counter), expected)
          }
        }),
        { numRuns: 40 },
      )
    })

    it('measures the window by the clock of the database', async () => {
      const ledger = createLedger({ sql: database, windowSeconds: 300 })
      const { tapOf, uid } = world()
      assert.equal((await ledger.consume(tapOf(1))).outcome, 'FRESH')
      assert.equal((await ledger.consume(tapOf(1))).outcome, 'SAME_TAP')
      await database.query(`update tap set first_seen = now() - interval '301 seconds' where uid = $1`, [uid])
      assert.equal((await ledger.consume(tapOf(1))).outcome, 'REPLAY')
    })

    /** A tap of a bound item that the index knows, with a token of its own. */
    async function boundTap() {
      const { tap, uid } = world()
      await tap(1)
      const tokenId = BigInt(`0x${randomBytes(32).toString('hex')}`)
      await database.query(
        `insert into asset (token_id, owner, state, flags, tag_hash, created_at, updated_at, updated_block)
         values ($1, $2, 2, 0, $3, now(), now(), 1)`,
        [String(tokenId), new Uint8Array(20), new Uint8Array(32)],
      )
      return { resolved: { uid: toHex(uid), epoch: 0, tapCounter: 1, tokenId }, tap }
    }
    const eventsOf = (tokenId: bigint) =>
      database.query<{ topic: string; at: string }>(
        `select topic, payload->>'at' as at from outbox where token_id = $1 order by seq`,
        [String(tokenId)],
      )
    const verifiedOf = async (tokenId: bigint) =>
      (
        await database.query<{ verified: boolean }>('select verified from asset where token_id = $1', [String(tokenId)])
      )[0]?.verified

    it('announces a tap once, with concurrent callers too', async () => {
      const { resolved } = await boundTap()
      const shared = createTapAnnouncement(database)
      const answers = await Promise.all([1, 2, 3, 4].flatMap(() => [announce(resolved), shared(resolved)]))
      assert.equal(answers.filter(Boolean).length, 1)
      assert.equal(await announce(resolved), false)
      assert.equal(await announce({ ...resolved, tapCounter: 2 }), false, 'no such tap')
      const [event, ...others] = await eventsOf(resolved.tokenId)
      assert.deepEqual([event?.topic, others], ['tap', []])
      assert.ok(Math.abs(Date.parse(event?.at ?? '') - Date.now()) < 60_000, event?.at)
    })

    it('makes the item verified with its first tap, and announces the later ones too', async () => {
      const { resolved, tap } = await boundTap()
      assert.equal(await verifiedOf(resolved.tokenId), false)
      await announce(resolved)
      assert.equal(await verifiedOf(resolved.tokenId), true)
      const tappedAt = () =>
        database.query('select tapped_at from asset_tap where token_id = $1', [String(resolved.tokenId)])
      const first = await tappedAt()
      await tap(2)
      assert.equal(await announce({ ...resolved, tapCounter: 2 }), true)
      assert.deepEqual([await tappedAt(), (await eventsOf(resolved.tokenId)).length], [first, 2])
    })

    it('announces an item that the index does not know yet', async () => {
      const { tap, uid } = world()
      await tap(1)
      const tokenId = BigInt(`0x${randomBytes(32).toString('hex')}`)
      assert.equal(await announce({ uid: toHex(uid), epoch: 0, tapCounter: 1, tokenId }), true)
      assert.equal((await eventsOf(tokenId)).length, 1)
    })

    it('announces taps that come together as it does one after another', async () => {
      const [known, verified, twice] = [await boundTap(), await boundTap(), await boundTap()]
      await announce(verified.resolved)
      await verified.tap(2)
      const unknown = world()
      await unknown.tap(1)
      const unknownToken = BigInt(`0x${randomBytes(32).toString('hex')}`)
      const shared = createTapAnnouncement(database)
      const taps = [
        known.resolved,
        twice.resolved,
        { ...verified.resolved, tapCounter: 2 },
        twice.resolved,
        { uid: toHex(unknown.uid), epoch: 0, tapCounter: 1, tokenId: unknownToken },
        { ...known.resolved, tapCounter: 9 },
      ]
      const counted = () =>
        database.query<{ verified: boolean; n: bigint }>(
          `select verified, sum(n)::bigint as n from product_total group by 1 order by 1`,
        )
      const before = await counted()
      const [ofKnown, ...answers] = await Promise.all(taps.map((tap) => shared(tap)))
      assert.deepEqual(
        [ofKnown, answers[0] !== answers[2], answers[1], answers[3], answers[4]],
        [true, true, true, true, false],
      )
      const tokens = [known, twice, verified].map(({ resolved }) => resolved.tokenId)
      assert.deepEqual(await Promise.all(tokens.map(verifiedOf)), [true, true, true])
      const events = await Promise.all([...tokens, unknownToken].map(eventsOf))
      assert.deepEqual(
        events.map(({ length }) => length),
        [1, 1, 2, 1],
      )
      const changes = (await counted()).map(({ n }, index) => n - (before[index]?.n ?? 0n))
      assert.deepEqual(changes, [-2n, 2n], 'two products became verified')
    })

    it('reads a few rows for a tap in tables that have grown since its plan was made', async () => {
      if (database.dialect === 'citus') return // there the statements are others
      const undone = database.transaction(async (sql) => {
        const ofGrown = { ...sql, dialect: database.dialect }
        const [ledger, announceGrown] = [createLedger({ sql: ofGrown }), createTapAnnouncement(ofGrown)]
        const present = async () => {
          const tap = world().tapOf(1)
          await ledger.consume(tap)
          await announceGrown({ uid: toHex(tap.uid), epoch: 0, tapCounter: 1, tokenId: 1n })
        }
        const readRows = async () => {
          const [row] = await sql.query<{ n: bigint }>(
            `select sum(pg_stat_get_xact_tuples_returned(oid))::bigint as n from pg_class where relkind in ('r', 'i') and relnamespace = 'public'::regnamespace`,
          )
          return Number(row?.n)
        }
        for (const table of ['tap', 'tag', 'asset_tap']) await sql.query(`delete from ${table}`)
        await present()
        const rows = `generate_series(1, 3000) n`
        const uid = `decode(lpad(to_hex(n), 14, '0'), 'hex')`
        await sql.query(`insert into tag (uid, batch_id, last_counter) select ${uid}, 'a', 1 from ${rows}`)
        await sql.query(
          `insert into tap (uid, epoch, counter, picc) select ${uid}, 0, 1, uuid_send(gen_random_uuid()) from ${rows}`,
        )
        const before = await readRows()
        await present()
        const read = (await readRows()) - before
        assert.ok(read < 100, `${read} rows`)
        throw new Error('undone')
      })
      await assert.rejects(undone, /undone/)
    })

    it('announces all or nothing', async () => {
      const { resolved } = await boundTap()
      const undone = database.transaction(async (sql) => {
        assert.equal(await createTapAnnouncement({ ...sql, dialect: database.dialect })(resolved), true)
        throw new Error('undone')
      })
      await assert.rejects(undone, /undone/)
      assert.deepEqual([await verifiedOf(resolved.tokenId), await eventsOf(resolved.tokenId)], [false, []])
      assert.equal(await announce(resolved), true)
    })
  })
}

describe('a ledger whose database is down', () => {
  it('throws INTERNAL, without a word of the tap', async () => {
    const down: LedgerSql = { dialect: 'pglite', query: () => Promise.reject(new Error('connection refused')) }
    const picc = newPicc()
    await assert.rejects(
      createLedger({ sql: down }).consume({ uid: newUid(), epoch: 0, counter: 1, picc, batchId: 'a' }),
      (error) => {
        assert.ok(error instanceof ServiceError)
        assert.equal(error.code, 'INTERNAL')
        return !error.message.includes(toHex(picc))
      },
    )
  })

  it('has a window from 0 to 3600 seconds', () => {
    const sql: LedgerSql = { dialect: 'pglite', query: () => Promise.resolve([]) }
    for (const windowSeconds of [-1, 3601, Number.NaN])
      assert.throws(() => createLedger({ sql, windowSeconds }), RangeError)
  })

  it('gives up after three lost races', async () => {
    let statements = 0
    const row = { last_counter: 0, picc: null, age: null, status: null, newer: false, fresh: false }
    const sql: LedgerSql = {
      dialect: 'pglite',
      query: <Row>() => {
        statements += 1
        return Promise.resolve([row] as Row[])
      },
    }
    const { outcome } = await createLedger({ sql }).consume({
      uid: newUid(),
      epoch: 0,
      counter: 1,
      picc: newPicc(),
      batchId: 'a',
    })
    assert.deepEqual([outcome, statements], ['REPLAY', 3])
  })
})
