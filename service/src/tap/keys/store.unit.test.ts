import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { embeddedBatch, importedBatch, newBatch, publicSettings, type BatchRecord, type BatchStatus } from './batch.ts'
import { createQueue } from '../../lib/async/concurrency.ts'
import { seal } from '../../lib/sealed/file.ts'
import { toHex } from '../bytes.ts'
import { KeyFileError, readKeyFile, writeKeyFile } from './key-file.ts'
import { createStation } from './station.ts'
import { batchBrands } from '../tag-registry.ts'
import type { SharedBatch, SharedBatches } from './shared.ts'
import { openTagKeyStore, type TagKeyStore } from './store.ts'
import { isPublishedKey } from './published.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { batchInUse, newUid, testBatch, testTag, verifier } from '../../../test/support/tap/tags.ts'

const folder = testFolder()
const kek = Uint8Array.from(randomBytes(32))
const fails = (pattern: RegExp) => (error: unknown) => error instanceof KeyFileError && pattern.test(error.message)

const stationKek = Uint8Array.from(randomBytes(32))
/** The batches of a database, of which nothing is kept but what a test has set. */
const statuses = new Map<string, BatchStatus>()
const shared = {
  putBatch: async () => true,
  batches: async () => [...statuses].map(([id, status]) => ({ id, epoch: 0, status, settings: {} })),
}

describe('application masters', () => {
  it('are in a file of their own, which the verifier cannot take for its keys', async () => {
    const path = join(folder, 'station', 'station.keys')
    const station = createStation({ path, kek: stationKek, former: null })
    assert.equal(await station.appMaster('a'), undefined)
    const made = newBatch({ id: 'a' })
    assert.ok(made)
    await station.add('a', made.appMaster)
    assert.deepEqual((await station.appMaster('a'))?.secret?.(), made.appMaster)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.ok(!readFileSync(path, 'utf8').toUpperCase().includes(toHex(made.appMaster)))
    await assert.rejects(readKeyFile(path, { kek: stationKek }), fails(/damaged/))
    const other = createStation({ path, kek, former: null })
    await assert.rejects(other.appMaster('a'), fails(/another STATION_KEK/))
    await assert.rejects(other.add('b', made.appMaster), fails(/another STATION_KEK/))
    const both = createStation({ path, kek, previousKek: stationKek, former: null })
    assert.deepEqual((await both.appMaster('a'))?.secret?.(), made.appMaster)
    assert.deepEqual(
      [await other.appMaster('a').catch(() => null), await both.reseal(), await both.reseal()],
      [null, [path], []],
    )
    assert.deepEqual((await other.appMaster('a'))?.secret?.(), made.appMaster)
    await assert.rejects(station.appMaster('a'), fails(/another STATION_KEK/))
  })

  it('are neither made nor read on a verifier, which verifies all the same', async () => {
    const dir = testFolder()
    const path = join(dir, 'station.keys')
    const open = (key: Uint8Array | null) =>
      openTagKeyStore({
        folder: dir,
        keyFile: { kek },
        shared,
        station: createStation({ path, kek: key, former: null }),
      })
    const refused = await (await open(null)).create({ id: 'a' })
    assert.match(refused.ok ? '' : refused.error, /^STATION_KEK is not set/)
    assert.ok((await (await open(stationKek)).create({ id: 'a' })).ok)
    const verifier = await open(null)
    assert.equal(verifier.keys.candidates().length, 1)
    assert.equal(await verifier.appMaster('a'), undefined)
    assert.match(readFileSync(join(dir, 'tag-keys.json'), 'utf8'), /"tag-keys"/)
  })

  it('stay those of the chips when a batch of their name is made again, as after a restore from before it', async () => {
    const path = join(testFolder(), 'station.keys')
    const made = async () => {
      const station = createStation({ path, kek: stationKek, former: null })
      const store = await openTagKeyStore({ folder: testFolder(), keyFile: { kek }, shared, station })
      assert.ok((await store.create({ id: 'a' })).ok)
      return (await station.appMaster('a'))?.secret?.()
    }
    assert.deepEqual(await made(), await made())
  })

  it('of an earlier version move away from the tag keys', async () => {
    const dir = testFolder()
    const master = Uint8Array.from(randomBytes(16))
    const former = { path: join(dir, 'tag-app-keys.json'), keks: { kek } }
    writeFileSync(former.path, seal('tag-app-keys', { a: toHex(master) }, kek))
    const path = join(dir, 'station', 'station.keys')
    const verifier = createStation({ path, kek: null, former })
    assert.equal(await verifier.adopt(), 0)
    assert.deepEqual((await verifier.appMaster('a'))?.secret?.(), master)
    const station = createStation({ path, kek: stationKek, former })
    assert.deepEqual([await station.adopt(), await station.adopt()], [1, 0])
    assert.deepEqual((await station.appMaster('a'))?.secret?.(), master)
    assert.deepEqual(readdirSync(dir), ['station'])
    writeFileSync(former.path, seal('tag-app-keys', { a: '0b'.repeat(16) }, kek))
    await station.adopt()
    assert.deepEqual((await station.appMaster('a'))?.secret?.(), master, 'the newer file counts')
    writeFileSync(path, seal('tag-app-keys', { a: '0b'.repeat(15) }, stationKek))
    await assert.rejects(station.appMaster('a'), fails(/a key that is not legal/))
  })
})

