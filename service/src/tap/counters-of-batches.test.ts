/** A chip changes its batch after a revocation (spec §4.4). No link counts twice, and no chip is stopped. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Database } from '../db/database.ts'
import { migrate, migrationsTo, readMigrations } from '../db/migrate.ts'
import { createReplayLedger, pruneTapsStatement } from './replay-ledger.ts'
import { tagStore } from './tag-registry.ts'
import { newUid } from '../../test/support/tap/tags.ts'
import { newPicc } from '../../test/support/tap/tapped-tag.ts'
import { countLockWaits, testDatabases } from '../../test/support/database/databases.ts'
import { useOpened } from '../../test/support/opened.ts'
import { until } from '../../test/support/wait.ts'

let [batches, token] = [0, 10n ** 20n]

/** A new chip and some batches. The same counter of a batch is the same link. */
async function chipIn(database: Database, epochs: readonly number[]) {
  const [tags, ledger, uid] = [tagStore(database), createReplayLedger({ sql: database, windowSeconds: 0 }), newUid()]
  const ids = epochs.map(() => `batch-${(batches += 1)}`)
  const insertBatch = 'insert into tag_batch (id, epoch) values ($1, $2)'
  for (const [at, id] of ids.entries()) await database.query(insertBatch, [id, epochs[at] ?? 0])
  const piccs = new Map<string, Uint8Array>()
  const piccOf = (batch: number, counter: number) => {
    const link = `${batch} ${counter}`
    const picc = piccs.get(link) ?? newPicc()
    piccs.set(link, picc)
    return picc
  }
  const one = (batch: number) => ({ batchId: ids[batch] ?? '', epoch: epochs[batch] ?? 0 })
  return {
    uid,
    tap: async (batch: number, counter: number) => {
      return (await ledger.consume({ ...one(batch), uid, counter, picc: piccOf(batch, counter) })).outcome
    },
    /** A tap at a version before 0045, whose function the database still has. */
    tapBefore: async (batch: number, counter: number) => {
      const values = [[uid], [one(batch).epoch], [counter], [piccOf(batch, counter)], [one(batch).batchId]]
      const [row] = await database.query<{ fresh: boolean }>(
        `select fresh from accept_taps($1::bytea[], $2::int[], $3::int[], $4::bytea[], $5::text[], '{null}'::text[], '{t}'::boolean[], '{null}'::numeric[])`,
        values,
      )
      return row?.fresh === true ? 'FRESH' : 'REPLAY'
    },
    lastCounter: (batch: number) => tags.lastCounterOf(uid, { id: one(batch).batchId, epoch: one(batch).epoch }),
    setStatus: (batch: number, status: 'active' | 'revoked') => tags.setBatchStatus(one(batch).batchId, status),
    /** A revocation at a version before 0049, which knows no taps that are taken back. */
    revokeBefore: (batch: number) =>
      database.query(`update tag_batch set status = 'revoked', status_at = $2::text::timestamptz where id = $1`, [
        one(batch).batchId,
        new Date().toISOString(),
      ]),
    register: async (batch: number, baselineCounter = 0, registry = tags) =>
      (await registry.importTag({ ...one(batch), uid, baselineCounter, tokenId: (token += 1n) })).outcome,
    /** Deletes the taps that the last counter of the tag covers, as after the time of retention. */
    forget: () => database.query(pruneTapsStatement, ['2999-01-01', 1_000_000]),
  }
}

