/** `touchstone restore`: restores a backup into an empty database and an empty data folder, completely or not at all. */
import { mkdir, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { chainId } from '../../domain/chain.ts'
import type { TableHead } from '../../db/backup/backup.ts'
import type { Database, Sql } from '../../db/database.ts'
import { readMigrations } from '../../db/migrate.ts'
import { anyTable, beginRestore, endRestore, insertRows, isKnown, schemaRefusal } from '../../db/backup/restore.ts'
import { defineCommand } from '../session/command.ts'
import { type BareSession, CommandError, type RunBare, withDatabase } from '../session/session.ts'
import { formatCounts } from './backup.ts'
import { DamagedBackup, readBackup, type BackupCounts, type BackupHead } from './backup-file.ts'
import { findObstacle, isDataFile, stageDataFiles, type Staged } from './data-files.ts'

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
