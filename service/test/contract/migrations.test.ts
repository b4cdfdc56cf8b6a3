/** `touchstone migrate`: what is missing, what was done, what can be taken back; other statements do not queue behind it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { bareCommandsOf, captureIo, touchstone } from '../support/processes/cli.ts'
import { openOwnDatabase, noPostgres } from '../support/database/databases.ts'
import { eventually } from '../support/wait.ts'
import { copyEmptyPglite, openEmptyPglite } from '../support/database/pglite.ts'
import { testFolder } from '../support/folder.ts'
import { useOpened } from '../support/opened.ts'
import { readConfig } from '../../src/app/config/config.ts'
import { migrateCommand } from '../../src/cli/database/migrate.ts'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { schemaRefusal } from '../../src/db/backup.ts'
import { holderLock, locks } from '../../src/db/locks.ts'
import { checksumOf, migrate, migrationsTo, readMigrations, undoMigration } from '../../src/db/migrate.ts'

const all = readMigrations()
const [newest, beforeNewest] = [all.at(-1)?.name ?? '', all.at(-2)?.name ?? '']

describe('touchstone migrate', () => {
  it('makes no embedded database where it only looks', async () => {
    const folder = testFolder()
    const run = bareCommandsOf({ DATA_DIR: folder })
    const check = await run('migrate', '--check')
    assert.deepEqual([check.exit, check.out.split('\n').length], [1, all.length + 1])
    const { newest: none, missing } = JSON.parse((await run('migrate', '--check', '--json')).out) as Record<
      string,
      unknown
    >
    assert.deepEqual([none, missing], [null, all.map(({ name }) => name)])
    assert.match((await run('migrate', '--undo', '--yes')).err, /There is no database yet\.$/)
    assert.deepEqual(readdirSync(folder), [])
  })
})

for (const engine of ['PGlite', 'PostgreSQL'] as const) {
  describe(`touchstone migrate on ${engine}`, { skip: engine === 'PGlite' ? false : noPostgres }, () => {
    const folder = testFolder()
    let database: Awaited<ReturnType<typeof openOwnDatabase>> | undefined
    let run: ReturnType<typeof bareCommandsOf>
    before(async () => {
      if (engine === 'PostgreSQL') database = await openOwnDatabase()
      else await copyEmptyPglite(join(folder, 'store'), 'none')
      run = bareCommandsOf({ DATA_DIR: folder, ...(database && { DATABASE_URL: database.url }) })
    })
    after(() => database?.close())

    it('names what is missing and changes nothing with --check', async () => {
      for (let twice = 0; twice < 2; twice += 1) {
        const { exit, out } = await run('migrate', '--check')
        assert.equal(exit, 1)
        assert.deepEqual(
          out.match(/\d{4}\S+/g),
          all.map(({ name }) => name),
        )
      }
    })

    it('goes up to --to, each file with its time, then to the end', async () => {
      const first = await run('migrate', '--to', beforeNewest.slice(0, 4))
      assert.equal(first.exit, 0, first.err)
      assert.equal([...first.out.matchAll(/^\d{4}-\S+\.sql +\d+ ms$/gm)].length, all.length - 1)
      assert.match(first.out, new RegExp(`The database has ${beforeNewest}\\.$`))
      assert.match((await run('migrate', '--check')).out, new RegExp(`^missing +${newest}\n1 missing`))
      assert.match((await run('migrate')).out, new RegExp(`^${newest} +\\d+ ms\n`))
      assert.deepEqual(await run('migrate', '--check'), {
        exit: 0,
        out: `Nothing is missing: the database has ${newest}.`,
        err: '',
      })
      assert.match((await run('migrate')).out, /^Nothing was missing/)
    })

    it('rejects in one sentence what it cannot do', async () => {
      assert.match((await run('migrate', '--to', '9999')).err, /has no migration 9999; the newest is/)
      assert.match((await run('migrate', '--undo', '--check')).err, /cannot be used with option '--check'/)
      assert.match((await run('migrate', '--undo', '0001')).err, /only the newest can be reverted/)
    })

    it('takes the newest back with --yes, as long as that loses nothing', async () => {
      const undoable = all.slice(all.findLastIndex(({ undo }) => undo === undefined) + 1).toReversed()
      // Every command opens the embedded database anew, which takes a second.
      const typed = engine === 'PGlite' ? undoable.slice(0, 1) : undoable
      for (const lock of database === undefined ? [] : [locks.indexLeader, holderLock(7)]) {
        const service = await database?.hold(lock)
        assert.match((await run('migrate', '--undo', '--yes')).err, /^A service runs on this schema\. End all services/)
        await service?.release()
      }
      for (const { name } of typed) {
        const asked = await run('migrate', '--undo')
        assert.equal(asked.exit, 1)
        assert.match(asked.err, new RegExp(`^${name}: .*\\. Repeat the command with --yes`))
        assert.match((await run('migrate', '--undo', name, '--yes')).out, new RegExp(`^${name} is reverted`))
      }
      if (typed.length < undoable.length) {
        await using embedded = await openDatabase({ dataDir: join(folder, 'store') })
        for (const { undo = '', ...migration } of undoable.slice(typed.length))
          await undoMigration(embedded, { ...migration, undo })
      }
      const rejected = await run('migrate', '--undo', '--yes')
      assert.match(rejected.err, /cannot be reverted: restore a backup instead/)
      assert.equal((await run('migrate')).exit, 0)
    })
  })
}

describe('a migration beside others', { skip: noPostgres }, () => {
  const folder = testFolder()
  const database = useOpened(openOwnDatabase)
  before(() => database.exec('create table busy (n int); insert into busy values (1)'))
  const change = {
    name: '9001-busy.sql',
    script: 'alter table busy add column m int;',
    undo: 'alter table busy drop column m;',
  }

  it('finds the indexes that an operator built beforehand by the statements of the documentation', async () => {
    const text = readFileSync(new URL('../../../docs/upgrading.md', import.meta.url), 'utf8')
    const statements = Array.from(text.matchAll(/^psql "\$DATABASE_URL" -c (["'])(.+)\1$/gm), ([, , sql = '']) => sql)
    const migrationOf = (sql: string) =>
      all.findIndex(({ script }) => script.includes(`${sql.replace('concurrently ', '')};`))
    const groups = [...Map.groupBy(statements, migrationOf)].toSorted(([a], [b]) => a - b)
    assert.ok(groups.length > 0)
    const prepared = await openOwnDatabase()
    for (const [at, built] of groups) {
      assert.ok(at > 0, `no migration builds the same: ${built.join()}`)
      await migrate(prepared, all.slice(0, at))
      for (const statement of built) await prepared.exec(statement)
      await migrate(prepared, all.slice(0, at + 1))
    }
    const names = statements.map((sql) => /if not exists (\w+)/.exec(sql)?.[1])
    const valid = 'select from pg_index where indexrelid = any($1::text[]::regclass[]) and indisvalid'
    assert.equal((await prepared.query(valid, [names])).length, names.length)
    await prepared.close()
  })

  it('lets readers pass while a long transaction keeps it from its table', async () => {
    const migrated = await held(async () => {
      const migrating = migrate(database, [change])
      for (let reads = 0; reads < 2; reads += 1) {
        assert.ok(await eventually(isQueued), 'the migration tries')
        // It waits behind the ALTER TABLE, which must give up long before this read runs into its timeout.
        assert.deepEqual(await database.query('select n from busy'), [{ n: 1 }])
      }
      return { migrating }
    })
    assert.deepEqual(await migrated.migrating, [change.name])
  })

  it('names itself and the right that the role lacks', async () => {
    const role = `touchstone_app_${randomBytes(6).toString('hex')}`
    const owned = await openOwnDatabase()
    await owned.exec(`create role ${role} login password 'app'`)
    const url = Object.assign(new URL(owned.url), { username: role, password: 'app' }).href
    const asRole = await openDatabase({ url })
    try {
      const names = new RegExp(
        `^Error: ${all[0]?.name} needs a right .*: permission denied for schema public\\. Nothing`,
      )
      await assert.rejects(migrate(asRole), names)
      await owned.exec(`grant create on schema public to ${role}`)
      const extension = new RegExp(`^Error: 0005-index\\.sql needs a right .*: permission denied to create extension`)
      await assert.rejects(migrate(asRole), extension)
    } finally {
      await asRole.close()
      await owned.exec(`drop owned by ${role}; drop role ${role}`)
      await owned.close()
    }
  })

  it('fails with one sentence, and nothing has changed', async () => {
    const undoing = () => undoMigration(database, change, { timeoutMs: 0 })
    await held(() =>
      assert.rejects(undoing(), /^Error: 9001-busy\.sql did not get its locks within \d+ s: .*pg_stat_activity/),
    )
    assert.deepEqual(await database.query('select m from busy'), [{ m: null }])
  })

  it('is made and taken back no further once the command is interrupted', async () => {
    const interrupted = (name: string) =>
      new RegExp(`^Error: The command was interrupted before ${name}\\. Repeat it to go on\\.$`)
    const add = { name: '9002-more.sql', script: 'alter table busy add column o int;', undo: '' }
    const stopping = new AbortController()
    const { signal } = stopping
    await held(async () => {
      const waiting = [
        migrate(database, [add], { signal, timeoutMs: 20_000 }),
        undoMigration(database, change, { signal, timeoutMs: 20_000 }),
      ]
      const ends = Promise.allSettled(waiting)
      assert.ok(await eventually(isQueued), 'one of them tries')
      stopping.abort()
      const reasons = (await ends).map((end) => (end.status === 'rejected' ? String(end.reason) : end.value))
      assert.match(String(reasons[0]), interrupted(add.name))
      assert.match(String(reasons[1]), interrupted(change.name))
    })
    const config = readConfig({ DATA_DIR: folder, DATABASE_URL: database.url })
    const session = { io: { ...captureIo(folder).io, signal }, config, running: null }
    const command = migrateCommand(async (work) => void (await work(session)))
    await assert.rejects(command.parseAsync([], { from: 'user' }), interrupted(all[0]?.name ?? ''))
    assert.deepEqual(await database.query('select * from busy'), [{ n: 1, m: null }])
  })

  it('of a newer program disturbs neither a start nor touchstone migrate', async () => {
    await migrate(database)
    await migrate(database)
    assert.deepEqual(
      (await database.query<{ name: string }>('select name from migration')).map(({ name }) => name).sort(),
      [...all.map(({ name }) => name), change.name],
    )
    const run = bareCommandsOf({ DATA_DIR: folder, DATABASE_URL: database.url })
    assert.equal((await run('migrate', '--check')).exit, 0)
    assert.match((await run('migrate', '--undo')).err, /9001-busy\.sql is of a newer program/)
  })

  it('is not made by a start with MIGRATE=off, which names the command that makes it', async () => {
    await undoMigration(database, change)
    await database.query('delete from migration where name = $1', [newest])
    const env = {
      DATA_DIR: folder,
      DATABASE_URL: database.url,
      MIGRATE: 'off',
      CHAIN_RPC_URLS: 'http://127.0.0.1:9',
      CHAIN_CONTRACT: `0x${'1'.repeat(40)}`,
    }
    const { exit, err } = await touchstone(['serve'], env).ended
    assert.equal(exit, 1)
    assert.match(
      err,
      new RegExp(`^touchstone: The database lacks ${newest} and MIGRATE is off: run touchstone migrate`),
    )
  })

  const isQueued = async () =>
    (
      await database.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'alter table busy%'`,
      )
    ).length > 0

  /** Runs `work` while a transaction reads the table and does not end. */
  async function held<T>(work: () => Promise<T>): Promise<T> {
    return database.transaction(async (sql: Pick<Database, 'query'>) => {
      await sql.query('select n from busy')
      return work()
    })
  }
})

