/** `touchstone backup`: all data of a service in one file, while it serves. */
import { access, mkdir, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import {
  type BackupCounts,
  type BackupHead,
  DamagedBackup,
  readBackup,
  writeBackup,
  type WriteLine,
} from './backup-file.ts'
import { findObstacle, isDataFile, readDataFiles, type Staged, stageDataFiles } from './data-files.ts'
import { defineCommand } from '../session/command.ts'
import { type BareSession, CommandError, type RunBare, withDatabase } from '../session/session.ts'
import {
  anyTable,
  beginRestore,
  dumpDatabase,
  endRestore,
  insertRows,
  isKnown,
  schemaRefusal,
  type TableHead,
} from '../../db/backup.ts'
import type { Database, Sql } from '../../db/database.ts'
import { readMigrations } from '../../db/migrate.ts'
import { chainId } from '../../domain/chain.ts'
import { programVersion } from '../../lib/version.ts'

export function backupCommand(run: RunBare): Command {
  return defineCommand(
    'backup',
    'Writes the database and the key files of the data folder into one file, while the service runs.',
    {
      notes: `The file HOLDS SECRETS: sealed tag keys, the keys of issuer and attestations, all payments and owners. Keep it as you keep
those (its mode is 0600). TAG_KEK, TAG_PEPPER and other keys of the environment are not in it, nor the secrets that npm start made in
keys/demo.json; it is useless without them. station.keys is in it only with --with-station-keys: a verifier never needs that file.
An embedded database serves nothing else while it is read: several seconds for 100,000 rows.`,
      examples: ['touchstone backup touchstone.backup'],
    },
  )
    .argument('<file>', 'a new file, such as touchstone.backup')
    .option('--with-station-keys', 'include station.keys, the sealed application keys, which can rewrite chips')
    .action((file: string, { withStationKeys }: { readonly withStationKeys?: true }) =>
      run((session) => backup(session, file, withStationKeys === true)),
    )
}

async function backup(session: BareSession, file: string, withStation: boolean): Promise<void> {
  const { io, config } = session
  const path = resolve(io.cwd, file)
  const isTaken = await access(path).then(
    () => true,
    () => false,
  )
  if (isTaken) throw new CommandError(`${path} exists. A backup is never written over another one: name a new file.`)
  const counts = await withDatabase(session, (database) =>
    writeBackup(path, async (write) => {
      await dumpDatabase(database, createDump(write, session))
      // Files come after the rows: a key that has no row is harmless, a row that has no key is not.
      for await (const part of readDataFiles(config.dataDir, { withStation })) await write({ kind: 'file', part })
    }),
  ).catch((error: NodeJS.ErrnoException) => {
    if (['ENOENT', 'EACCES', 'EROFS', 'ENOSPC'].includes(error.code ?? '') && error.path !== undefined)
      throw new CommandError(`${path} cannot be written (${error.code}).`, { cause: error })
    throw error
  })
  io.out(`${formatCounts(counts)}: ${path}`)
  const left = withStation ? 'TAG_KEK, STATION_KEK and TAG_PEPPER are' : 'TAG_KEK, TAG_PEPPER and station.keys are'
  io.err(`The file holds secrets: keep it as you keep keys. ${left} not in it.`)
}

function createDump(write: WriteLine, { io, config }: BareSession): Parameters<typeof dumpDatabase>[1] {
  let reported = 0
  let rows = 0
  return {
    schema: (head) =>
      write({
        kind: 'head',
        head: {
          touchstone: 'backup',
          format: 1,
          program: programVersion,
          created: new Date().toISOString(),
          chainId,
          ...head,
          contract: head.contract ?? config.chain.contract,
        },
      }),
    table: (head) => write({ kind: 'table', head }),
    async rows(texts) {
      if (io.signal.aborted) throw new CommandError('The backup was stopped; no file was written.')
      for (const text of texts) await write({ kind: 'row', text })
      rows += texts.length
      if (rows - reported < 100_000) return
      reported = rows
      io.err(`  ${rows} rows`)
    },
  }
}

function formatCounts({ rows, files }: BackupCounts): string {
  const all = Object.values(rows)
  return `${all.reduce((sum, n) => sum + n, 0)} rows of ${all.length} tables and ${files} files`
}

export function restoreCommand(run: RunBare): Command {
  return defineCommand(
    'restore',
    'Fills an empty database and an empty data folder from a backup, completely or not at all.',
    {
      notes: `DATABASE_URL and DATA_DIR name the target; a backup of either database restores into either. Set TAG_KEK, TAG_PEPPER and the
other keys of the environment as they were. Then start the service and check it with: touchstone index verify
The file holds secrets, as the data folder will.`,
      examples: ['touchstone restore touchstone.backup'],
    },
  )
    .argument('<file>', 'a file of touchstone backup')
    .action((file: string) => run((session) => restore(session, resolve(session.io.cwd, file))))
}

async function restore(session: BareSession, path: string): Promise<void> {
  const { io, config, running } = session
  if (running !== null)
    throw new CommandError(
      `A service runs on the data folder ${config.dataDir}. Restore into a new one: set DATA_DIR, and DATABASE_URL if it is PostgreSQL.`,
    )
  const { head, counts } = await describeDamage(path, () => check(path))
  assertFits(head, config.chain.contract)
  const known = readMigrations()
  const refusal = schemaRefusal(head, known)
  if (refusal !== null) throw new CommandError(refusal)
  await using undo = new AsyncDisposableStack()
  undo.defer(await claimFolder(config.dataDir))
  const staged = stageDataFiles(config.dataDir)
  undo.defer(() => staged.remove())
  await withDatabase(session, async (database) => {
    const table = await anyTable(database)
    if (table !== null)
      throw new CommandError(
        `The database is not empty: it has the table ${table}. Nothing was changed; restore into a new one.`,
      )
    await describeDamage(path, () => fill(database, { path, head, staged }))
    undo.move()
    if (database.dialect === 'pglite') await database.exec('analyze') // PostgreSQL does this by itself
  })
  io.out(`${formatCounts(counts)} restored, as they were at ${head.created}.`)
}

/** Reads the whole file before anything is changed. */
async function check(path: string): Promise<{ readonly head: BackupHead; readonly counts: BackupCounts }> {
  const lines = readBackup(path)
  const first = await lines.next()
  if (first.done === true || first.value.kind !== 'head') throw new DamagedBackup('It does not begin with a head.')
  assertFormat(first.value.head)
  for (;;) {
    const { done, value } = await lines.next()
    if (done === true) return { head: first.value.head, counts: value }
    if (value.kind === 'file' && !isDataFile(value.part.file))
      throw new DamagedBackup('It has a file in an unknown place.')
  }
}

async function describeDamage<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    // SQLSTATE 22 and 23 are rows that no dump contains. The message of the database would show them.
    if (error instanceof DamagedBackup || /^2[23]\w{3}$/.test(code))
      throw new CommandError(
        `${path} is not a complete backup: it is cut off, or was altered. Nothing was changed; take another copy of it.`,
        { cause: error },
      )
    if (code === 'ENOENT' || code === 'EACCES' || code === 'EISDIR')
      throw new CommandError(`${path} cannot be read (${code}).`, { cause: error })
    throw error
  }
}

