/** `touchstone backup` and `touchstone restore`: everything is there again, on either database; what is not whole changes nothing. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { gunzipSync, gzipSync } from 'node:zlib'
import { useOpened } from '../../support/opened.ts'
import { linesOf, rowsOf, startFullWorld, textOf, unsealedFile } from '../../support/database/backup-world.ts'
import { countLockWaits, noPostgres } from '../../support/database/databases.ts'
import { answerAs, atPort } from '../../support/database/proxy.ts'
import { freePort } from '../../support/free-port.ts'
import { bareCommandsOf } from '../../support/processes/cli.ts'
import { until } from '../../support/wait.ts'
import { queryOf } from '../../support/passport/passport.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { readBackup } from '../../../src/cli/database/backup-file.ts'
import { backupKeyOf } from '../../../src/cli/database/check.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { dumpDatabase, keptTables, leftOutTables } from '../../../src/db/backup.ts'
import { locks, lockStatement } from '../../../src/db/locks.ts'
import { migrate, migrateWithin, readMigrations } from '../../../src/db/migrate.ts'
import { splitByTier } from '../../../src/passport/public/tiers.ts'
import { tagStore } from '../../../src/tap/tag-registry.ts'
import { newUid } from '../../support/tap/tags.ts'

describe('a backup', { skip: noPostgres }, () => {
  const full = useOpened(startFullWorld)
  let file: string
  let original: Awaited<ReturnType<typeof rowsOf>>
  before(async () => {
    assert.equal((await full.run('tag', 'batch', 'create', 'chips')).exit, 0)
    assert.ok((await full.world.components.approvals.request({ act: 'batch-revoke', subject: 'chips' })).ok)
    const forms = [{ type: 'image/webp', body: new Uint8Array(60_000) }] as const
    await full.world.components.pictures.put({ width: 1, height: 1, forms })
    const split = splitByTier({ care: ['Wipe it.'], access: { authority: ['care'] } })
    assert.ok(split.ok)
    for (const document of split.restricted) await full.world.components.restrictedDetails.put(document)
    const report = { tokenId: 999n, epoch: 0, tapCounter: 1, role: 'new', note: 'Straight stitches.' } as const
    assert.equal(await full.world.components.differences.add(report), 'stored')
    const tags = tagStore(full.world.components.database)
    await tags.importTag({ uid: newUid(), epoch: 0, batchId: 'chips', tokenId: 999n })
    file = join(full.world.settings.DATA_DIR, 'whole.backup')
    // The service goes on, and its reconciliation notes when it looked at a payment. The rows of the backup are those that stayed.
    await until(async () => {
      await rm(file, { force: true })
      original = await rowsOf(full.world.components.database)
      const { exit, out, err } = await full.run('backup', 'whole.backup')
      assert.equal(exit, 0, err)
      assert.match(out, /^\d+ rows of \d+ tables and [3-9] files: \//)
      assert.match(err, /holds secrets/)
      return isDeepStrictEqual(await rowsOf(full.world.components.database), original)
    })
  })

  it('is one private file, and has a row of every table that keeps something', async () => {
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    assert.deepEqual(
      (await readdir(full.world.settings.DATA_DIR)).filter((name) => name.includes('unfinished')),
      [],
    )
    const empty = Object.entries(await rowsOf(full.world.components.database)).filter(([, rows]) => rows.length < 2)
    assert.deepEqual(
      empty.map(([table]) => table).filter((table) => table !== 'replaced_transaction'),
      [],
    )
    assert.match((await full.run('backup', 'whole.backup')).err, /exists\. A backup is never written over another one/)
    assert.match((await full.run('backup', 'no/such/folder')).err, /cannot be written \(ENOENT\)/)
  })

  it('is not written over another one that was begun at the same time', async () => {
    const ends = await Promise.all([1, 2].map(() => full.run('backup', 'same.backup')))
    const [refused, ...others] = ends.filter(({ exit }) => exit !== 0)
    assert.deepEqual(others, [])
    assert.match(refused?.err ?? '', /exists\. A backup is never written over another one/)
    const names = await readdir(full.world.settings.DATA_DIR)
    assert.equal(names.filter((name) => name.startsWith('same.')).length, 1)
    assert.equal((await full.run('backup', 'verify', 'same.backup')).exit, 0)
  })

  it('is written beside what one that was killed left, also by a process of the same number', async () => {
    const { DATA_DIR } = full.world.settings
    await writeFile(join(DATA_DIR, `second.backup.unfinished-${process.pid}`), 'cut off')
    const { exit, err } = await full.run('backup', 'second.backup')
    assert.equal(exit, 0, err)
    await rm(join(DATA_DIR, `second.backup.unfinished-${process.pid}`))
  })

  it('has the keys of the station only on request, and never the secrets of a demonstration', async () => {
    const { DATA_DIR } = full.world.settings
    await writeFile(join(DATA_DIR, 'keys', 'demo.json'), '{}')
    await writeFile(join(DATA_DIR, 'keys', 'tag-app-keys.json'), '{}')
    const { signal } = new AbortController()
    const reading = { key: backupKeyOf(readConfig(full.world.settings)), allowUnsealed: false, signal }
    const filesOf = async (name: string, ...options: string[]) => {
      const { exit, err } = await full.run('backup', name, ...options)
      assert.equal(exit, 0, err)
      const files = new Set<string>()
      for await (const line of readBackup(join(DATA_DIR, name), reading))
        if (line.kind === 'file') files.add(line.part.file)
      return [...files]
    }
    const usual = await filesOf('verifier.backup')
    assert.ok(usual.includes('keys/tag-keys.json'))
    const all = await filesOf('station.backup', '--with-station-keys')
    assert.deepEqual(
      all.filter((name) => !usual.includes(name)),
      ['keys/tag-app-keys.json', 'station/station.keys'],
    )
    assert.ok(!all.includes('keys/demo.json'))
    for (const name of ['demo.json', 'tag-app-keys.json']) await rm(join(DATA_DIR, 'keys', name))
    const place = await full.place('PGlite')
    assert.equal((await place.run('restore', join(DATA_DIR, 'station.backup'))).exit, 0)
    const kept = ['station', 'station.keys'] as const
    assert.deepEqual(await readFile(join(place.settings.DATA_DIR, ...kept)), await readFile(join(DATA_DIR, ...kept)))
  })

  it('restores into PostgreSQL and from there into an embedded database: the same rows, files and answers', async () => {
    const [first, second] = [await full.place('PostgreSQL'), await full.place('PGlite')]
    await mkdir(join(first.settings.DATA_DIR, 'keys'), { recursive: true }) // a volume may be mounted there
    const restored = await first.run('restore', file)
    assert.equal(restored.exit, 0, restored.err)
    assert.match(restored.out, /^\d+ rows of \d+ tables and \d files restored, as they were at 20/)
    for (const line of [
      /^tag batches +\d+ +touchstone tag batch revoke +.*\bchips\b/m,
      /^attestation keys +1 +touchstone attest key revoke +attest-[0-9a-f]{16}$/m,
      /^issuer keys +2 +touchstone issuer revoke +key-1, key-2$/m,
      /^API keys +\d+ +touchstone key revoke +[a-z0-9]{8}/m,
      /^open requests +1 +touchstone approval reject +[a-z0-9]{12}$/m,
    ])
      assert.match(restored.out, line)
    assert.ok(first.database)
    assert.deepEqual(await rowsOf(first.database), original)
    const again = join(first.folder, 'again.backup')
    assert.equal((await first.run('backup', again)).exit, 0)
    assert.equal((await second.run('restore', again)).exit, 0)
    const embedded = await openDatabase({ dataDir: join(second.settings.DATA_DIR, 'store') })
    try {
      assert.deepEqual(await rowsOf(embedded), original)
    } finally {
      await embedded.close()
    }
    const keys = join(full.world.settings.DATA_DIR, 'keys')
    for (const { settings } of [first, second])
      for (const name of await readdir(keys)) {
        const copy = join(settings.DATA_DIR, 'keys', name)
        assert.deepEqual(await readFile(copy), await readFile(join(keys, name)))
        assert.equal((await stat(copy)).mode & 0o777, 0o600)
      }

    const seen = await full.seen(full.world.urls)
    for (const { settings } of [first, second]) {
      const service = await full.serve(settings)
      await service.components.indexer.until(BigInt((await full.world.rpc('eth_blockNumber', [])) as string), 600_000)
      assert.deepEqual(await full.seen(service.urls), seen)
      const { used, unused } = full
      assert.match(await textOf(service.urls.verification, `/api/verify?${queryOf(used)}`), /"reason":"replayed"/)
      assert.match(await textOf(service.urls.verification, `/api/verify?${queryOf(unused)}`), /"verified":true/)
      const agrees = async () => /all agree with the chain/.test((await service.run('index', 'verify')).out)
      assert.ok(await agrees())
      assert.equal((await service.run('index', 'rebuild', '--yes')).exit, 0)
      assert.ok(await agrees())
      await service.close()
    }
  })

  it('of an older schema is brought to the newest one', async () => {
    const [from, to] = [await full.place('PostgreSQL'), await full.place('PostgreSQL')]
    assert.ok(from.database && to.database)
    await migrate(from.database, readMigrations().slice(0, 5))
    await from.database.exec(
      `insert into outbox (topic, token_id, payload) values ('tap', 2::numeric ^ 255, '{"at": 1.10}')`,
    )
    assert.equal((await from.run('backup', join(from.folder, 'old'))).exit, 0)
    assert.equal((await to.run('restore', join(from.folder, 'old'))).exit, 0)
    assert.equal((await to.run('migrate', '--check')).exit, 0)
    const events = 'select seq, topic, token_id, payload::text, created_at from outbox'
    assert.deepEqual(await to.database.query(events), await from.database.query(events))
    await to.database.exec(`insert into outbox (topic, token_id, payload) values ('tap', 1, '{}')`)
    assert.deepEqual(await to.database.query('select max(seq) as newest from outbox'), [{ newest: 2n }])
  })

  it('is of one moment: what is written while it is read is not in it', async () => {
    const { database } = await full.place('PostgreSQL')
    assert.ok(database)
    await migrate(database)
    const before_ = await rowsOf(database)
    const tables: Record<string, string[]> = {}
    let current: string[] = []
    await dumpDatabase(database, {
      schema: () => database.exec(`insert into outbox (topic, token_id, payload) values ('tap', 1, '{}')`),
      table: async ({ table }) => void (tables[table] = current = []),
      rows: async (texts) => void current.push(...texts),
    })
    assert.deepEqual([tables['outbox'], before_['outbox']?.length], [[], 1])
    assert.equal((await rowsOf(database))['outbox']?.length, 2)
  })

  it('that is cut off, altered, newer or sealed under another key is rejected with one sentence, and nothing has changed', async () => {
    const [large, place] = [await full.place('PostgreSQL'), await full.place('PostgreSQL')]
    assert.ok(large.database)
    await migrate(large.database)
    await mkdir(join(large.settings.DATA_DIR, 'imports'), { recursive: true })
    await writeFile(join(large.settings.DATA_DIR, 'imports', 'large'), randomBytes(150_000))
    assert.equal((await large.run('backup', join(large.folder, 'large.backup'))).exit, 0)
    const whole = await readFile(join(large.folder, 'large.backup'))
    const head = whole.subarray(0, whole.indexOf(10) + 1)
    const chunk = 65_536 + 16
    const [first, second, rest] = [
      whole.subarray(head.length, head.length + chunk),
      whole.subarray(head.length + chunk, head.length + 2 * chunk),
      whole.subarray(head.length + 2 * chunk),
    ]
    assert.ok(rest.length > 0, 'the backup has three chunks')
    const flipped = (at: number) => {
      const copy = Buffer.from(whole)
      copy[at] = (copy[at] ?? 0) ^ 1
      return copy
    }
    const edited = (from: string, to: string) =>
      Buffer.concat([Buffer.from(head.toString().replace(from, to)), whole.subarray(head.length)])
    const cases: readonly (readonly [Buffer, RegExp])[] = [
      [whole.subarray(0, whole.length - 20), /is not a complete backup/],
      [Buffer.concat([head, first]), /is not a complete backup/],
      [Buffer.concat([head, first, second]), /is not a complete backup/],
      [Buffer.concat([head, second, first, rest]), /is not a complete backup/],
      [Buffer.concat([head, first, first, rest]), /is not a complete backup/],
      [Buffer.concat([head, first, rest]), /is not a complete backup/],
      [Buffer.concat([whole, Buffer.from('{}\n')]), /is not a complete backup/],
      [head, /is not a complete backup/],
      [Buffer.alloc(0), /is not a complete backup/],
      [Buffer.from('not a backup'), /is not a complete backup/],
      [flipped(head.length), /is not a complete backup/],
      [flipped(whole.length >> 1), /is not a complete backup/],
      [flipped(whole.length - 1), /is not a complete backup/],
      [edited('TAG_KEK', 'TAG_KEY'), /is not a complete backup/],
      [edited('"sealed":"', '"sealed":"A'), /does not open with TAG_KEK: set TAG_KEK as it was/],
      [edited('"format":2', '"format":3'), /format 3, which this version does not support/],
    ]
    const damaged = join(place.folder, 'damaged')
    for (const command of [['restore'], ['backup', 'verify']])
      for (const [content, sentence] of cases) {
        await writeFile(damaged, content)
        const { exit, out, err } = await place.run(...command, damaged)
        assert.deepEqual({ exit, out }, { exit: 1, out: '' })
        assert.match(err, sentence)
        assert.ok(!err.includes('\n'))
      }
    assert.match((await place.run('restore', join(place.folder, 'none'))).err, /There is no file .*none\.$/)
    const other = { ...place.settings, TAG_KEK: 'ab'.repeat(31) + '01' }
    assert.match(
      (await bareCommandsOf(other)('restore', file)).err,
      /does not open with TAG_KEK: set TAG_KEK as it was/,
    )
    const keyless = { ...place.settings, TAG_KEK: '' }
    assert.match((await bareCommandsOf(keyless)('restore', file)).err, /is sealed: set TAG_KEK as it was\.$/)
    assert.match((await bareCommandsOf(keyless)('backup', join(place.folder, 'new'))).err, /set BACKUP_KEY/)
    assert.deepEqual(await readdir(place.folder), ['damaged'])
    assert.deepEqual(await place.database?.query(`select from pg_class where relname = 'migration'`), [])
  })

  it('is sealed under BACKUP_KEY where there is one: the key of a verifier neither makes nor opens it', async () => {
    const place = await full.place('PostgreSQL')
    assert.ok(place.database)
    await migrate(place.database)
    const kept = join(place.folder, 'kept')
    const holder = bareCommandsOf({ ...place.settings, BACKUP_KEY: '5e'.repeat(31) + '01' })
    const made = await holder('backup', kept)
    assert.equal(made.exit, 0, made.err)
    assert.match(made.err, /sealed under BACKUP_KEY: keep that key elsewhere/)
    assert.match((await holder('backup', 'verify', kept)).out, /can be restored\.\nprogram /)
    assert.match(
      (await place.run('backup', 'verify', kept)).err,
      /does not open with TAG_KEK: it was sealed under BACKUP_KEY/,
    )
    assert.match(
      (await holder('backup', 'verify', file)).err,
      /does not open with BACKUP_KEY: it was sealed under TAG_KEK/,
    )
    const open = await bareCommandsOf({ ...place.settings, BACKUP_KEY: '00'.repeat(32) })('backup', `${kept}-open`)
    assert.match(open.err, /BACKUP_KEY is no random key/)
    const { settings } = full.world
    const rotated = { ...settings, TAG_KEK: 'cd'.repeat(31) + '01', TAG_KEK_PREVIOUS: settings.TAG_KEK }
    assert.equal((await bareCommandsOf(rotated)('backup', 'verify', file)).exit, 0)
  })

  it('of an earlier version, which has no seal, is read on request only, and with a warning', async () => {
    const lines = await linesOf(file, full.world.settings.TAG_KEK)
    // The hash of a key is one that somebody else has. An earlier version without seals restored this silently.
    const row = lines.findIndex((line) => line.startsWith('{"row":') && line.includes('"revoked_at"'))
    const forged = (lines[row] ?? '').replace(/\\\\x[0-9a-f]{64}/, `\\\\x${'00'.repeat(32)}`)
    assert.match(forged, /0{64}/)
    const place = await full.place('PostgreSQL')
    const old = join(place.folder, 'old')
    await writeFile(old, unsealedFile(lines.with(row, forged)))
    for (const command of [['restore'], ['backup', 'verify']]) {
      const { exit, out, err } = await place.run(...command, old)
      assert.deepEqual({ exit, out }, { exit: 1, out: '' })
      assert.match(
        err,
        /has no seal: anybody could have altered it\. If you know that it is yours, repeat the command with --unsealed\.$/,
      )
    }
    await writeFile(old, unsealedFile(lines))
    const { exit, err } = await place.run('restore', old, '--unsealed')
    assert.equal(exit, 0, err)
    assert.match(err, /^Warning: .* has no seal\. .* but not an alteration\.$/)
    assert.ok(place.database)
    assert.deepEqual(await rowsOf(place.database), original)
    const damaged = unsealedFile(lines)
    await writeFile(old, gzipSync(gunzipSync(damaged).toString().replace('Kept', 'kept')))
    assert.match((await place.run('backup', 'verify', old, '--unsealed')).err, /is not a complete backup/)
    await writeFile(old, damaged.subarray(0, -20))
    assert.match((await place.run('backup', 'verify', old, '--unsealed')).err, /is not a complete backup/)
  })

  it('says when the audit trail was not intact', async () => {
    const [from, to] = [await full.place('PostgreSQL'), await full.place('PostgreSQL')]
    assert.ok(from.database)
    await migrate(from.database)
    for (const entry of ['{"act":"one"}', '{"act":"two"}'])
      await from.database.query('select append_audit($1)', [entry])
    await from.database.exec(
      `alter table audit_entry disable trigger user; update audit_entry set body = '{"act":"none"}' where seq = 2`,
    )
    const kept = join(from.folder, 'kept')
    assert.equal((await from.run('backup', kept)).exit, 0)
    const { exit, err } = await to.run('restore', kept)
    assert.equal(exit, 0)
    assert.equal(err, 'Warning: the audit trail was not intact when the backup was made: entry 2 is wrong or missing.')
  })

  it('whose rows no database takes leaves nothing behind, though its sum is right', async () => {
    const lines = await linesOf(file, full.world.settings.TAG_KEK)
    const last = lines.findLastIndex((line) => line.includes('"status":"active"'))
    const altered = lines.with(last, (lines[last] ?? '').replace(/"status":"\w+"/, '"status":"secret"'))
    for (const engine of ['PostgreSQL', 'PGlite'] as const) {
      const { run, folder, database } = await full.place(engine)
      const forged = join(folder, 'forged')
      await writeFile(forged, unsealedFile(altered))
      const { err } = await run('restore', forged, '--unsealed')
      assert.match(err, /is not a complete backup/)
      assert.doesNotMatch(err, /secret/)
      assert.deepEqual(await readdir(folder), ['forged'])
      assert.deepEqual((await database?.query(`select from pg_class where relname = 'migration'`)) ?? [], [])
    }
  })

  for (const outcome of ['committed', 'rolled back', 'unknown'] as const)
    it(`keeps its files as the database keeps its rows, where the connection is lost at COMMIT: ${outcome}`, async () => {
      const { database, settings } = await full.place('PostgreSQL')
      assert.ok(database)
      let [isAsked, isCut] = [false, false]
      let others: Promise<unknown> | undefined
      /** Cuts one connection; also those after it, so that the outcome stays unknown. */
      const cutIf = (isNow: boolean) => {
        if (!isNow || (isCut && outcome !== 'unknown')) return undefined
        isCut = true
        return Promise.reject(new Error('cut'))
      }
      const before = async (sent: Buffer) => {
        isAsked ||= sent.includes('commit\0')
        // A service that waited for the database makes its tables before the restore looks. A connection may not take as long.
        const looks = isCut && sent.includes('pg_xact_status')
        if (looks && outcome === 'rolled back') await (others ??= migrate(database))
        await cutIf(isAsked && outcome === 'rolled back')
      }
      const port = await freePort()
      await using _postgres = await answerAs(database.url, port, before, () => cutIf(isAsked))
      const run = bareCommandsOf({ ...settings, DATABASE_URL: atPort(database.url, port) })
      const { exit, err } = await run('restore', file)
      assert.equal(exit, outcome === 'committed' ? 0 : 1, err)
      assert.equal(others !== undefined, outcome === 'rolled back')
      assert.equal(/did not answer at the last step\. The files of the backup stay/.test(err), outcome === 'unknown')
      const isThere = outcome !== 'rolled back'
      assert.equal(isDeepStrictEqual(await rowsOf(database), original), isThere)
      const files = await readdir(settings.DATA_DIR, { recursive: true }).catch(() => [])
      assert.equal(
        files.some((name) => name.startsWith('keys/')),
        isThere,
      )
    })

  it('goes into an empty place only, and to the contract that it is of', async () => {
    const place = await full.place('PostgreSQL')
    const busy = await full.place('PGlite')
    await place.database?.exec('create table other (n int)')
    assert.match((await place.run('restore', file)).err, /not empty: it has the table other\. Nothing was changed/)
    await mkdir(join(busy.settings.DATA_DIR, 'keys'), { recursive: true })
    await writeFile(join(busy.settings.DATA_DIR, 'keys', 'own.json'), '{}')
    assert.match((await busy.run('restore', file)).err, /is not empty: it has keys\/own\.json\. Nothing/)
    assert.deepEqual(await readdir(busy.settings.DATA_DIR), ['keys'])
    assert.deepEqual(await readdir(place.folder), [])
    assert.match((await full.run('restore', file)).err, /A service runs on the data folder/)
    const refusal = async () => (await place.run('backup', join(place.folder, 'new'))).err
    assert.match(await refusal(), /does not know the table other: .* remove what is not Touchstone's\.$/)
    await place.database?.exec(`create table migration (name text primary key, checksum text);
      insert into migration values ('9999-other.sql', '')`)
    assert.match(
      await refusal(),
      /other of the database, and a newer version has migrated it \(9999-other\.sql\): back up with that\.$/,
    )
    assert.deepEqual(await readdir(place.folder), [])
  })

  it('leaves the tables of a service that starts meanwhile', async () => {
    const { database, run } = await full.place('PostgreSQL')
    assert.ok(database)
    const restored = await database.transaction(async (sql) => {
      await sql.query(lockStatement(locks.migrations))
      const ran = run('restore', file)
      await until(async () => (await countLockWaits(database)) > 0)
      await migrateWithin(sql, readMigrations())
      await sql.query(`insert into tag_batch (id, epoch, status) values ('own', 0, 'active')`)
      return { ran }
    })
    assert.match((await restored.ran).err, /The database is not empty: it has the table \w+\. Nothing was changed/)
    assert.deepEqual(await database.query('select id from tag_batch'), [{ id: 'own' }])
  })

  it('covers every table: a new one goes into a list of db/backup.ts', async () => {
    const { database } = await full.place('PostgreSQL')
    assert.ok(database)
    await migrate(database)
    const rows = await database.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')`,
    )
    const names = rows.map(({ name }) => name)
    const listed: readonly string[] = [...keptTables, ...leftOutTables]
    assert.deepEqual(
      names.filter((name) => !listed.includes(name)),
      [],
    )
    assert.deepEqual(
      keptTables.filter((name) => !names.includes(name)),
      [],
    )
  })
})
