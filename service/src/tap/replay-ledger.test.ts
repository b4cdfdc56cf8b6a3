/** The replay ledger (spec §4.4), on PGlite and on PostgreSQL, with a clock of its own. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ServiceError } from '../lib/errors.ts'
import { toHex } from './bytes.ts'
import type { Database } from '../db/database.ts'
import { type AnomalyKind, createReplayLedger, type LedgerAnswer, type Tap } from './replay-ledger.ts'
import { newUid } from '../../test/support/tap/tags.ts'
import { countLockWaits, testDatabases } from '../../test/support/database/databases.ts'
import { until } from '../../test/support/wait.ts'
import { newPicc, tappedTag } from '../../test/support/tap/tapped-tag.ts'
import { useOpened } from '../../test/support/opened.ts'

const answered = (outcome: LedgerAnswer['outcome'], anomalies: readonly AnomalyKind[], lastCounter: number) => ({
  outcome,
  anomalies,
  lastCounter,
  ageSeconds: 0,
  isAnnounced: false,
})

type LedgerSql = Pick<Database, 'query' | 'dialect'>

for (const { name, open, skip } of testDatabases()) {
  describe(`the tap ledger on ${name}`, { skip }, () => {
    const database = useOpened(open)

    const world = (options?: Parameters<typeof tappedTag>[1]) => tappedTag(database, options)

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

    it('takes no tap from the future, but for the seconds by which two clocks may differ', async () => {
      const { at, tap, tapOf } = world()
      await tap(1)
      at(-4)
      assert.equal(await tap(1), 'SAME_TAP')
      for (const second of [-6, -299, -86_400]) {
        at(second)
        assert.equal(await tap(1), 'REPLAY', `${second} s`)
        const restarted = createReplayLedger({
          sql: database,
          now: () => new Date(Date.parse('2026-01-01') + second * 1_000),
        })
        assert.equal((await restarted.consume(tapOf(1))).outcome, 'REPLAY', `${second} s, after a restart`)
      }
    })

    it('opens no window again when the clock of the database is set back', async () => {
      if (database.dialect === 'citus') return // its workers have clocks of their own
      const { at, tap } = world()
      await tap(1)
      at(250)
      assert.equal(await tap(2), 'FRESH')
      at(400)
      assert.deepEqual([await tap(1), await tap(2)], ['REPLAY', 'SAME_TAP'])
      at(200)
      assert.deepEqual([await tap(1), await tap(2)], ['REPLAY', 'REPLAY'])
      at(401)
      assert.deepEqual([await tap(4), await tap(4)], ['FRESH', 'SAME_TAP'])
      assert.deepEqual([await tap(1), await tap(2)], ['REPLAY', 'REPLAY'])
    })

    it('keeps the window of a tap that it accepted itself after the clock was set back', async () => {
      if (database.dialect === 'citus') return
      const { at, passed, tap, tapOf, openLedger } = world()
      const other = openLedger()
      for (const ledger of [{ consume: () => tap(1) }, other]) await ledger.consume(tapOf(1))
      at(86_400)
      await tap(2)
      await other.consume(tapOf(2))
      at(10)
      assert.deepEqual([await tap(1), await tap(2)], ['REPLAY', 'REPLAY'], 'known by then')
      assert.deepEqual([await tap(3), await tap(3)], ['FRESH', 'SAME_TAP'])
      assert.equal((await other.consume(tapOf(3))).outcome, 'REPLAY', 'accepted before or after that: nothing says')
      assert.equal(await tap(3, { picc: newPicc() }), 'REPLAY')
      passed(299)
      assert.equal(await tap(3), 'SAME_TAP')
      passed(300)
      assert.equal(await tap(3), 'REPLAY', 'by the clock of the process, while that of the database says otherwise')
      passed(0)
      at(310)
      assert.equal(await tap(3), 'REPLAY', 'by the clock of the database')
      at(-3_000)
      assert.deepEqual(
        [await tap(3), await tap(4), await tap(4)],
        ['REPLAY', 'FRESH', 'SAME_TAP'],
        'set back once more',
      )
      at(86_401)
      assert.deepEqual([await tap(2), await tap(3), await tap(4)], ['REPLAY', 'REPLAY', 'REPLAY'])
    })

    it('notices by the clock of the database that it was set back', async () => {
      if (database.dialect === 'citus') return
      let isSetBack = false
      const sql: LedgerSql = {
        dialect: database.dialect,
        query: async <Row>(...call: Parameters<LedgerSql['query']>) => {
          const rows = await database.query<Row & { clock: number; age: number | null }>(...call)
          return rows.map((row) => {
            assert.ok(Math.abs(row.clock * 1_000 - Date.now()) < 60_000)
            return isSetBack ? { ...row, clock: row.clock - 100, age: row.age && row.age - 100 } : row
          })
        },
      }
      const until: number[] = []
      const ledger = createReplayLedger({ sql, onSetBack: (at) => until.push(at) })
      const { tapOf, uid } = world()
      await ledger.consume(tapOf(1))
      await database.query(`update tap set first_seen = now() - interval '250 seconds' where uid = $1`, [uid])
      assert.equal((await ledger.consume(tapOf(1))).outcome, 'SAME_TAP')
      assert.deepEqual(until, [])
      isSetBack = true
      for (let n = 0; n < 2; n += 1) assert.equal((await ledger.consume(tapOf(1))).outcome, 'REPLAY')
      isSetBack = false
      assert.equal((await ledger.consume(tapOf(1))).outcome, 'REPLAY')
      assert.equal(until.length, 1, 'reported once')
      assert.ok(Math.abs((until[0] ?? 0) - Date.now()) < 60_000)
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
      assert.deepEqual(await answer(9), answered('REPLAY', ['unseen_lower'], 10))
      assert.deepEqual(await answer(10, { picc: newPicc() }), answered('REPLAY', ['other_picc'], 10))
      assert.equal(await tap(10), 'SAME_TAP')
    })

    it('reports gaps above 50 and counters that near their end, and takes them', async () => {
      const { answer } = world()
      assert.deepEqual((await answer(500)).anomalies, [], 'a first tap has no gap')
      assert.deepEqual((await answer(550)).anomalies, [])
      assert.deepEqual(await answer(601), answered('FRESH', ['gap'], 550))
      assert.deepEqual((await answer(0xff0000)).anomalies, ['gap', 'near_end'])
      assert.deepEqual(await answer(0xffffff), answered('FRESH', ['gap', 'near_end'], 0xff0000))
    })

    it('starts a new epoch at 1 and closes the old one', async () => {
      const { answer, openLedger, tap, tapOf } = world()
      await tap(100)
      assert.equal(await tap(1, { epoch: 1 }), 'FRESH')
      const closed = answered('REPLAY', ['old_epoch'], 100)
      assert.deepEqual([await answer(101), await openLedger().judge(tapOf(101))], [closed, closed])
      assert.equal(await tap(100), 'SAME_TAP')
      assert.equal(await tap(2, { epoch: 1 }), 'FRESH')
    })

    it('takes a tap of an earlier epoch where the later one is known by taps with revoked keys alone', async () => {
      const { tap } = world()
      const batchId = `batch-${randomBytes(4).toString('hex')}`
      const leaked = `${batchId}-leaked`
      await database.query('insert into tag_batch (id, epoch) values ($1, 0), ($2, 1)', [batchId, leaked])
      assert.equal(await tap(1, { epoch: 1, batchId: leaked }), 'FRESH')
      assert.equal(await tap(5, { batchId }), 'REPLAY')
      await database.query(`update tag_batch set status = 'revoked' where id = $1`, [leaked])
      assert.equal(await tap(5, { batchId }), 'FRESH')
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

    it('takes no counter that waits behind a higher one of another process', async () => {
      if (database.dialect !== 'postgres') return // PGlite has one connection, and a cluster a function of its own
      const { tapOf, tap, answer } = world()
      await tap(1)
      let low: Promise<string> | undefined
      await database.transaction(async (sql) => {
        const other = createReplayLedger({ sql: { ...sql, dialect: database.dialect } })
        assert.equal((await other.consume(tapOf(10))).outcome, 'FRESH')
        low = tap(5)
        await until(async () => (await countLockWaits(database)) > 0)
      })
      assert.deepEqual([await low, (await answer(10)).lastCounter], ['REPLAY', 10])
    })

    it('uses up no tap that is only judged', async () => {
      const { tapOf, tap } = world()
      const ledger = createReplayLedger({ sql: database })
      for (let n = 0; n < 2; n += 1) assert.equal((await ledger.judge(tapOf(1))).outcome, 'FRESH')
      assert.equal(await tap(1), 'FRESH')
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
      const ledger = createReplayLedger({ sql })
      const taps = Array.from({ length: 30 }, () => world().tapOf(1))
      const answers = await Promise.all(taps.map((tap) => ledger.consume(tap)))
      assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['FRESH']))
      if (database.dialect !== 'citus') return assert.equal(statements, 1)
      const [table] = await database.query<{ n: bigint }>(
        `select count(*) as n from pg_dist_shard where logicalrelid = 'tag'::regclass`,
      )
      assert.ok(statements <= 1 + Number(table?.n), `${statements} statements`)
    })

    it('takes the neighbours of a tap that the database refuses', async () => {
      const ledger = createReplayLedger({ sql: database })
      const tapOf = (uid: Uint8Array): Tap => ({ uid, epoch: 0, counter: 1, picc: newPicc(), batchId: 'test' })
      const uids = [newUid(), new Uint8Array(3), newUid()]
      const answers = await Promise.allSettled(uids.map((uid) => ledger.consume(tapOf(uid))))
      assert.deepEqual(
        answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.outcome : 'refused')),
        ['FRESH', 'refused', 'FRESH'],
      )
    })

    it('takes the neighbours of a tap whose tag is locked for too long', async () => {
      if (database.dialect !== 'postgres') return // the embedded one has no second transaction; a cluster has a statement for each shard
      const locked = world()
      await locked.tap(1)
      const sql: LedgerSql = {
        dialect: database.dialect,
        query: (text, values) =>
          database.transaction(async ({ query }) => {
            await query(`set local lock_timeout = '100ms'`)
            return query(text, values)
          }),
      }
      const ledger = createReplayLedger({ sql })
      await database.transaction(async ({ query }) => {
        await query('select from tag where uid = $1 for update', [locked.uid])
        const taps = [world().tapOf(1), locked.tapOf(2), world().tapOf(1)]
        const answers = await Promise.allSettled(taps.map((tap) => ledger.consume(tap)))
        assert.deepEqual(
          answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.outcome : 'locked')),
          ['FRESH', 'locked', 'FRESH'],
        )
      })
    })

    it('takes a tap that was accepted as fresh, although the next of its tag fails', async () => {
      if (database.dialect === 'citus') return // there one statement takes both
      const deadlock = Object.assign(new Error('deadlock detected'), { code: '40P01' })
      let statements = 0
      const sql: LedgerSql = {
        dialect: database.dialect,
        query: (...call) => {
          statements += 1
          return statements === 2 ? Promise.reject(deadlock) : database.query(...call)
        },
      }
      const ledger = createReplayLedger({ sql })
      const { tapOf } = world()
      const answers = await Promise.all([1, 2].map((counter) => ledger.consume(tapOf(counter))))
      assert.deepEqual([answers.map(({ outcome }) => outcome), statements], [['FRESH', 'FRESH'], 3])
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
      const ledger = createReplayLedger({ sql: database, windowSeconds: 300 })
      const { tapOf, uid } = world()
      assert.equal((await ledger.consume(tapOf(1))).outcome, 'FRESH')
      assert.equal((await ledger.consume(tapOf(1))).outcome, 'SAME_TAP')
      await database.query(`update tap set first_seen = now() - interval '301 seconds' where uid = $1`, [uid])
      assert.equal((await ledger.consume(tapOf(1))).outcome, 'REPLAY')
    })
  })
}

describe('a ledger whose database is down', () => {
  it('throws INTERNAL, without a word of the tap', async () => {
    const down: LedgerSql = { dialect: 'pglite', query: () => Promise.reject(new Error('connection refused')) }
    const picc = newPicc()
    await assert.rejects(
      createReplayLedger({ sql: down }).consume({ uid: newUid(), epoch: 0, counter: 1, picc, batchId: 'a' }),
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
      assert.throws(() => createReplayLedger({ sql, windowSeconds }), RangeError)
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
    const { outcome } = await createReplayLedger({ sql }).consume({
      uid: newUid(),
      epoch: 0,
      counter: 1,
      picc: newPicc(),
      batchId: 'a',
    })
    assert.deepEqual([outcome, statements], ['REPLAY', 3])
  })
})
