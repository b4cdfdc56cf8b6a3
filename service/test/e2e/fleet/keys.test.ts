/** Keys of several processes on one database (spec §4.4, §4.8, §9): none of them signs or verifies with keys that the others have not. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { appendFile, copyFile, cp, readdir, readFile, utimes, writeFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { testFolder } from '../../support/folder.ts'
import { aloneCommandsOf, assertionsOf, touchstone } from '../../support/processes/cli.ts'
import { makeReadOnly, noReadOnly } from '../../support/read-only.ts'
import { eventually, until } from '../../support/wait.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { checkKeys } from '../../../src/cli/doctor/keys.ts'
import { createLog } from '../../../src/lib/log.ts'
import { openStoreComponents } from '../../../src/app/store.ts'
import { tagKeyFile } from '../../../src/tap/keys/store.ts'
import { issuerKeyFile } from '../../../src/passport/signing/issuer.ts'
import { changeIssuerKeys } from '../../../src/passport/signing/issuer-keys.ts'

const kek = `${'6b'.repeat(31)}01`
const gateway = { PAYMENT_PAY_TO: `0x${'12'.repeat(20)}`, FACILITATOR_KEY: '34'.repeat(32) }

describe('keys of a fleet', { skip: noPostgres }, () => {
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let signed: Awaited<ReturnType<typeof openOwnDatabase>>
  const root = testFolder()
  const opened = new AsyncDisposableStack()
  before(async () => {
    database = opened.use(await openOwnDatabase('migrated'))
    signed = opened.use(await openOwnDatabase('migrated'))
  })
  after(() => opened.disposeAsync())

  /** An instance with a data folder of this name. */
  async function open(folder: string, env: Record<string, string> = {}, lines: string[] = []) {
    const settings = {
      DATA_DIR: join(root, folder),
      DATABASE_URL: database.url,
      TAG_KEK: kek,
      STATION_KEK: `${'73'.repeat(31)}03`,
      ...env,
    }
    const log = createLog((line) => void lines.push(line))
    return opened.use(await openStoreComponents(readConfig(settings), log))
  }

  /** A service opens the keys of the issuer at its start. */
  async function openSigning(...args: Parameters<typeof open>) {
    const parts = await open(...args)
    return { ...parts, issuer: await parts.issuerKeys() }
  }
  type Signing = Awaited<ReturnType<typeof openSigning>>

  it('of a new batch are taken over by every process that shares the folder', async () => {
    const [one, other] = [await open('shared'), await open('shared')]
    assert.ok((await one.tagKeys.create({ id: 'spring' })).ok)
    assert.ok(await eventually(() => other.tagKeys.record('spring') !== undefined))
    assert.ok((await other.tagKeys.create({ id: 'summer' })).ok)
    assert.ok(await eventually(() => one.tagKeys.keys.candidates().length === 2))
    await one.tags.setBatchStatus('spring', 'revoked')
    await one.tagKeys.writeStatus('spring')
    const status = () => other.tagKeys.keys.candidates().find(({ id }) => id === 'spring')?.status
    assert.ok(await eventually(() => status() === 'revoked'))
  })

  it('are taken over from a file that is copied over the one before', async () => {
    const folders = ['source', 'target'].map((name) => join(root, name, 'keys')) as [string, string]
    const station = await open('source')
    assert.ok((await station.tagKeys.create({ id: 'copied' })).ok)
    await cp(...folders, { recursive: true })
    const verifier = await open('target')
    assert.ok((await station.tagKeys.create({ id: 'copied-later' })).ok)
    const [from, to] = folders.map(tagKeyFile) as [string, string]
    await copyFile(from, to)
    assert.ok(await eventually(() => verifier.tagKeys.record('copied-later') !== undefined))
  })

  it('that are not here are named by touchstone doctor', async (t) => {
    const own = await openOwnDatabase('migrated')
    t.after(() => own.close())
    const env = { DATABASE_URL: own.url }
    assert.ok((await (await open('made', env)).tagKeys.create({ id: 'autumn' })).ok)
    const faults = async (folder: string) =>
      (await checkKeys(readConfig({ ...env, DATA_DIR: join(root, folder), TAG_KEK: kek })))
        .filter(({ state }) => state === 'wrong')
        .map(({ what }) => what)
    assert.deepEqual(await faults('made'), [])
    assert.match((await faults('lacking')).join(), /^The newest keys of autumn are not here: /)
  })

  it('of a revoked batch stay revoked after a start with a former key file, and after one on a new database', async () => {
    const [leaked, folder] = [{ id: 'leaked' }, join(root, 'restarted', 'keys')]
    const one = await open('restarted')
    assert.ok((await one.tagKeys.create(leaked)).ok)
    await cp(folder, join(root, 'former', 'keys'), { recursive: true })
    await one.tags.setBatchStatus('leaked', 'revoked')
    await one.tagKeys.writeStatus('leaked')

    const restarted = await open('former')
    assert.equal(restarted.tagKeys.record('leaked')?.status, 'active')
    assert.ok((await restarted.tags.revokedBatches()).includes('leaked'))
    const elsewhere = await open('restarted', { DATABASE_URL: signed.url })
    assert.deepEqual(await elsewhere.tags.revokedBatches(), ['leaked'])
  })

  it('are opened in a folder that can only be read, in which a draft was left', { skip: noReadOnly }, async () => {
    const folder = join(root, 'shared', 'keys')
    const draft = join(folder, 'tag-keys.json.0123456789ab.tmp')
    await writeFile(draft, 'x')
    await utimes(draft, 0, 0)
    using _closed = makeReadOnly(folder)
    const lines: string[] = []
    const { tagKeys } = await open('shared', { ONLY: 'graphql' }, lines)
    assert.equal(tagKeys.keys.candidates().length, 2)
    const [line, ...more] = lines.map((text) => JSON.parse(text) as Record<string, unknown>)
    assert.deepEqual([line?.['level'], line?.['event'], more], ['warn', 'unfinished files not removed', []])
  })

  it('are all kept when processes that share the folder change them together', async () => {
    const stations = [await open('station'), await open('station')]
    const [one] = stations
    assert.ok((await one?.tagKeys.create({ id: 'old' }))?.ok)
    const names = (place: number) => Array.from({ length: 4 }, (_, n) => `batch-${place}-${n}`)
    await one?.tags.setBatchStatus('old', 'revoked')
    const changes = stations.flatMap(({ tagKeys }, place) => names(place).map((id) => tagKeys.create({ id })))
    const [made] = await Promise.all([Promise.all(changes), one?.tagKeys.writeStatus('old')])
    assert.ok(made.every(({ ok }) => ok))
    const { tagKeys } = await open('station')
    assert.deepEqual(
      tagKeys.keys
        .candidates()
        .map(({ id, status }) => `${id} ${status}`)
        .toSorted(),
      [...[0, 1].flatMap(names).map((id) => `${id} active`), 'old revoked'],
    )
    for (const id of [0, 1].flatMap(names)) assert.ok(await tagKeys.appMaster(id), `the application key of ${id}`)
  })

  it('of a new batch are made in no folder that lacks those of others: its file would replace theirs on a verifier', async (t) => {
    const own = await openOwnDatabase('migrated')
    t.after(() => own.close())
    const keys = { DATABASE_URL: own.url, TAG_KEK: kek, STATION_KEK: `${'73'.repeat(31)}03` }
    const at = (folder: string) => assertionsOf(aloneCommandsOf({ ...keys, DATA_DIR: join(root, folder) }, root))
    await at('verifier').ok('tag batch create first')
    await at('verifier').ok('tag batch create lost')
    const lack = (ids: string) =>
      `The keys of ${ids} are not in ${tagKeyFile(join(root, 'new-station', 'keys'))}. Copy the file of the service there before you make keys: copied back without them, it would replace them. Revoke batches whose keys are lost.`
    await writeFile(join(root, 'cards.key'), `${'ab'.repeat(16)}\n`, { mode: 0o600 })
    const imports = 'tag batch import cards --scheme boltcard-v1 --master-file cards.key'
    for (const line of ['tag batch create second', imports])
      assert.equal(await at('new-station').refused(line), lack('first, lost'))
    assert.ok(!existsSync(tagKeyFile(join(root, 'new-station', 'keys'))))
    await at('verifier').ok('tag batch revoke lost')
    assert.equal(await at('new-station').refused('tag batch create second'), lack('first'))
    await cp(join(root, 'verifier', 'keys'), join(root, 'new-station', 'keys'), { recursive: true })
    assert.match(await at('new-station').ok('tag batch create second'), /^Batch second made/)
    assert.match(await at('new-station').ok('tag batch list'), /^first .* here\b[^]*^second .* here\b/m)
  })

  it('of the issuer are all kept when processes that share the folder rotate them together', async () => {
    const signing = { PASSPORT_SIGNING: 'on', DATABASE_URL: signed.url }
    const issuers = [(await openSigning('issuer', signing)).issuer, (await openSigning('issuer', signing)).issuer]
    const before = issuers[0]?.keys().length ?? 0
    assert.deepEqual(await Promise.all(issuers.map((issuer) => issuer.change({ kind: 'rotate' }))), [null, null])
    const { issuer } = await openSigning('issuer', signing)
    assert.equal(issuer.keys().length, before * 3)
  })

  it('of the issuer are no matter of commands on tags: a station that lacks them makes batches', async (t) => {
    const own = await openOwnDatabase('migrated')
    t.after(() => own.close())
    await own.query(`insert into issuer_key (id, public_key) values ('key-1', 'a')`)
    const [folder, stationKek] = [join(root, 'of-chips'), `${'73'.repeat(31)}03`]
    const keys = { TAG_KEK: kek, STATION_KEK: stationKek, PASSPORT_SIGNING: 'on' }
    const { ok, refused } = assertionsOf(aloneCommandsOf({ DATA_DIR: folder, DATABASE_URL: own.url, ...keys }, root))
    assert.match(await ok('tag batch create winter'), /^Batch winter made: /)
    assert.deepEqual(await readdir(join(folder, 'keys')), ['tag-keys.json'])
    assert.match(await refused('issuer list'), /signed with issuer keys that are not in /)
  })

  it('of the issuer stop the start of an instance that has others, until the file is copied there; revoked keys are so without it', async () => {
    const signing = { PASSPORT_SIGNING: 'on' }
    const begun = await Promise.allSettled([openSigning('issuer-a', signing), openSigning('issuer-b', signing)])
    assert.deepEqual(begun.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    const [right, wrong] = begun[0].status === 'fulfilled' ? ['issuer-a', 'issuer-b'] : ['issuer-b', 'issuer-a']
    const sentence = /signed with issuer keys that are not in .*issuer\.jwks\.json\. Copy that file/
    await assert.rejects(openSigning(wrong, signing), sentence)
    await assert.rejects(openSigning('issuer-c', signing), sentence)
    await openSigning('issuer-c', { ...signing, ONLY: 'graphql' })
    await cp(join(root, right, 'keys'), join(root, wrong, 'keys'), { recursive: true })
    const lines: string[] = []
    const [copy, first] = [await openSigning(wrong, signing, lines), await openSigning(right, signing)]
    assert.deepEqual(
      copy.issuer.keys().map(({ publicJwk }) => publicJwk),
      first.issuer.keys().map(({ publicJwk }) => publicJwk),
    )

    // A revocation is in force where the file is a copy from before, also after a start.
    const revoked = [{ id: 'key-2', status: 'revoked', revoked: '2026-11-20T08:00:00Z' }]
    const revokedOf = ({ issuer }: Signing) =>
      issuer.keys().flatMap((key) => {
        const { id, status, revoked: at } = key
        return status === 'revoked' ? [{ id, status, revoked: at }] : []
      })
    await first.issuer.change({ kind: 'retire', id: 'key-2' })
    await first.issuer.change({ kind: 'revoke', id: 'key-2', at: '2026-11-20T08:00:00Z' })
    await until(() => revokedOf(copy).length > 0)
    assert.deepEqual(revokedOf(copy), revoked)
    assert.deepEqual(copy.issuer.signerFor('did:web:example.com').forms, ['application/vc+jwt'])
    const said = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual(
      said.map(({ level, keys }) => [level, keys]),
      [['error', 'key-2']],
    )
    assert.deepEqual(revokedOf(await openSigning(wrong, signing)), revoked)

    // A copy from before a rotation is no place to change keys.
    await first.issuer.change({ kind: 'rotate' })
    const file = issuerKeyFile(join(root, wrong, 'keys'))
    const old = await readFile(file, 'utf8')
    await assert.rejects(copy.issuer.change({ kind: 'rotate' }), sentence)
    assert.equal(await readFile(file, 'utf8'), old)
    await assert.rejects(openSigning(wrong, signing), sentence)
  })

  it('that are being loaded when a process ends are loaded before its database is closed', async (t) => {
    const own = await openOwnDatabase('migrated')
    t.after(() => own.close())
    const lines: string[] = []
    const env = { DATABASE_URL: own.url, ONLY: 'verification', PASSPORT_SIGNING: 'on' }
    const ending = await openSigning('ending', env, lines)
    lines.length = 0
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await own.transaction(async (sql) => {
      await sql.query('lock table issuer_key in access exclusive mode')
      await appendFile(issuerKeyFile(join(root, 'ending', 'keys')), '\n')
      await until(async () => (await own.query(waits)).length > 0)
      void ending[Symbol.asyncDispose]().then(end)
    })
    await ended
    await own.query('select') // an error of the reload would be in the log by now
    assert.deepEqual(lines, [])
  })

  it('that cannot be loaded are loaded later, beside others that can', async (t) => {
    const own = await openOwnDatabase('migrated')
    t.after(() => own.close())
    const lines: string[] = []
    const env = { DATABASE_URL: own.url, ONLY: 'verification', PASSPORT_SIGNING: 'on' }
    const [one, other] = [await openSigning('failing', env), await openSigning('failing', env, lines)]
    const keysOf = ({ issuer }: Signing) => issuer.keys().map(({ publicJwk }) => publicJwk)
    const before = keysOf(one)
    const folder = join(root, 'failing', 'keys')

    // A broken file does not keep the keys of the issuer from being loaded.
    await writeFile(tagKeyFile(folder), 'broken')
    await until(() => lines.some((line) => line.includes('changed keys not loaded')))
    assert.equal(await one.issuer.change({ kind: 'rotate' }), null)
    await until(() => keysOf(other).length > before.length)
    await rm(tagKeyFile(folder))

    await own.exec('alter table issuer_key rename to away')
    const path = issuerKeyFile(folder)
    const old = await readFile(path, 'utf8')
    await assert.rejects(one.issuer.change({ kind: 'rotate' }))
    assert.equal(await readFile(path, 'utf8'), old)
    const failed = lines.length
    const rotated = await changeIssuerKeys(old, { kind: 'rotate' }, null)
    assert.ok(typeof rotated === 'string')
    await writeFile(path, rotated)
    await until(() => lines.slice(failed).some((line) => line.includes('away') || line.includes('issuer_key')))
    await own.exec('alter table away rename to issuer_key')
    await until(() => keysOf(one).length === before.length * 3 && keysOf(other).length === before.length * 3)
    assert.deepEqual(keysOf(one), keysOf(other))
  })

  it('that sign attestations are opened again where the database did not answer at first', async (t) => {
    const own = await openOwnDatabase('migrated')
    t.after(() => own.close())
    const lists = await open('attesting', { DATABASE_URL: own.url, ONLY: 'graphql' })
    await own.exec('alter table attestation_key rename to away')
    await assert.rejects(lists.attestationKeys())
    await own.exec('alter table away rename to attestation_key')
    assert.deepEqual(await (await lists.attestationKeys()).published(), [])
  })

  it('that are missing are not loaded again by a command', async () => {
    const env = { DATABASE_URL: database.url, DATA_DIR: join(root, 'none'), ONLY: 'verification' }
    const { exit, err } = await touchstone(['attest', 'key', 'list'], env).ended
    assert.deepEqual({ exit, err }, { exit: 0, err: '' })
  })

  it('that sign attestations are made by one gateway; another one says where to get them', async () => {
    const lists = await open('graphql', { ONLY: 'graphql' })
    const reads = await lists.attestationKeys()
    assert.deepEqual([await reads.published(), reads.address()], [[], null])
    const seller = await (await open('gateway-a', gateway)).attestationKeys()
    const { address, keyId } = seller.active()
    await reads.reload()
    assert.equal(reads.address(), address)

    const second = await (await open('gateway-b', gateway)).attestationKeys()
    assert.throws(() => second.active(), new RegExp(`${keyId} of this database is not in .*gateway-b`))
    assert.equal((await second.published()).length, 1)
    await cp(join(root, 'gateway-a', 'keys'), join(root, 'gateway-b', 'keys'), { recursive: true })
    await second.reload()
    assert.equal(second.active().address, address)

    // For a key that is lost: the sentence names the way on.
    const third = await (await open('gateway-c', gateway)).attestationKeys()
    assert.ok(!('refused' in (await third.retire(keyId))))
    assert.notEqual((await (await open('gateway-c', gateway)).attestationKeys()).active().address, address)
  })

  it('of a switch by one process sign in the others too', async () => {
    const folder = { ...gateway, ONLY: 'gateway' }
    const [one, other] = [
      await (await open('gateway-c', folder)).attestationKeys(),
      await (await open('gateway-c', folder)).attestationKeys(),
    ]
    const next = await one.add()
    assert.ok(!('refused' in next))
    assert.ok(!('refused' in (await one.switchTo(next.keyId))))
    assert.ok(await eventually(async () => (await other.published()).some(({ keyId }) => keyId === next.keyId)))
    await other.reload()
    assert.equal(other.active().keyId, next.keyId)
  })
})
