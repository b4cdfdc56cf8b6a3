/** `touchstone restore` refuses a file whose sum is right and whose lines are none of a backup. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { readConfig } from '../../../src/app/config/config.ts'
import { backupCommand } from '../../../src/cli/database/backup.ts'
import { restoreCommand } from '../../../src/cli/database/restore.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { linesOf, unsealedFile } from '../../support/database/backup-world.ts'
import { noPostgres, openOwnDatabase } from '../../support/database/databases.ts'
import { testFolder } from '../../support/folder.ts'
import { useOpened } from '../../support/opened.ts'
import { bareCommandsOf, captureIo } from '../../support/processes/cli.ts'

const kek = '6b'.repeat(31) + '01'

describe('a backup', { skip: noPostgres }, () => {
  const folder = testFolder()
  const file = join(folder, 'whole')
  const from = useOpened(openOwnDatabase)
  const to = useOpened(openOwnDatabase)
  before(async () => {
    await migrate(from)
    await from.query('select append_audit($1)', ['{"act":"one"}'])
  })

  const settingsOf = (database: typeof from, name: string) => ({
    DATA_DIR: join(folder, name),
    DATABASE_URL: database.url,
    TAG_KEK: kek,
    CHAIN_RPC_URLS: 'http://127.0.0.1:9',
    CHAIN_CONTRACT: `0x${'c0'.repeat(20)}`,
  })

  it('is no file where it was interrupted', async () => {
    const { io } = captureIo(folder)
    const config = readConfig(settingsOf(from, 'data'))
    const session = { io: { ...io, signal: AbortSignal.abort() }, config, running: null }
    const command = backupCommand(async (work) => void (await work(session)))
    await assert.rejects(command.parseAsync(['stopped'], { from: 'user' }), /stopped; no file was written/)
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.startsWith('stopped')),
      [],
    )
  })

  it('is not restored where the command is interrupted, before the first row or at any later one', async () => {
    const own = settingsOf(from, 'data')
    const sealed = join(folder, 'kept')
    assert.equal((await bareCommandsOf(own)('backup', sealed)).exit, 0)
    const unsealed = join(folder, 'kept-unsealed')
    await writeFile(unsealed, unsealedFile(await linesOf(sealed, kek)))
    const config = readConfig(settingsOf(to, 'interrupted'))
    const interrupted = /^Error: The command was interrupted\. Nothing was changed\.$/
    for (const [make, argv] of [
      [restoreCommand, [sealed]],
      [backupCommand, ['verify', sealed]],
    ] as const) {
      const session = { io: { ...captureIo(folder).io, signal: AbortSignal.abort() }, config, running: null }
      await assert.rejects(
        make(async (work) => void (await work(session))).parseAsync(argv, { from: 'user' }),
        interrupted,
      )
    }
    const stopping = new AbortController()
    const warned = () => stopping.abort() // the whole file is checked by then
    const session = { io: { ...captureIo(folder).io, err: warned, signal: stopping.signal }, config, running: null }
    const command = restoreCommand(async (work) => void (await work(session)))
    await assert.rejects(command.parseAsync([unsealed, '--unsealed'], { from: 'user' }), interrupted)
    assert.ok(stopping.signal.aborted)
    assert.ok(!(await readdir(folder)).includes('interrupted'))
    assert.deepEqual(await to.query(`select from pg_class where relname = 'migration'`), [])
    await Promise.all([sealed, unsealed].map((path) => rm(path)))
  })

  it('whose lines are none of a backup is refused before anything is changed, though its sum is right', async () => {
    const own = settingsOf(from, 'data')
    await mkdir(join(own.DATA_DIR, 'keys'), { recursive: true, mode: 0o700 })
    await writeFile(join(own.DATA_DIR, 'keys', 'empty.json'), '')
    const made = JSON.parse((await bareCommandsOf(own)('backup', file, '--json')).out) as object
    const verified = JSON.parse((await bareCommandsOf(own)('backup', 'verify', file, '--json')).out) as object
    assert.deepEqual({ ...verified, ...made }, verified)

    const lines = await linesOf(file, kek)
    const head = (part: RegExp, text: string) => lines.with(0, (lines[0] ?? '').replace(part, text))
    const first = lines.findIndex((line) => line.startsWith('{"table"'))
    const table = JSON.parse(lines[first] ?? '') as { columns: string[] }
    const damage = /is not a complete backup/
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [lines.slice(1), damage],
      [[...lines, '{"other":1}'], damage],
      [[...lines, '[]'], damage],
      ...['../out', 'keys/../../out', 'keys', 'other/file', 'keys\\out'].map(
        (name) => [[...lines, JSON.stringify({ file: name, data: '' })], damage] as const,
      ),
      [lines.toSpliced(first, 0, '{"row":{}}'), damage],
      [lines.with(first, JSON.stringify({ ...table, columns: table.columns.slice(1) })), damage],
      [lines.with(first, JSON.stringify({ ...table, table: 'other' })), damage],
      [head(/"format":1/, '"format":2'), /has the format 2, which this version does not support/],
      [head(/"chainId":\d+/, '"chainId":1'), /The backup is of chain 1; this service works on chain 84532\./],
      [head(/"contract":"0xc0c0/, '"contract":"0x0000'), /of the contract 0x0000\w+; CHAIN_CONTRACT names another one/],
      [head(/"name":"0001[^"]*"/, '"name":"9999-later.sql"'), /of a newer version: it has 9999-later\.sql/],
      [head(/"checksum":"..../, '"checksum":"0000'), /was changed since the backup/],
    ]
    const run = bareCommandsOf(settingsOf(to, 'restored'))
    const there = await readdir(folder)
    const forged = join(folder, 'forged')
    for (const [content, sentence] of cases) {
      await writeFile(forged, unsealedFile(content))
      const { exit, out, err } = await run('restore', forged, '--unsealed')
      assert.deepEqual({ exit, out }, { exit: 1, out: '' })
      assert.match(err, sentence)
      assert.deepEqual(await readdir(folder), ['data', 'forged', ...there.filter((name) => name !== 'data')])
    }
    assert.deepEqual(await to.query(`select from pg_class where relname = 'migration'`), [])
    await writeFile(forged, unsealedFile(lines))
    const restored = JSON.parse((await run('restore', forged, '--unsealed', '--json')).out) as object
    assert.deepEqual(Object.keys(restored), ['rows', 'files', 'created', 'inForce'])
    assert.equal(await readFile(join(folder, 'restored', 'keys', 'empty.json'), 'utf8'), '')
  })

  it('names the keys that its database needs and its data folder lacks', async () => {
    await from.exec(`insert into tag_batch (id, epoch) values ('spring', 0);
      insert into issuer_key (id, public_key) values ('key-1', 'x')`)
    const folderOf = (name: string) => settingsOf(from, name).DATA_DIR
    const warnings = async (name: string) => {
      const { exit, err } = await bareCommandsOf(settingsOf(from, name))('backup', join(folder, `${name}.backup`))
      assert.equal(exit, 0, err)
      return err.split('\n').filter((line) => line.startsWith('Warning: '))
    }
    const lacks = (file: string, name: string) =>
      `Warning: ${file} is not in the backup, because ${folderOf(name)} does not have it. The database needs it: name the data folder of the service in DATA_DIR, and back up again.`
    const keyFiles = ['keys/tag-keys.json', 'keys/issuer.jwks.json'] as const
    assert.deepEqual(
      await warnings('elsewhere'),
      keyFiles.map((file) => lacks(file, 'elsewhere')),
    )
    await mkdir(join(folderOf('half'), 'keys'), { recursive: true, mode: 0o700 })
    await writeFile(join(folderOf('half'), keyFiles[0]), '{}')
    assert.deepEqual(await warnings('half'), [lacks(keyFiles[1], 'half')])
    await writeFile(join(folderOf('half'), keyFiles[1]), '{}')
    await rm(join(folder, 'half.backup'))
    assert.deepEqual(await warnings('half'), [])
  })
})
