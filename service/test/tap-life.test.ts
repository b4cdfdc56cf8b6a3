/** The lives of a chip (spec §4.4): registry, ledger and verifier together, on both databases. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Database } from '../src/store/database.ts'
import { migrate } from '../src/store/migrate.ts'
import { batchStore } from '../src/store/tags-batches.ts'
import { tagStore } from '../src/store/tags.ts'
import { tapStore } from '../src/store/taps.ts'
import { createAuthenticate } from '../src/tap/authenticate.ts'
import { createLedger } from '../src/tap/counter.ts'
import { createKeyRing } from '../src/tap/keys.ts'
import { createTagHash } from '../src/tap/tag-hash.ts'
import { createVerifyTap } from '../src/tap/verify-tap.ts'
import { testDatabases } from './_databases.ts'
import { newUid, testBatch, testBatches, testTag } from './_tags.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`the lives of a chip on ${name}`, { skip }, () => {
    let database: Database
    before(async () => {
      database = await open()
      await migrate(database)
    })
    after(() => database.close())

    const [first, second] = [testBatch({ id: 'first', epoch: 0 }), testBatch({ id: 'second', epoch: 1 })]
    async function instance() {
      const keys = createKeyRing(await testBatches(first, second))
      const ledger = createLedger({ sql: database })
      return createVerifyTap({
        keys,
        authenticate: createAuthenticate({ keys }),
        ledger,
        tagHash: createTagHash({ scheme: 'keccak-uid' }),
      })
    }

    it('ends with the registration of the next one: no unused address of the old life verifies', async () => {
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

    it('ends also when the old life was never seen', async () => {
      const verifyTap = await instance()
      const uid = newUid()
      await tagStore(database).importTag({ uid, epoch: 1, batchId: 'second' })
      assert.deepEqual(await verifyTap((await testTag(first, { uid, counter: 4 })).next()), { kind: 'replayed' })
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
      const batches = batchStore(database)
      await batches.putBatch({ id: 'first', epoch: 0, settings: {} })
      await batches.setBatchStatus('first', 'revoked')
      for (const verifyTap of instances)
        assert.deepEqual(await verifyTap(tap), { kind: 'counterfeit', reason: 'revoked_batch' })
      await batches.setBatchStatus('first', 'retired')
      for (const verifyTap of instances) assert.equal((await verifyTap(tap)).kind, 'tapped')
    })

    it('stays a replay when the ledger has forgotten the tap', async () => {
      const verifyTap = await instance()
      const tag = await testTag(first)
      const tap = tag.next()
      await verifyTap(tap)
      await database.query(`update tap set first_seen = first_seen - interval '100 days' where uid = $1`, [tag.uid])
      assert.equal(await tapStore(database).prune(), 1)
      assert.deepEqual(await verifyTap(tap), { kind: 'replayed' })
    })
  })
}