for (const { name, open, skip } of testDatabases())
  describe(`counters of batches that were revoked, on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const chipOf = (epochs: readonly number[]) => chipIn(database, epochs)

    it('do not stop the chips of another batch', async () => {
      for (const isRegistered of [false, true]) {
        const { tap, setStatus, register } = await chipOf([0, 0])
        assert.deepEqual([await tap(0, 0xffffff), await tap(1, 1)], ['FRESH', 'OTHER_BATCH'])
        await setStatus(0, 'revoked')
        if (isRegistered) assert.equal(await register(1, 2), 'registered')
        else assert.equal(await tap(1, 2), 'FRESH')
        assert.deepEqual([await tap(1, 2), await tap(1, 3), await tap(1, 3)], ['REPLAY', 'FRESH', 'REPLAY'])
      }
    })

    it('stay used up for their own batch, also when the taps are forgotten and the revocation is lifted', async () => {
      const { tap, setStatus, forget, register, lastCounter } = await chipOf([0, 0])
      for (const counter of [1, 2, 5]) assert.equal(await tap(0, counter), 'FRESH')
      await setStatus(0, 'revoked')
      await forget()
      assert.equal(await tap(1, 1), 'FRESH')
      await setStatus(1, 'revoked')
      await setStatus(0, 'active')
      await forget()
      assert.deepEqual([await lastCounter(0), await lastCounter(1)], [5, 1])
      for (const counter of [1, 2, 4, 5]) assert.equal(await tap(0, counter), 'REPLAY', `${counter}`)
      assert.deepEqual(
        [await tap(0, 6), await register(0), await tap(0, 5), await tap(0, 7)],
        ['FRESH', 'registered', 'REPLAY', 'FRESH'],
      )
    })

    it('stay used up in a row that an earlier version took over, which kept no former counters', async () => {
      for (const isRegistered of [false, true]) {
        const { uid, tap, setStatus, forget, register } = await chipOf([0, 0])
        assert.equal(await tap(0, 2), 'FRESH')
        await setStatus(0, 'revoked')
        assert.equal(await tap(1, 3), 'FRESH')
        await database.query('update tag set former_counters = null, own_counter = null where uid = $1', [uid])
        await setStatus(1, 'revoked')
        await setStatus(0, 'active')
        await forget()
        if (isRegistered) assert.equal(await register(0), 'registered')
        assert.deepEqual([await tap(0, 2), await tap(0, 4)], ['REPLAY', 'FRESH'])
      }
    })

    it('stay used up when the chip is registered in an earlier life, and in the later one again', async () => {
      const { tap, setStatus, register } = await chipOf([0, 1])
      for (const counter of [1, 2]) assert.equal(await tap(1, counter), 'FRESH')
      await setStatus(1, 'revoked')
      assert.equal(await register(0), 'registered')
      await setStatus(1, 'active')
      assert.equal(await register(1), 'registered')
      assert.deepEqual([await tap(1, 1), await tap(1, 2), await tap(1, 3)], ['REPLAY', 'REPLAY', 'FRESH'])
    })

    const oneAtATime = name === 'PGlite' && 'PGlite carries out one transaction after another'
    it('stay used up when the chip is registered in both lives at the same time', { skip: oneAtATime }, async () => {
      const { tap, setStatus, register } = await chipOf([0, 1])
      assert.equal(await tap(1, 1), 'FRESH')
      await setStatus(1, 'revoked')
      const registered: Promise<unknown>[] = []
      await database.transaction(async (sql) => {
        assert.equal(await register(0, 0, tagStore(sql)), 'registered')
        registered.push(register(1))
        await until(async () => (await countLockWaits(database)) > 0)
      })
      assert.deepEqual(await Promise.all(registered), ['registered'])
      await setStatus(1, 'active')
      assert.deepEqual([await tap(1, 1), await tap(1, 2)], ['REPLAY', 'FRESH'])
    })

    it(
      'stay used up when a later life begins while the chip is registered in an earlier one',
      { skip: oneAtATime },
      async () => {
        const { uid, tap, setStatus, register } = await chipOf([0, 1, 2])
        assert.equal(await tap(1, 1), 'FRESH')
        await setStatus(1, 'revoked')
        const registered: Promise<unknown>[] = []
        await database.transaction(async ({ query }) => {
          await query('select from tap where uid = $1 for update', [uid])
          registered.push(register(0))
          await until(async () => (await countLockWaits(database)) > 0)
          assert.equal(await tap(2, 3), 'FRESH')
        })
        assert.deepEqual(await Promise.all(registered), ['registered'])
        assert.equal(await register(2), 'registered')
        assert.deepEqual([await tap(2, 2), await tap(2, 3), await tap(2, 4)], ['REPLAY', 'REPLAY', 'FRESH'])
      },
    )

    it('are of one batch, and each used once, when taps come while batches are revoked and lifted', async () => {
      for (let round = 0; round < 10; round += 1) {
        const { tap, setStatus, uid } = await chipOf([0, 0])
        const fresh: string[] = []
        const tapAll = async (of: number) => {
          for (const counter of [1, 2, 3, 4, 5, 6])
            await Promise.all(
              [0, 1].map(async () => {
                const outcome = await tap(of, counter).catch(() => 'FAILED')
                if (outcome === 'FRESH') fresh.push(`${of} ${counter}`)
              }),
            )
        }
        const change = async () => {
          for (const [of, status] of [
            [0, 'revoked'],
            [0, 'active'],
            [1, 'revoked'],
            [1, 'active'],
          ] as const)
            await setStatus(of, status)
        }
        await Promise.all([tapAll(0), tapAll(1), change()])
        assert.equal(new Set(fresh).size, fresh.length)
        const taps = await database.query('select counter from tap where uid = $1', [uid])
        assert.equal(taps.length, fresh.length)
      }
    })
  })

for (const { name, open, skip } of testDatabases('none'))
  describe(
    `counters of batches at an older version, on ${name}`,
    { skip: name === 'Citus' ? 'it has the tables of today' : skip },
    () => {
      it('stay used up after the upgrade, where the row is of a batch that was revoked', async () => {
        await using database = await open()
        await migrate(database, migrationsTo(readMigrations(), '0045') ?? [])
        const chips = [await chipIn(database, [0, 0, 0]), await chipIn(database, [0, 0, 0])]
        for (const { tap, revokeBefore, forget } of chips) {
          assert.equal(await tap(0, 1), 'FRESH')
          await revokeBefore(0)
          assert.deepEqual([await tap(1, 9), await tap(1, 10), await tap(1, 5)], ['FRESH', 'FRESH', 'REPLAY'])
          await forget()
        }
        await migrate(database)
        for (const [at, { tap, setStatus, register, forget, lastCounter }] of chips.entries()) {
          assert.equal(await lastCounter(1), 10)
          if (at === 0) assert.equal(await register(1), 'registered')
          assert.deepEqual([await tap(1, 5), await tap(1, 10), await tap(1, 11)], ['REPLAY', 'REPLAY', 'FRESH'])
          if (at === 0) continue
          await setStatus(1, 'revoked')
          await forget()
          assert.equal(await lastCounter(2), 10, 'nor does the next batch know whose they were')
          assert.deepEqual([await tap(2, 10), await tap(2, 11)], ['REPLAY', 'FRESH'])
        }
      })

      it('stay used up at this version, while an older one serves beside it', async () => {
        await using database = await open()
        await migrate(database)
        const { tap, tapBefore, setStatus, forget, lastCounter } = await chipIn(database, [0, 0])
        assert.equal(await tap(0, 1), 'FRESH')
        await setStatus(0, 'revoked')
        assert.deepEqual([await lastCounter(1), await tapBefore(1, 12)], [0, 'FRESH'])
        await forget()
        assert.deepEqual([await tap(1, 11), await tap(1, 12), await tap(1, 13)], ['REPLAY', 'REPLAY', 'FRESH'])
        assert.deepEqual([await tapBefore(1, 14), await tap(1, 14), await tap(1, 15)], ['FRESH', 'REPLAY', 'FRESH'])
      })

      it('stay used up when that advanced them in a later life, which is deleted and comes again', async () => {
        await using database = await open()
        await migrate(database)
        const { tap, tapBefore, setStatus, register } = await chipIn(database, [0, 1, 1])
        assert.equal(await tap(1, 1), 'FRESH')
        await setStatus(1, 'revoked')
        assert.equal(await tapBefore(2, 7), 'FRESH')
        assert.deepEqual([await register(0), await register(2)], ['registered', 'registered'])
        assert.deepEqual([await tap(2, 7), await tap(2, 8)], ['REPLAY', 'FRESH'])
      })
    },
  )
