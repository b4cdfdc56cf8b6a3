/** A chip changes its batch after a revocation (spec §4.4). No link counts twice, and no chip is stopped. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Database } from '../db/database.ts'
import { createReplayLedger, pruneTapsStatement } from './replay-ledger.ts'
import { tagStore } from './tag-registry.ts'
import { newUid } from '../../test/support/tap/tags.ts'
import { newPicc } from '../../test/support/tap/tapped-tag.ts'
import { testDatabases } from '../../test/support/database/databases.ts'

for (const { name, open, skip } of testDatabases())
  describe(`counters of batches that were revoked, on ${name}`, { skip }, () => {
    let database: Database
    let [batches, token] = [0, 10n ** 20n]
    before(async () => void (database = await open()))
    after(() => database.close())

    /** A new chip and some batches. The same counter of a batch is the same link. */
    async function chipOf(epochs: readonly number[]) {
      const [tags, ledger, uid] = [
        tagStore(database),
        createReplayLedger({ sql: database, windowSeconds: 0 }),
        newUid(),
      ]
      const ids = epochs.map(() => `batch-${(batches += 1)}`)
      for (const [at, id] of ids.entries()) await tags.putBatch({ id, epoch: epochs[at] ?? 0, settings: {} })
      const piccs = new Map<string, Uint8Array>()
      const one = (batch: number) => ({ batchId: ids[batch] ?? '', epoch: epochs[batch] ?? 0 })
      return {
        ids,
        uid,
        tap: async (batch: number, counter: number) => {
          const link = `${batch} ${counter}`
          const picc = piccs.get(link) ?? newPicc()
          piccs.set(link, picc)
          return (await ledger.consume({ ...one(batch), uid, counter, picc })).outcome
        },
        lastCounter: (batch: number) => tags.lastCounterOf(uid, { id: one(batch).batchId, epoch: one(batch).epoch }),
        setStatus: (batch: number, status: 'active' | 'revoked') => tags.setBatchStatus(one(batch).batchId, status),
        register: async (batch: number, baselineCounter = 0) =>
          (await tags.importTag({ ...one(batch), uid, baselineCounter, tokenId: (token += 1n) })).outcome,
        /** Deletes the taps that the last counter of the tag covers, as after the time of retention. */
        forget: () => database.query(pruneTapsStatement, ['2999-01-01', 1_000_000]),
      }
    }

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
        const { ids, uid, tap, setStatus, forget, register } = await chipOf([0, 0])
        assert.equal(await tap(0, 2), 'FRESH')
        await setStatus(0, 'revoked')
        assert.equal(await tap(1, 3), 'FRESH')
        await database.query('update tag set former_counters = null where uid = $1', [uid])
        await database.query('update tag_batch set taps_taken_back_at = now() where id = $1', [ids[0]])
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
