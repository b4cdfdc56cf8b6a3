/** `touchstone restore`: fills an empty service from a backup file. */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { type BackupHead, DamagedBackup, readBackup, type ReadOptions } from './backup-file.ts'
import { checkBackup, describeDamage, formatCounts, unsealedOption, type UnsealedOption } from './check.ts'
import { findObstacle, type Staged, stageDataFiles, stagedFolder } from './data-files.ts'
import { defineCommand } from '../session/command.ts'
import { type BareSession, type RunBare, withDatabase } from '../session/session.ts'
import { assertNotInterrupted, CommandError, formatJson, printTable } from '../session/output.ts'
import { verifyAudit } from '../../db/audit.ts'
import { beginRestore, endRestore, insertRows, isKnown, type TableHead } from '../../db/backup.ts'
import type { Database, Sql } from '../../db/database.ts'
import { readMigrations } from '../../db/migrate.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { makeFolder } from '../../lib/private-folder.ts'

export function restoreCommand(run: RunBare): Command {
  const description = 'Fills an empty database and an empty data folder from a backup, completely or not at all.'
  return defineCommand('restore', description, {
    notes: `DATABASE_URL and DATA_DIR name the target; a backup of either database restores into either. Set BACKUP_KEY, TAG_KEK,
TAG_PEPPER and the other keys of the environment as they were. The seal of the whole file is checked before anything is changed, and the
audit trail after it. The command lists what is in force again: what was revoked after the backup is not revoked any more. Revoke it
again, then start the service and check it with: touchstone index verify
The file holds secrets, as the data folder will.`,
    examples: ['touchstone restore touchstone.backup'],
  })
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
  const { head, counts, reading } = await checkBackup(path, config, { ...options, io })
  await using undo = new AsyncDisposableStack()
  undo.defer(await claimFolder(config.dataDir))
  const staged = stageDataFiles(config.dataDir)
  undo.defer(() => staged.remove())
  const inForce = await withDatabase(session, async (database) => {
    let last: LastStep | undefined
    const filling = { path, head, reading, staged, atLast: (step: LastStep) => void (last = step) }
    const filled = await describeDamage(path, () => fill(database, filling)).catch(async (error: unknown) => {
      if (last === undefined || database.dialect === 'pglite') throw error
      const outcome = await outcomeOf(database, last.transaction)
      if (outcome === 'committed') return last
      if (outcome === 'aborted') throw error
      undo.move()
      throw new CommandError(
        `The database did not answer at the last step. The files of the backup stay in ${config.dataDir}. Look into the database. If it has the rows of the backup, the restore is complete; else remove these files and restore again.`,
        { cause: error },
      )
    })
    undo.move()
    if (!filled.trail.ok)
      io.err(
        `Warning: the audit trail was not intact when the backup was made: entry ${filled.trail.seq} is wrong or missing.`,
      )
    if (database.dialect === 'pglite') await database.exec('analyze') // PostgreSQL does this by itself
    return filled.inForce
  })
  if (json === true) return io.out(formatJson({ ...counts, created: head.created, inForce }))
  io.out(`${formatCounts(counts)} restored, as they were at ${head.created}.`)
  const rows = revocable.flatMap(({ name, what, revoke }) => {
    const ids = inForce[name]
    const shown = `${ids.slice(0, 10).join(', ')}${ids.length > 10 ? ', …' : ''}`
    return ids.length === 0 ? [] : [[what, String(ids.length), revoke, shown]]
  })
  if (rows.length === 0) return
  io.out('These are in force, as they were then. Revoke again what was revoked later, before the service starts:')
  printTable(io.out, ['in force', 'count', 'command', ''], rows, new Set(['count']))
}

/** Every kind of thing that can be revoked. `statement` selects the ids of those that are in force. */
const revocable = [
  {
    name: 'tagBatches',
    what: 'tag batches',
    revoke: 'touchstone tag batch revoke',
    statement: "select id from tag_batch where status <> 'revoked' order by created_at, id",
  },
  {
    name: 'attestationKeys',
    what: 'attestation keys',
    revoke: 'touchstone attest key revoke',
    statement: `select 'attest-' || left(encode(address, 'hex'), 16) as id from attestation_key where status <> 'revoked' order by valid_from, address`,
  },
  {
    name: 'issuerKeys',
    what: 'issuer keys',
    revoke: 'touchstone issuer revoke',
    statement: 'select id from issuer_key where revoked_at is null order by length(id), id',
  },
  {
    name: 'apiKeys',
    what: 'API keys',
    revoke: 'touchstone key revoke',
    statement: 'select id from api_key where revoked_at is null order by created_at, id',
  },
  {
    name: 'approvals',
    what: 'open requests',
    revoke: 'touchstone approval reject',
    statement: "select id from approval where status = 'PENDING' order by pk",
  },
] as const

type InForce = Readonly<Record<(typeof revocable)[number]['name'], readonly string[]>>

async function readInForce(sql: Sql): Promise<InForce> {
  const found: Partial<Record<keyof InForce, readonly string[]>> = {}
  for (const { name, statement } of revocable)
    found[name] = (await sql.query<{ id: string }>(statement)).map(({ id }) => id)
  return found as InForce
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

/** Creates the folder and returns the function that removes its content again. The lock of the folder does not count as content. */
async function claimFolder(dataDir: string): Promise<() => Promise<void>> {
  const wasThere = existsSync(dataDir)
  await makeFolder(dataDir)
  const found = await findObstacle(dataDir)
  if (found !== null) {
    const left = stagedFolder(found)
    const remedy =
      left === null ? 'choose another one with DATA_DIR' : `if no restore runs, remove ${join(dataDir, left)}`
    throw new CommandError(`The data folder ${dataDir} is not empty: it has ${found}. Nothing was changed; ${remedy}.`)
  }
  return () => rm(wasThere ? join(dataDir, 'store') : dataDir, { recursive: true, force: true })
}

type Trail = Awaited<ReturnType<typeof verifyAudit>>
type Filled = { readonly trail: Trail; readonly inForce: InForce }
/** All that is left is COMMIT. `transaction` is its number in PostgreSQL. */
type LastStep = Filled & { readonly transaction: string }

type Filling = {
  readonly path: string
  readonly head: BackupHead
  readonly reading: ReadOptions
  readonly staged: Staged
  readonly atLast: (step: LastStep) => void
}

/** Reads the file again and writes it. Returns the check of the audit trail and what is in force. Any difference from the first reading rolls everything back. */
async function fill(database: Database, { path, head, reading, staged, atLast }: Filling): Promise<Filled> {
  const known = readMigrations()
  return await database.transaction(async (sql) => {
    const table = await beginRestore(sql, head, known)
    if (table !== null)
      throw new CommandError(
        `The database is not empty: it has the table ${table}. Nothing was changed; restore into a new one.`,
      )
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
    const filled = { trail: await verifyAudit(sql), inForce: await readInForce(sql) }
    const [row] = await sql.query<{ transaction: string }>('select pg_current_xact_id()::text as transaction')
    assertNotInterrupted(reading.signal)
    await staged.place()
    atLast({ transaction: row?.transaction ?? '', ...filled })
    return filled
  })
}

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