describe('a new batch', () => {
  it('has three independent random keys and shows none in its settings', () => {
    const made = newBatch({ id: 'a', epoch: 4 })
    assert.ok(made)
    const keys = [made.record.metaKey ?? new Uint8Array(0), made.record.fileMaster, made.appMaster].map(toHex)
    assert.equal(new Set(keys).size, 3)
    const shown = JSON.stringify(publicSettings(made.record))
    assert.match(shown, /"epoch":4/)
    for (const key of keys) assert.ok(!shown.toUpperCase().includes(key))
    assert.ok(![made.record.fileMaster, made.appMaster].some(isPublishedKey))
  })

  it('is null for settings that are not legal', () => {
    for (const options of [
      { id: '' },
      { id: 'x/y' },
      { id: 'a', epoch: 0.5 },
      { id: 'a', systemId: 'seventeen letters' },
    ])
      assert.equal(newBatch(options), null)
  })

  it('of existing keys has a meta key exactly where its scheme does not derive it', () => {
    const key = () => Uint8Array.from(randomBytes(16))
    const made = (derivation: 'direct' | 'tagit-sdm', metaKey?: Uint8Array) =>
      importedBatch({
        id: 'a',
        scheme: { derivation, derivationVersion: 0 },
        master: key(),
        ...(metaKey && { metaKey }),
      })
    assert.deepEqual([made('direct'), made('tagit-sdm', key())], [null, null])
    assert.ok(made('direct', key()) && made('tagit-sdm'))
  })

  it('has one name, also where another process has made a batch of that name meanwhile', async () => {
    const dir = testFolder()
    const alone = createQueue() // the lock of the database, for the processes of one folder
    const open = () => openTagKeyStore({ folder: dir, keyFile: { kek, demo: true }, shared, alone })
    const [one, other] = [await open(), await open()]
    const made = await Promise.all([one, other].map((store) => store.create({ id: 'a', demo: true })))
    assert.deepEqual(
      made.flatMap((result) => (result.ok ? [] : [result.error])),
      ['A batch named a exists already: choose another name.'],
    )
    await Promise.all([one.reload(), other.reload()])
    assert.deepEqual(one.record('a'), other.record('a'))
    assert.equal((await readKeyFile(join(dir, 'tag-keys.json'), { kek, demo: true })).length, 1)
  })

  it('is not made where its application keys have no place', async () => {
    const store = await openTagKeyStore({ folder: testFolder(), keyFile: { kek }, shared })
    const error = 'The application keys of a batch have no place here.'
    assert.deepEqual(await store.create({ id: 'a' }), { ok: false, error })
    assert.equal(store.record('a'), undefined)
    const verifier = await openTagKeyStore({ folder: testFolder(), keyFile: null, shared })
    const made = await verifier.create({ id: 'a' })
    assert.match(made.ok ? '' : made.error, /^TAG_KEK is not set/)
  })

  it('whose keys are in a token is not opened without the token', async () => {
    const dir = testFolder()
    await writeKeyFile(join(dir, 'tag-keys.json'), [{ ...batchInUse('a'), fileMaster: null }], { kek })
    await assert.rejects(
      openTagKeyStore({ folder: dir, keyFile: { kek }, shared }),
      fails(/^The keys of batch a are in a PKCS#11 token/),
    )
  })

  it('of a scheme with one master derives metaRead from it', async () => {
    const { metaKey: _none, ...record } = batchInUse('a', { derivation: 'tagit-sdm' })
    const batch = await embeddedBatch(record)
    const block = new Uint8Array(16)
    assert.deepEqual(await batch.meta.ecbDecrypt(block), await batch.fileMaster.ecbDecrypt(block))
    await assert.rejects(embeddedBatch({ ...record, derivation: 'direct' }), RangeError)
  })
})

describe('keys that are replaced while the verifier runs', () => {
  const zero = '0'.repeat(32)

  async function openStore(batches: SharedBatches = shared) {
    const dir = testFolder()
    const store = await openTagKeyStore({ folder: dir, keyFile: { kek, demo: true }, shared: batches })
    const verify = verifier(store.keys)
    const taps = async (batch: BatchRecord, uid: Uint8Array) => {
      const tag = await testTag(batch, { uid })
      return async () => (await verify(tag.next())).genuine
    }
    return { store, taps, path: join(dir, 'tag-keys.json') }
  }

  const sent = (store: TagKeyStore) => store.keys.candidates().map(({ id, fileMaster }) => ({ id, fileMaster }))

  it('hold from the next tap on, for a tag that was seen under the former ones', async () => {
    for (const change of ['by another process', 'by rekey']) {
      const { store, taps, path } = await openStore()
      const uid = newUid()
      const [former, next] = [testBatch({ id: 'a' }), testBatch({ id: 'a' })]
      await store.add(former)
      const [tapFormer, tapNext] = [await taps(former, uid), await taps(next, uid)]
      assert.deepEqual([await tapFormer(), await tapNext()], [true, false])
      if (change === 'by rekey') await store.rekey(next)
      else {
        await writeKeyFile(path, [next], { kek, demo: true })
        await store.reload()
      }
      assert.deepEqual([await tapFormer(), await tapNext()], [false, true], change)
    }
  })

  it('are overwritten, and so is a second copy of keys that stay', async () => {
    const { store, path } = await openStore()
    const [former, next, other] = [testBatch({ id: 'a' }), testBatch({ id: 'a' }), testBatch({ id: 'b' })]
    await store.add(former)
    await store.add(other)
    const before = sent(store)
    const copy = store.record('a')
    await store.rekey(next)
    assert.deepEqual(
      [former.fileMaster, former.metaKey].map((key) => key && toHex(key)),
      [zero, zero],
    )
    assert.notEqual(copy && toHex(copy.fileMaster ?? new Uint8Array()), zero)
    const after = sent(store)
    const keyOf = (rows: typeof before, id: string) => rows.find((row) => row.id === id)?.fileMaster
    assert.notEqual(keyOf(after, 'a'), keyOf(before, 'a'))
    assert.equal(keyOf(after, 'b'), keyOf(before, 'b'), 'what was derived from it stays')
    statuses.set('b', 'retired')
    await store.writeStatus('b')
    await writeKeyFile(path, [next], { kek, demo: true })
    await store.reload()
    assert.equal(toHex(other.fileMaster), zero)
    assert.notEqual(toHex(next.fileMaster), zero)
    assert.deepEqual(sent(store), sent(store).slice(0, 1))
  })

  it('have the status of the database in their file, in whatever order changes of it are repeated there', async () => {
    const { store, path } = await openStore()
    await store.add(testBatch({ id: 'raced' }))
    statuses.set('raced', 'revoked')
    const inFile = async () => (await readKeyFile(path, { kek, demo: true })).map(({ status }) => status)
    await store.writeStatus('raced')
    assert.deepEqual(await inFile(), ['revoked'])
    statuses.set('raced', 'retired')
    await Promise.all([store.writeStatus('raced'), store.writeStatus('raced')])
    assert.deepEqual(await inFile(), ['retired'])
    statuses.set('raced', 'revoked')
    const sealed = readFileSync(path, 'utf8')
    writeFileSync(path, seal('tag-keys', { batches: [] }, stationKek))
    await assert.rejects(store.writeStatus('raced'), fails(/^Batch raced is revoked, but not in the key file/))
    writeFileSync(path, sealed)
    await store.writeStatus('raced')
    assert.deepEqual(await inFile(), ['revoked'])
  })

  it('are reported at a start where they are revoked in the file and active in a restored database', async () => {
    const { store, path } = await openStore()
    for (const id of ['revoked', 'lifted', 'retired', 'whole']) await store.add(testBatch({ id }))
    for (const id of ['revoked', 'lifted', 'retired']) {
      statuses.set(id, 'revoked')
      await store.writeStatus(id)
    }
    statuses.set('lifted', 'active')
    statuses.set('retired', 'retired') // as after --lift-revocation on another machine
    const reported: (readonly string[])[] = []
    const options = { folder: dirname(path), keyFile: { kek, demo: true }, shared }
    await openTagKeyStore({ ...options, onLifted: (ids) => reported.push(ids) })
    assert.deepEqual(reported, [['lifted']])
  })

  it('come into the database with the next reload, where that did not answer when the batch was made', async () => {
    const batches = new Map<string, SharedBatch>()
    let answers = false
    const fallible: SharedBatches = {
      async putBatch(batch) {
        if (!answers) throw new Error('it fails over')
        batches.set(batch.id, batch)
        return true
      },
      batches: async () => [...batches.values()],
    }
    const { store } = await openStore(fallible)
    await assert.rejects(store.add(testBatch({ id: 'half' })), /fails over/)
    await assert.rejects(store.reload(), /fails over/)
    answers = true
    await store.reload()
    const [made, ...more] = batches.values()
    assert.deepEqual([made?.id, made?.status, more], ['half', 'active', []])
    batches.set('half', { ...(made ?? assert.fail()), status: 'revoked' })
    await store.reload()
    assert.equal(batches.get('half')?.status, 'revoked', 'what the database has stays')
  })

  it('come into the database together with the brands of the batch, so that a crash leaves none without them', async () => {
    const batches: SharedBatch[] = []
    const { store } = await openStore({
      putBatch: async (batch) => batches.push(batch) > 0,
      batches: async () => batches,
    })
    await store.create({ id: 'made', demo: true }, ['Arbor'])
    await store.add(testBatch({ id: 'imported' }), ['Arbor'])
    assert.deepEqual(
      batches.map(({ id, settings }) => [id, batchBrands(settings)]),
      [
        ['made', ['Arbor']],
        ['imported', ['Arbor']],
      ],
    )
  })

  it('are not known to be complete while the database does not answer, and others wait no second time', async () => {
    const clock = { ms: 0 }
    let answer: SharedBatches['batches'] = async () => [{ id: 'elsewhere', epoch: 0, status: 'active', settings: {} }]
    const whole = answer
    let readings = 0
    const store = await openTagKeyStore({
      folder: testFolder(),
      keyFile: { kek, demo: true },
      shared: { ...shared, batches: () => ((readings += 1), answer()) },
      readingMs: 1_000,
      waitMs: 1,
      now: () => clock.ms,
    })
    for (const failing of [Promise.withResolvers<never>(), Promise.withResolvers<never>()]) {
      assert.deepEqual(await store.missing(), ['elsewhere'])
      clock.ms += 1_000
      ;[readings, answer] = [0, () => failing.promise]
      for (let taps = 0; taps < 3; taps += 1) await assert.rejects(store.missing(), { code: 'DATABASE_UNAVAILABLE' })
      assert.equal(readings, 1)
      failing.reject(new Error('The connection is lost.'))
      await setImmediate() // the reading has ended
      clock.ms += 1_000
      answer = whole
    }
    assert.deepEqual(await store.missing(), ['elsewhere'])
  })

  it('do not take back a revocation that came while they were proved', async () => {
    const { store, path } = await openStore()
    await store.add(testBatch({ id: 'proved' }))
    const next = testBatch({ id: 'proved' })
    statuses.set('proved', 'revoked')
    await store.writeStatus('proved')
    assert.ok((await store.rekey(next)).ok)
    assert.deepEqual(
      (await readKeyFile(path, { kek, demo: true })).map(({ status }) => status),
      ['revoked'],
    )
    assert.equal(store.record('proved')?.status, 'revoked')
  })

  it('are refused where the batch is not here, or has keys of another batch', async () => {
    const { store } = await openStore()
    const [a, b] = [testBatch({ id: 'a' }), testBatch({ id: 'b' })]
    await store.add(a)
    await store.add(b)
    assert.deepEqual(await store.rekey(testBatch({ id: 'c' })), {
      ok: false,
      error: 'The keys of batch c are not here.',
    })
    const refused = await store.rekey({ ...b, id: 'a' })
    assert.match(refused.ok ? '' : refused.error, /a and b have the same keys/)
    assert.notEqual(toHex(a.fileMaster), zero)
  })
})

describe('a new key encryption key', () => {
  it('opens files together with the former one, and alone once they are sealed again', async () => {
    const dir = testFolder()
    const next = Uint8Array.from(randomBytes(32))
    const open = (keys: { kek: Uint8Array; previousKek?: Uint8Array }) =>
      openTagKeyStore({ folder: dir, keyFile: { ...keys, demo: true }, shared })
    const former = await open({ kek })
    await former.create({ id: 'a', demo: true })
    writeFileSync(join(dir, 'tag-app-keys.json'), seal('tag-app-keys', { a: '0b'.repeat(16) }, kek))
    const secret = toHex(former.record('a')?.fileMaster ?? new Uint8Array())
    await assert.rejects(open({ kek: next }), fails(/another TAG_KEK/))

    const both = await open({ kek: next, previousKek: kek })
    assert.deepEqual(await both.reseal(), [join(dir, 'tag-keys.json'), join(dir, 'tag-app-keys.json')])
    assert.deepEqual(await both.reseal(), [])
    const alone = await open({ kek: next })
    assert.equal(toHex(alone.record('a')?.fileMaster ?? new Uint8Array()), secret)
    const station = {
      path: join(dir, 'none'),
      kek: null,
      former: { path: join(dir, 'tag-app-keys.json'), keks: { kek: next } },
    }
    assert.equal((await createStation(station).appMaster('a'))?.secret?.().length, 16)
    await assert.rejects(former.reload(), fails(/another TAG_KEK/))
    assert.equal(former.keys.candidates().length, 1, 'a process with the former key alone goes on with what it has')
  })

  it('finishes what an interruption left half done', async () => {
    const dir = testFolder()
    const next = Uint8Array.from(randomBytes(32))
    const store = await openTagKeyStore({ folder: dir, keyFile: { kek, demo: true }, shared })
    const made = await store.create({ id: 'a', demo: true })
    assert.ok(made.ok)
    writeFileSync(join(dir, 'tag-app-keys.json'), seal('tag-app-keys', { a: '0b'.repeat(16) }, kek))
    await writeKeyFile(join(dir, 'tag-keys.json'), [made.value], { kek: next, demo: true })
    const both = await openTagKeyStore({ folder: dir, keyFile: { kek: next, previousKek: kek, demo: true }, shared })
    assert.deepEqual(await both.reseal(), [join(dir, 'tag-app-keys.json')])
  })
})