describe('the files of migrations', () => {
  it('are accepted in the earlier texts that checkouts ran and backed up, and refused in any other', async () => {
    const [own, block] = [
      '; own := null\n    ; select x.batch_id into own from tag x where',
      '\n      order by x.registered_at is null, x.epoch desc limit 1\n    ; is_elsewhere := coalesce(own <> batches[n], false)',
    ]
    const earlierTexts: Readonly<Record<string, (script: string) => string>> = {
      '0040': (script) =>
        script
          .replace('seen timestamptz; own text; is', 'seen timestamptz; is')
          .replace(own, '; is_elsewhere := coalesce(batches[n] <> (select x.batch_id from tag x where')
          .replace(block, `${block.split('\n    ;')[0]}), false)`),
      '0053': (script) => script.replace(/^-- An operator .*\n/m, '').replaceAll('if not exists ', ''),
    }
    const allWith = (texts: typeof earlierTexts) =>
      all.map((one) => ({ ...one, script: texts[one.name.slice(0, 4)]?.(one.script) ?? one.script }))
    const headOf = (migrations: typeof all) => ({
      migrations: migrations.map((one) => ({ name: one.name, checksum: checksumOf(one) })),
      contract: null,
    })
    const earlier = allWith(earlierTexts)
    const changed = earlier.filter((one, at) => one.script !== all[at]?.script)
    assert.deepEqual(
      changed.map(({ name }) => name.slice(0, 4)),
      ['0040', '0053'],
    )
    await using database = await openEmptyPglite('none')
    await migrate(database, migrationsTo(earlier, '0053') ?? [])
    assert.equal((await migrate(database)).at(-1), newest)
    assert.equal(schemaRefusal(headOf(earlier), all), null)

    const other = allWith({ '0053': (script) => `${script}--\n` })
    const refusal = /^Error: Migration 0053-\S+ was changed after it ran: .* back up with that version first\.$/
    await database.query("update migration set checksum = 'other' where name like '0053%'")
    await assert.rejects(migrate(database), refusal)
    assert.match(schemaRefusal(headOf(other), all) ?? '', /^Migration 0053-\S+ was changed since the backup/)
  })

  it('have each number once', () => {
    const numbers = all.map(({ name }) => name.slice(0, 4))
    assert.equal(new Set(numbers).size, numbers.length, numbers.join())
  })

  it('have an undo only beside a file of the same name, which begins with what is lost', () => {
    const names = readdirSync(new URL('../../src/db/migrations/', import.meta.url))
    for (const name of names.filter((one) => one.endsWith('.undo.sql')))
      assert.ok(names.includes(name.replace('.undo.sql', '.sql')), name)
    for (const { name, undo } of all) if (undo !== undefined) assert.match(undo, /^-- .+\.\n/, name)
  })
})