function assertFormat({ format }: { readonly format: number }): void {
  if (format !== 1)
    throw new CommandError(`The backup has the format ${format}, which this version does not support: use a newer one.`)
}

function assertFits({ chainId: id, contract }: BackupHead, wanted: string | null): void {
  if (id !== chainId) throw new CommandError(`The backup is of chain ${id}; this service works on chain ${chainId}.`)
  if (wanted !== null && contract !== null && contract.toLowerCase() !== wanted.toLowerCase())
    throw new CommandError(`The backup is of the contract ${contract}; CHAIN_CONTRACT names another one.`)
}

/** Creates the folder and returns the function that removes its content again. The lock of the folder does not count as content. */
async function claimFolder(dataDir: string): Promise<() => Promise<void>> {
  const wasThere = await stat(dataDir).then(
    () => true,
    () => false,
  )
  await mkdir(dataDir, { recursive: true })
  const found = await findObstacle(dataDir)
  if (found !== null)
    throw new CommandError(
      `The data folder ${dataDir} is not empty: it has ${found}. Nothing was changed; choose another one with DATA_DIR.`,
    )
  return () => rm(wasThere ? join(dataDir, 'store') : dataDir, { recursive: true, force: true })
}

/** Reads the file again and writes it. Any difference from the first reading rolls everything back. */
async function fill(
  database: Database,
  { path, head, staged }: { readonly path: string; readonly head: BackupHead; readonly staged: Staged },
): Promise<void> {
  const known = readMigrations()
  await database.transaction(async (sql) => {
    await beginRestore(sql, head, known)
    const heads: TableHead[] = []
    const rows = createRows(sql)
    for await (const line of readBackup(path)) {
      if (line.kind === 'row') await rows.add(line.text, heads.at(-1))
      if (line.kind === 'table') {
        await rows.flush()
        if (!(await isKnown(sql, line.head))) throw new DamagedBackup('A table does not match its schema.')
        heads.push(line.head)
      }
      if (line.kind === 'file') await staged.add(line.part)
    }
    await rows.flush()
    await endRestore(sql, heads, known)
    await staged.place()
  })
}

/** Inserts rows in batches. */
function createRows(sql: Sql) {
  let texts: string[] = []
  let size = 0
  let table: TableHead | undefined
  async function flush(): Promise<void> {
    if (table !== undefined && texts.length > 0) await insertRows(sql, table, texts)
    texts = []
    size = 0
  }
  return {
    flush,
    async add(text: string, of: TableHead | undefined): Promise<void> {
      if (of === undefined) throw new DamagedBackup('A row has no table.')
      table = of
      size += text.length
      texts.push(text)
      if (texts.length >= 500 || size > 500_000) await flush()
    },
  }
}
