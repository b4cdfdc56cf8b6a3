/** `touchstone restore`: fills an empty service from a backup file. */
import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { type BackupHead, DamagedBackup, readBackup, type ReadOptions } from './backup-file.ts'
import { checkBackup, describeDamage, formatCounts, unsealedOption, type UnsealedOption } from './check.ts'
import { findObstacle, type Staged, stageDataFiles } from './data-files.ts'
import { defineCommand } from '../session/command.ts'
import { type BareSession, type RunBare, withDatabase } from '../session/session.ts'
import { CommandError, formatJson } from '../session/output.ts'
import { verifyAudit } from '../../db/audit.ts'
import { anyTable, beginRestore, endRestore, insertRows, isKnown, type TableHead } from '../../db/backup.ts'
import type { Database, Sql } from '../../db/database.ts'
import { readMigrations } from '../../db/migrate.ts'
import { sleep } from '../../lib/async/sleep.ts'

export function restoreCommand(run: RunBare): Command {
  return defineCommand(
    'restore',
    'Fills an empty database and an empty data folder from a backup, completely or not at all.',
    {
      notes: `DATABASE_URL and DATA_DIR name the target; a backup of either database restores into either. Set BACKUP_KEY, TAG_KEK,
TAG_PEPPER and the other keys of the environment as they were. The seal of the whole file is checked before anything is changed, and the
audit trail after it. Then start the service and check it with: touchstone index verify
The file holds secrets, as the data folder will.`,
      examples: ['touchstone restore touchstone.backup'],
    },
  )
    .argument('<file>', 'a file of touchstone backup')
    .addOption(unsealedOption())
    .option('--json', 'print a JSON object')
    .action((file: string, options: Options) =>
      run((session) => restore(session, resolve(session.io.cwd, file), options)),
    )
}

type Options = UnsealedOption & { readonly json?: true }

async function restore(session: BareSession, path: string, { json, ...options }: Options): Promise<void> {
  const { io, config, running } = session
  if (running !== null)
    throw new CommandError(
      `A service runs on the data folder ${config.dataDir}. Restore into a new one: set DATA_DIR, and DATABASE_URL if it is PostgreSQL.`,
    )
  const { head, counts, reading } = await checkBackup(path, config, { ...options, warn: io.err })
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
    let last: LastStep | undefined
    const filling = { path, head, reading, staged, atLast: (step: LastStep) => void (last = step) }
    const trail = await describeDamage(path, () => fill(database, filling)).catch(async (error: unknown) => {
      if (last === undefined || database.dialect === 'pglite') throw error
      const outcome = await outcomeOf(database, last.transaction)
      if (outcome === 'committed') return last.trail
      if (outcome === 'aborted') throw error
      undo.move()
      throw unknownOutcome(config.dataDir, error)
    })
    undo.move()
    if (!trail.ok)
      io.err(
        `Warning: the audit trail was not intact when the backup was made: entry ${trail.seq} is wrong or missing.`,
      )
    if (database.dialect === 'pglite') await database.exec('analyze') // PostgreSQL does this by itself
  })
  if (json === true) return io.out(formatJson({ ...counts, created: head.created }))
  io.out(`${formatCounts(counts)} restored, as they were at ${head.created}.`)
}

/**
 * Returns what PostgreSQL did with a transaction whose connection was lost at COMMIT. It is null where the database cannot be asked, or
 * does not end the transaction within a minute.
 */
async function outcomeOf(database: Database, transaction: string): Promise<'committed' | 'aborted' | null> {
  const end = performance.now() + longestEndMs
  try {
    while (performance.now() < end) {
      const [row] = await database.query<{ status: string | null }>('select pg_xact_status($1::text::xid8) as status', [
        transaction,
      ])
      if (row?.status === 'committed' || row?.status === 'aborted') return row.status
      await sleep(200)
    }
  } catch {
    // The message says that the outcome is unknown.
  }
  return null
}

const longestEndMs = 60_000

function unknownOutcome(dataDir: string, cause: unknown): CommandError {
  const next = 'If it has the rows of the backup, the restore is complete; else remove these files and restore again.'
  return new CommandError(
    `The database did not answer at the last step. The files of the backup stay in ${dataDir}. Look into the database. ${next}`,
    { cause },
  )
}

/** Creates the folder and returns the function that removes its content again. The lock of the folder does not count as content. */
async function claimFolder(dataDir: string): Promise<() => Promise<void>> {
  const wasThere = existsSync(dataDir)
  await mkdir(dataDir, { recursive: true })
  const found = await findObstacle(dataDir)
  if (found !== null)
    throw new CommandError(
      `The data folder ${dataDir} is not empty: it has ${found}. Nothing was changed; choose another one with DATA_DIR.`,
    )
  return () => rm(wasThere ? join(dataDir, 'store') : dataDir, { recursive: true, force: true })
}

type Trail = Awaited<ReturnType<typeof verifyAudit>>
/** All that is left is COMMIT. `transaction` is its number in PostgreSQL. */
type LastStep = { readonly transaction: string; readonly trail: Trail }

type Filling = {
  readonly path: string
  readonly head: BackupHead
  readonly reading: ReadOptions
  readonly staged: Staged
  readonly atLast: (step: LastStep) => void
}

/** Reads the file again and writes it. Returns the check of the audit trail that came with it. Any difference from the first reading rolls everything back. */
async function fill(database: Database, { path, head, reading, staged, atLast }: Filling): Promise<Trail> {
  const known = readMigrations()
  return await database.transaction(async (sql) => {
    await beginRestore(sql, head, known)
    const heads: TableHead[] = []
    const rows = createRows(sql)
    for await (const line of readBackup(path, reading)) {
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
    const trail = await verifyAudit(sql)
    const [row] = await sql.query<{ transaction: string }>('select pg_current_xact_id()::text as transaction')
    await staged.place()
    atLast({ transaction: row?.transaction ?? '', trail })
    return trail
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
