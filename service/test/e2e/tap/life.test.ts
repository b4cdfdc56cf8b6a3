/** The lives of a chip (spec §4.4): registry, ledger and verifier together, on both databases. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tagStore } from '../../../src/tap/tag-registry.ts'
import { createReplayLedger, createTapPruning } from '../../../src/tap/replay-ledger.ts'
import { createAuthenticate } from '../../../src/tap/sun/authenticate.ts'
import { createKeyRing } from '../../../src/tap/keys/batch.ts'
import { createTagHash } from '../../../src/tap/tag-hash.ts'
import { createVerifyTap } from '../../../src/tap/verify-tap.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { newUid, testBatch, testBatches, testTag } from '../../support/tap/tags.ts'
import { useOpened } from '../../support/opened.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`the lives of a chip on ${name}`, { skip }, () => {
    const database = useOpened(open)

    const [first, second] = [testBatch({ id: 'first', epoch: 0 }), testBatch({ id: 'second', epoch: 1 })]
    const other = testBatch({ id: 'other', epoch: 0 })
    const ofOtherBatch = { kind: 'counterfeit', reason: 'other_batch' }
    async function instance(...more: readonly ReturnType<typeof testBatch>[]) {
      const keys = createKeyRing(await testBatches(first, second, other, ...more))
      const ledger = createReplayLedger({ sql: database })
      return createVerifyTap({
        keys,
        authenticate: createAuthenticate({ keys }),
        ledger,
        tagHash: createTagHash({ scheme: 'keccak-uid' }),
      })
    }

    it('ends with the registration of the next one: no unused address of the old epoch verifies', async () => {
      const verifyTap = await instance()
      const uid = newUid()
      const before = await testTag(first, { uid })
      const [used, unused] = [before.next(), before.next()]
      assert.equal((await verifyTap(used)).kind, 'tapped')
      assert.deepEqual(await tagStore(database).importTag({ uid, epoch: 1, batchId: 'second' }), {
        outcome: 'registered',
        created: true,
      })
      assert.deepEqual(await verifyTap(unused), { kind: 'replayed' })
      assert.equal((await verifyTap(used)).kind, 'tapped', 'the window of a used tap goes on')
      const now = await verifyTap((await testTag(second, { uid })).next())
      assert.ok(now.kind === 'tapped' && now.epoch === 1 && now.tapCounter === 1)
    })

    it('ends also when the old epoch was never seen', async () => {
      const verifyTap = await instance()
      const uid = newUid()
      await tagStore(database).importTag({ uid, epoch: 1, batchId: 'second' })
      assert.deepEqual(await verifyTap((await testTag(first, { uid, counter: 4 })).next()), { kind: 'replayed' })
    })

    it('is of one batch: the keys of another one make no tap of a registered chip, and use up none', async () => {
      const verifyTap = await instance()
      const tags = tagStore(database)
      const uid = newUid()
      const chip = await testTag(first, { uid })
      await tags.importTag({ uid, epoch: 0, batchId: 'first' })
      for (const leaked of [second, other]) {
        const forged = await testTag(leaked, { uid, counter: 1_000 })
        assert.deepEqual(await verifyTap(forged.next()), { ...ofOtherBatch, batchId: leaked.id })
        assert.equal((await verifyTap(chip.next())).kind, 'tapped')
      }
      await tags.importTag({ uid, epoch: 1, batchId: 'second' })
      assert.equal((await verifyTap((await testTag(second, { uid })).next())).kind, 'tapped')
    })

    it('is of the batch that was tapped first where no program registered the chip', async () => {
      const verifyTap = await instance()
      const uid = newUid()
      const chip = await testTag(first, { uid })
      assert.equal((await verifyTap(chip.next())).kind, 'tapped')
      for (const leaked of [second, other]) {
        const forged = await testTag(leaked, { uid, counter: 1_000 })
        assert.deepEqual(await verifyTap(forged.next()), { ...ofOtherBatch, batchId: leaked.id })
        assert.equal((await verifyTap(chip.next())).kind, 'tapped')
      }
      assert.deepEqual(await database.query('select epoch, last_counter from tag where uid = $1', [uid]), [
        { epoch: 0, last_counter: 3 },
      ])
    })

    it('is of one batch also when taps with the keys of two come at the same time', async () => {
      const [here, there] = [await instance(), await instance()]
      for (let round = 0; round < 20; round++) {
        const uid = newUid()
        const [one, two] = [await testTag(first, { uid }), await testTag(other, { uid, counter: 5 })]
        const taps = await Promise.all([here(one.next()), there(two.next())])
        assert.deepEqual(taps.map(({ kind }) => kind).toSorted(), ['counterfeit', 'tapped'])
      }
    })

    it('is taken back from a leaked batch by its revocation: the chip verifies again, and can be registered', async () => {
      const tags = tagStore(database)
      for (const leaked of [testBatch({ id: 'leaked', epoch: 1 }), testBatch({ id: 'leaked-too', epoch: 0 })]) {
        const verifyTap = await instance(leaked)
        await tags.putBatch({ ...leaked, settings: {} })
        const uid = newUid()
        const [chip, forger] = [await testTag(first, { uid, counter: 5 }), await testTag(leaked, { uid, counter: 2 })]
        assert.equal((await verifyTap(forger.next())).kind, 'tapped', 'nothing says yet whose chip it is')
        assert.notEqual((await verifyTap(chip.next())).kind, 'tapped')
        assert.equal((await tags.importTag({ uid, epoch: 0, batchId: 'first' })).outcome, 'refused')

        await tags.setBatchStatus(leaked.id, 'revoked')
        assert.equal((await verifyTap(chip.next())).kind, 'tapped')
        assert.notEqual((await tags.tagOfUid(uid))?.epoch, 1)
        assert.equal((await tags.importTag({ uid, epoch: 0, batchId: 'first' })).outcome, 'registered')
        await tags.setBatchStatus(leaked.id, 'active')
        assert.deepEqual(await verifyTap(forger.next()), { ...ofOtherBatch, batchId: leaked.id })
        assert.equal((await verifyTap(chip.next())).kind, 'tapped')
        const rows = await database.query('select epoch, batch_id from tag where uid = $1', [uid])
        assert.deepEqual(rows, [{ epoch: 0, batch_id: 'first' }])
      }
    })

    it('is of the batch that taps it after the revocation of a leaked one, and of no third one', async () => {
      const tags = tagStore(database)
      const leaked = testBatch({ id: 'leaked-first', epoch: 0 })
      const verifyTap = await instance(leaked)
      await tags.putBatch({ ...leaked, settings: {} })
      const uid = newUid()
      const [chip, forger] = [await testTag(first, { uid, counter: 5 }), await testTag(leaked, { uid, counter: 2 })]
      assert.equal((await verifyTap(forger.next())).kind, 'tapped')
      await tags.setBatchStatus(leaked.id, 'revoked')
      assert.equal((await verifyTap(chip.next())).kind, 'tapped')
      for (const foreign of [second, other, leaked]) {
        if (foreign === leaked) await tags.setBatchStatus(leaked.id, 'active')
        const forged = await testTag(foreign, { uid, counter: 1_000 })
        assert.deepEqual(await verifyTap(forged.next()), { ...ofOtherBatch, batchId: foreign.id })
        assert.equal((await verifyTap(chip.next())).kind, 'tapped')
      }
      assert.deepEqual(await database.query('select epoch, batch_id, last_counter from tag where uid = $1', [uid]), [
        { epoch: 0, batch_id: 'first', last_counter: 9 },
      ])
    })

    it('starts above the counter that personalisation read', async () => {
      const verifyTap = await instance()
      const uid = newUid()
      const tag = await testTag(first, { uid })
      const readBack = [tag.next(), tag.next()]
      await tagStore(database).importTag({ uid, epoch: 0, batchId: 'first', baselineCounter: 2, tokenId: 7n })
      for (const tap of readBack) assert.deepEqual(await verifyTap(tap), { kind: 'replayed' })
      assert.equal((await verifyTap(tag.next())).kind, 'tapped')
    })

    it('stops on every instance at once when its batch is revoked', async () => {
      const instances = [await instance(), await instance()]
      const tag = await testTag(first)
      const tap = tag.next()
      for (const verifyTap of instances) assert.equal((await verifyTap(tap)).kind, 'tapped')
      const batches = tagStore(database)
      await batches.putBatch({ id: 'first', epoch: 0, settings: {} })
      await batches.setBatchStatus('first', 'revoked')
      for (const verifyTap of instances)
        assert.deepEqual(await verifyTap(tap), { kind: 'counterfeit', reason: 'revoked_batch', batchId: 'first' })
      await batches.setBatchStatus('first', 'retired')
      for (const verifyTap of instances) assert.equal((await verifyTap(tap)).kind, 'tapped')
    })

    it('stays a replay when the ledger has forgotten the tap', async () => {
      const verifyTap = await instance()
      const tag = await testTag(first)
      const tap = tag.next()
      await verifyTap(tap)
      await database.query(`update tap set first_seen = now() - interval '100 days' where uid = $1`, [tag.uid])
      await createTapPruning({ sql: database, days: 90 })()
      assert.deepEqual(await database.query('select from tap where uid = $1', [tag.uid]), [])
      assert.deepEqual(await verifyTap(tap), { kind: 'replayed' })
    })
  })
}
