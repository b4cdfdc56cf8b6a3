/** A disk that is full under the embedded database. The error names folder and remedy; nothing lasts longer than the fault. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import { openDatabase, type Database } from '../../../src/db/database.ts'
import { ServiceError } from '../../../src/lib/errors.ts'
import { writePrivateFile } from '../../../src/lib/sealed/file.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { touchstone } from '../../support/processes/cli.ts'
import { until } from '../../support/wait.ts'

const disk = testFolder()
const store = join(disk, 'store')
const filler = join(disk, 'filler')
const remedy = `The disk that holds the database in ${store} is full. Free space on it and try again; nothing that was stored is lost.`

/** Only root may mount a disk of its own. */
const skip = mounts() ? false : 'no small disk can be mounted here'
function mounts(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128m', 'tmpfs', disk], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Leaves this many bytes free. */
function fill(left = 0): void {
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(filler, Buffer.alloc(bavail * bsize - left))
}
const free = () => rmSync(filler, { force: true })

const isFull = (error: unknown) =>
  error instanceof ServiceError && error.code === 'DATABASE_UNAVAILABLE' && error.message === remedy

describe('an embedded database on a full disk', { skip }, () => {
  // Lazily, because an engine that was given up keeps files open.
  after(() => void execFileSync('umount', ['--lazy', disk]))
  beforeEach(() => copyEmptyPglite(store, 'none'))
  afterEach(() => {
    free()
    rmSync(store, { recursive: true, force: true })
  })

  it('keeps a key file as it was, without a draft beside it, and names the remedy', async () => {
    const path = join(disk, 'tag-keys.json')
    await writePrivateFile(path, 'before')
    fill()
    await assert.rejects(writePrivateFile(path, 'x'.repeat(100_000)), {
      message: `${path} cannot be written: the disk of ${disk} is full. Free space on it, then run this again; what was there before is intact.`,
    })
    assert.equal(readFileSync(path, 'utf8'), 'before')
    assert.deepEqual(
      readdirSync(disk).filter((name) => name.endsWith('.tmp')),
      [],
    )
    free()
    await writePrivateFile(path, 'after')
    assert.equal(readFileSync(path, 'utf8'), 'after')
  })

  it('is not opened where it cannot be made, or not recovered, and opens once there is space', async () => {
    rmSync(store, { recursive: true })
    fill(10_000_000)
    await assert.rejects(openDatabase({ dataDir: store }), isFull)
    free()
    const database = await openDatabase({ dataDir: store })
    await database.close()
    rmSync(join(store, 'pg_wal'), { recursive: true })
    fill()
    await assert.rejects(openDatabase({ dataDir: store }), isFull)
  })

  it('is named by a command with folder and remedy', { timeout: 240_000 }, async () => {
    rmSync(join(store, 'pg_wal'), { recursive: true })
    fill(1_000_000)
    const { exit, err } = await touchstone(['key', 'list'], { DATA_DIR: disk }).ended
    assert.deepEqual([exit, err], [1, `touchstone: ${remedy}\n`])
  })

  it('is named by a backup, which leaves no file there', { timeout: 240_000 }, async () => {
    const data = testFolder()
    mkdirSync(join(data, 'keys'))
    await copyEmptyPglite(join(data, 'store'))
    writeFileSync(join(data, 'keys/large.json'), randomBytes(3_000_000))
    fill(1_000_000)
    const path = join(disk, 'new.backup')
    const { exit, err } = await touchstone(['backup', path], { DATA_DIR: data, TAG_KEK: '11'.repeat(31) + '01' }).ended
    const sentence = `${path} cannot be written: the disk of ${disk} is full. Free space on it, then run this again; what was there before is intact.`
    assert.deepEqual([exit, err.trim()], [1, `touchstone: ${sentence}`])
    assert.deepEqual(
      readdirSync(disk).filter((name) => name.includes('backup')),
      [],
    )
  })

  it('refuses what needs space, and goes on as soon as there is some', async () => {
    const database = await openWithTable()
    fill()
    await assert.rejects(grow(database), isFull)
    await assert.rejects(
      database.transaction(async (sql) => {
        await sql.query('select 1')
        await grow(sql)
      }),
      isFull,
    )
    assert.deepEqual(await database.query('select count(*) from thing'), [{ count: 1n }])
    free()
    await grow(database)
    await database.close()
  })

  for (const [where, change] of [
    ['a statement', (database: Database) => alter(database)],
    ['a transaction', (database: Database) => database.transaction((sql) => alter(sql))],
  ] as const)
    it(`that ends the engine in ${where} blocks nothing: it starts again when there is space`, async () => {
      const database = await openWithTable()
      let notices = 0
      await using _listening = database.listen('things', () => (notices += 1))
      await until(() => notices === 1)
      await database.query('select pg_switch_wal()')
      fill()
      await assert.rejects(change(database), isFull)
      const others = [database.query('select 1'), database.exec('select 1'), database.transaction(async () => 1)]
      for (const other of others) await assert.rejects(other, isFull)
      free()
      assert.deepEqual(await database.query('select count(*) from thing'), [{ count: 1n }])
      await alter(database)
      await database.query('notify things')
      await until(() => notices === 3)
      await database.close()
    })

  async function openWithTable(): Promise<Database> {
    const database = await openDatabase({ dataDir: store })
    await database.exec('create table thing (text text); insert into thing values (null)')
    await alter(database)
    return database
  }

  const alter = (sql: Pick<Database, 'query'>) => sql.query('update thing set text = md5(random()::text)')
  const grow = (sql: Pick<Database, 'query'>) =>
    sql.query('insert into thing select repeat(md5(random()::text), 100) from generate_series(1, 1000)')
})
