/** Instances have a key folder each and one database, which decides whose keys are those of a batch (decisions 0006). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import type { Database } from '../../db/database.ts'
import { migrate, migrationsTo, readMigrations, undoMigration } from '../../db/migrate.ts'
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import { databaseUnavailable } from '../../lib/errors.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { testBatch, testTag } from '../../../test/support/tap/tags.ts'
import { heldAnswers } from '../../../test/support/held-answer.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { createReplayLedger } from '../replay-ledger.ts'
import { createAuthenticate } from '../sun/authenticate.ts'
import { createTagHash } from '../tag-hash.ts'
import { batchBrands, tagStore } from '../tag-registry.ts'
import { createVerifyTap } from '../verify-tap.ts'
import { type BatchRecord, keyFingerprint, publicSettings } from './batch.ts'
import { writeKeyFile } from './key-file.ts'
import { sharedSettings } from './shared.ts'
import { openTagKeyStore, tagKeyFile } from './store.ts'

const keyFile = { kek: Uint8Array.from(randomBytes(32)), demo: true }

describe('the keys of a batch on several instances', () => {
  const database = useOpened(() => openEmptyPglite('migrated'))

  let instances = 0
  /** An instance with a key folder, by default of its own. `answer` gives what a tap gets there. */
  async function instance(folder = testFolder(), sql = database) {
    const shared = tagStore(sql)
    const store = await openTagKeyStore({ folder, keyFile, shared, readingMs: 0 })
    const { keys, missing } = store
    const authenticate = createAuthenticate({ keys })
    const ledger = createReplayLedger({ sql })
    const verifyTap = createVerifyTap({
      keys,
      missing,
      authenticate,
      ledger,
      tagHash: createTagHash({ scheme: 'keccak-uid' }),
    })
    // The reason of a counterfeit is chance: a wrong key decrypts one tap of 85 to a PICC block.
    const answer = async (tap: { picc: string; cmac: string }) => (await verifyTap(tap)).kind
    return { folder, store, answer }
  }
  const copied = (from: { folder: string }, to: { folder: string }) =>
    copyFile(tagKeyFile(from.folder), tagKeyFile(to.folder))
  const copyOf = (batch: BatchRecord) => ({
    ...batch,
    fileMaster: batch.fileMaster.slice(),
    metaKey: batch.metaKey?.slice() ?? assert.fail(),
  })
  const newId = () => `batch-${(instances += 1)}`
  /** A batch of two instances, and others of the first instance alone are revoked, so that nothing else is missing. */
  async function pair() {
    await database.query(`update tag_batch set status = 'revoked'`)
    const id = newId()
    const [one, other] = [await instance(), await instance()]
    const former = testBatch({ id })
    const tag = await testTag(copyOf(former))
    assert.ok((await one.store.add(copyOf(former))).ok)
    await copied(one, other)
    await other.store.reload()
    assert.deepEqual([await other.answer(tag.next()), await one.answer(tag.next())], ['tapped', 'tapped'])
    return { id, one, other, former, tag }
  }

  it('do not make a tap counterfeit while the database cannot say whether a batch has others', async () => {
    const { one, other } = await pair()
    const away = { ...database, query: () => Promise.reject(databaseUnavailable(new Error('The connection is lost.'))) }
    let sql: Database = database
    const cut = await instance(other.folder, { ...database, query: (...given) => sql.query(...given) })
    sql = away
    const made = testBatch({ id: newId() })
    const tag = await testTag(copyOf(made))
    assert.ok((await one.store.add(made)).ok)
    await assert.rejects(cut.answer(tag.next()), { code: 'DATABASE_UNAVAILABLE' }, 'a tap that no key here fits')
    await assert.rejects(cut.answer({ picc: 'ab'.repeat(16), cmac: 'ab'.repeat(8) }), { code: 'DATABASE_UNAVAILABLE' })
    sql = database
    assert.deepEqual([await cut.answer(tag.next()), await cut.store.missing()], ['not_configured', [made.id]])
  })

  it('are no longer accepted by any of them once one has others', async () => {
    const { id, one, other, tag } = await pair()
    const next = testBatch({ id })
    const nextTag = await testTag(copyOf(next))
    assert.ok((await one.store.rekey(next)).ok)
    assert.deepEqual([await one.answer(tag.next()), await one.answer(nextTag.next())], ['counterfeit', 'tapped'])
    for (const stale of [other, await instance(other.folder)]) {
      assert.deepEqual(await stale.store.missing(), [id])
      for (const each of [tag, nextTag]) assert.equal(await stale.answer(each.next()), 'not_configured')
    }
    assert.deepEqual(await one.store.missing(), [], 'the start of another one changed nothing')
    await copied(one, other)
    await other.store.reload()
    assert.deepEqual([await other.answer(tag.next()), await other.answer(nextTag.next())], ['counterfeit', 'tapped'])
  })

  it('are no longer accepted by a tap that joins a reading of before', async () => {
    const { id, one, other } = await pair()
    const { ask, hold } = heldAnswers<Parameters<Database['query']>, never[]>((...given) => database.query(...given))
    const slow = await instance(other.folder, { ...database, query: ask })
    const answer = hold()
    const before = slow.store.missing()
    const release = await answer
    assert.ok((await one.store.rekey(testBatch({ id }))).ok)
    const joined = slow.store.missing()
    release()
    assert.deepEqual(await joined, [id])
    await before
  })

  it('are those of the instance whose operator says so', async () => {
    const { id, one, other, former, tag } = await pair()
    assert.ok((await one.store.rekey(testBatch({ id }))).ok)
    assert.equal(await other.answer(tag.next()), 'not_configured')
    assert.ok((await other.store.rekey(copyOf(former))).ok)
    assert.deepEqual([await other.answer(tag.next()), await one.answer(tag.next())], ['tapped', 'not_configured'])
  })

  it('change in the epoch of the database only', async () => {
    const { id, one, tag } = await pair()
    const error = `Batch ${id} has epoch 0 in the database, and 1 here.`
    assert.deepEqual(await one.store.rekey(testBatch({ id, epoch: 1 })), { ok: false, error })
    assert.equal(await one.answer(tag.next()), 'tapped')
  })

  it('that an instance lacks make it no judge of other taps, until the batch is revoked', async () => {
    const { one, other } = await pair()
    const fresh = testBatch({ id: newId() })
    const [tag, foreign] = [await testTag(copyOf(fresh)), await testTag(testBatch({ id: 'foreign' }))]
    assert.ok((await one.store.add(fresh)).ok)
    assert.deepEqual([await other.store.missing(), await other.answer(tag.next())], [[fresh.id], 'not_configured'])
    assert.equal(await other.answer(foreign.next()), 'not_configured')
    assert.deepEqual([await one.answer(tag.next()), await one.answer(foreign.next())], ['tapped', 'counterfeit'])
    await tagStore(database).setBatchStatus(fresh.id, 'revoked')
    assert.equal(await other.answer(foreign.next()), 'counterfeit')
  })

  it('are not compared where no fingerprint is in the database, or the batch is not', async () => {
    const { id, one, other, tag } = await pair()
    await database.query(`update tag_batch set settings = settings - 'keys', kept_settings = null where id = $1`, [id])
    await writeKeyFile(tagKeyFile(one.folder), [testBatch({ id })], keyFile)
    await one.store.reload()
    assert.deepEqual([await one.answer(tag.next()), await other.answer(tag.next())], ['counterfeit', 'tapped'])
    const restarted = await instance(one.folder)
    assert.deepEqual([await restarted.store.missing(), await other.store.missing()], [[], []], 'a start writes none')
    await database.query('delete from tag_batch where id = $1', [id])
    assert.equal(await other.answer(tag.next()), 'tapped')
  })

  it('stay, with their brands, when a version without fingerprints writes the settings anew at its start', async () => {
    await using upgraded = await openEmptyPglite('none')
    await migrate(upgraded, migrationsTo(readMigrations(), '0057') ?? [])
    const [id, taken, tags] = [newId(), newId(), tagStore(upgraded)]
    const [former, next, last] = [testBatch({ id }), testBatch({ id }), testBatch({ id })]
    const settings = sharedSettings(next, await keyFingerprint(next), [await keyFingerprint(former)])
    const branded = JSON.stringify({ ...settings, brands: ['A'] })
    await upgraded.query('insert into tag_batch (id, epoch, settings) values ($1, 0, $2::jsonb)', [id, branded])
    await migrate(upgraded)

    const [tag, nextTag, lastTag] = await Promise.all([former, next, last].map((batch) => testTag(copyOf(batch))))
    const [stale, newest] = [await instance(testFolder(), upgraded), await instance(testFolder(), upgraded)]
    await writeKeyFile(tagKeyFile(stale.folder), [former], keyFile)
    await writeKeyFile(tagKeyFile(newest.folder), [next], keyFile)
    const startOfBefore = () =>
      upgraded.query(
        `insert into tag_batch as b (id, epoch, status, settings) values ($1, 0, 'active', $2::jsonb)
         on conflict (id) do update set settings = excluded.settings where b.epoch = excluded.epoch`,
        [id, JSON.stringify(publicSettings(former))],
      )
    for (let starts = 0; starts < 2; starts += 1) {
      await startOfBefore()
      for (const each of [stale, newest]) await each.store.reload()
      assert.equal(await stale.answer(tag?.next() ?? assert.fail()), 'not_configured')
      assert.equal(await newest.answer(nextTag?.next() ?? assert.fail()), 'tapped')
      assert.equal(
        (await (await instance(testFolder(), upgraded)).store.add({ ...copyOf(former), id: taken })).ok,
        false,
      )
      assert.deepEqual(batchBrands((await tags.batch(id))?.settings), ['A'])
    }

    // The version before has fingerprints in the settings alone.
    const ofBefore = JSON.stringify(sharedSettings(last, await keyFingerprint(last), [await keyFingerprint(next)]))
    await upgraded.query('update tag_batch set settings = $2::jsonb where id = $1', [id, ofBefore])
    await writeKeyFile(tagKeyFile(stale.folder), [last], keyFile)
    await stale.store.reload()
    assert.equal(await newest.answer(nextTag?.next() ?? assert.fail()), 'not_configured')
    assert.equal(await stale.answer(lastTag?.next() ?? assert.fail()), 'tapped')
    await instance(stale.folder, upgraded)
    await startOfBefore()
    assert.equal(await newest.answer(nextTag?.next() ?? assert.fail()), 'not_configured')
    assert.equal(await stale.answer(lastTag?.next() ?? assert.fail()), 'tapped')
    const { settings: known } = (await tags.batch(id)) ?? assert.fail()
    for (const { undo = '', ...added } of readMigrations().toReversed())
      if (added.name > '0058') await undoMigration(upgraded, { ...added, undo })
    const [row] = await upgraded.query<{ settings: string }>('select settings::text from tag_batch')
    assert.deepEqual(JSON.parse(row?.settings ?? ''), known, 'nor does the undo lose them')
  })

  it('keep the brands of a batch that the database did not get when it was made', async () => {
    const [id, folder, tags] = [newId(), testFolder(), tagStore(database)]
    const query: Database['query'] = (text, ...rest) =>
      text.includes('INTO tag_batch')
        ? Promise.reject(databaseUnavailable(new Error('The connection is lost.')))
        : database.query(text, ...rest)
    const brands = async () => batchBrands((await tags.batch(id))?.settings)
    const cut = await instance(folder, { ...database, query })
    await assert.rejects(cut.store.add(testBatch({ id }), ['A']), { code: 'DATABASE_UNAVAILABLE' })
    const { store } = await instance(folder)
    assert.deepEqual(await brands(), ['A'])

    await tags.setBatchBrands(id, null)
    assert.ok((await store.rekey(testBatch({ id }))).ok)
    assert.equal(await brands(), null, 'other keys change no brands')
    await database.query('delete from tag_batch where id = $1', [id])
    await instance(folder)
    assert.deepEqual(await brands(), ['A'], 'a new database takes them from the file')

    const keys = await keyFingerprint(store.record(id) ?? assert.fail())
    for (const changed of [['B', 'C'], null]) {
      await tags.setBatchBrands(id, changed)
      await store.writeBrands(id)
      assert.equal(await keyFingerprint(store.record(id) ?? assert.fail()), keys)
      await database.query('delete from tag_batch where id = $1', [id])
      await instance(folder)
      assert.deepEqual(await brands(), changed, 'the file has those of now')
    }
  })

  it('are others when the epoch or the input of the MAC is another', async () => {
    for (const change of [{ epoch: 1 }, { macInput: 'picc' as const }]) {
      const { id, other, former, tag } = await pair()
      await writeKeyFile(tagKeyFile(other.folder), [{ ...former, ...change }], keyFile)
      await other.store.reload()
      assert.deepEqual([await other.store.missing(), await other.answer(tag.next())], [[id], 'not_configured'])
    }
  })

  it('are of one batch for ever, on all instances', async () => {
    const { id, one, other, former } = await pair()
    const [renamed, third] = [{ ...copyOf(former), id: newId() }, await instance()]
    const sentence = new RegExp(`^Batch ${id} has these keys, or had them`)
    const refused = async (made: ReturnType<typeof third.store.add>) => {
      const answer = await made
      assert.match(answer.ok ? '' : answer.error, sentence)
    }
    await refused(third.store.add(copyOf(renamed)))
    assert.ok((await one.store.rekey(testBatch({ id }))).ok)
    await refused(third.store.add(copyOf(renamed)))
    assert.ok((await third.store.add(testBatch({ id: renamed.id }))).ok)
    await refused(third.store.rekey(copyOf(renamed)))
    const copy = { ...copyOf(former), id: newId() }
    await writeKeyFile(tagKeyFile(other.folder), [copy], keyFile)
    await other.store.reload()
    assert.deepEqual(await other.store.missing(), [id, renamed.id, copy.id], 'nor from a file that was copied')
  })

  it('do not count where the database holds batches for demonstrations only', async () => {
    const { id } = await pair()
    const production = { folder: testFolder(), keyFile: { ...keyFile, demo: false }, shared: tagStore(database) }
    assert.deepEqual(await (await openTagKeyStore(production)).missing(), [])
    const demo = await openTagKeyStore({ ...production, keyFile })
    assert.deepEqual(await demo.missing(), [id])
    const gateway = await openTagKeyStore({ ...production, keyFile: null })
    assert.deepEqual(await gateway.missing(), [], 'no verifier')
  })
})
