/**
 * Brings the database to the newest schema: the numbered files of `migrations/`, each applied once, in order, in one transaction. A lock
 * lets several processes start at the same moment.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { retry } from '../lib/async/retry.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Database, Sql } from './database.ts'
import { isDeadlock, isLockTimeout, isMissingRight } from './errors.ts'
import { locks, lockStatement } from './locks.ts'

/** `undo` is the script that takes the migration back, where that loses nothing that cannot be derived again. */
export type Migration = Readonly<{ name: string; script: string; undo?: string }>

type LockOptions = Readonly<{
  /** Time after which a migration that cannot get its locks fails. */
  timeoutMs?: number
  /** Called every few seconds while a migration waits for its locks. */
  onWaiting?: (name: string, waitedMs: number) => void
  /** Ends the wait for locks, and begins no further migration. One that has its locks is completed. */
  signal?: AbortSignal
}>

type MigrateOptions = LockOptions & Readonly<{ onApplied?: (name: string, milliseconds: number) => void }>

/** Applies the missing migrations and returns their names. Throws one sentence for a file that was changed after it ran. */
export async function migrate(
  database: Pick<Database, 'query' | 'transaction'>,
  migrations: readonly Migration[] = readMigrations(),
  { onApplied, ...lockOptions }: MigrateOptions = {},
): Promise<string[]> {
  const applied: string[] = []
  for (const migration of await missingMigrations(database, migrations)) {
    const began = performance.now()
    if (!(await withLocks(database, migration.name, (sql) => applyOnce(sql, migration), lockOptions))) continue
    applied.push(migration.name)
    onApplied?.(migration.name, performance.now() - began)
  }
  return applied
}

/** Applies the missing migrations in a transaction of the caller, for a database that nothing else uses. */
export async function migrateWithin(sql: Sql, migrations: readonly Migration[]): Promise<void> {
  for (const migration of migrations) await applyOnce(sql, migration)
}

/** Takes the newest migration back; returns false when it is no longer the newest. */
export async function undoMigration(
  database: Pick<Database, 'transaction'>,
  { name, undo }: Required<Migration>,
  lockOptions: LockOptions = {},
): Promise<boolean> {
  const work = async (sql: Sql): Promise<boolean> => {
    await sql.query(lockStatement(locks.migrations))
    if ([...(await appliedMigrations(sql)).keys()].at(-1) !== name) return false
    for (const statement of splitStatements(undo)) await sql.query(statement)
    await sql.query('delete from migration where name = $1', [name])
    return true
  }
  return withLocks(database, name, work, lockOptions)
}

/** Reads the files of `migrations/`, in order. */
export function readMigrations(): Migration[] {
  const folder = new URL('./migrations/', import.meta.url)
  const read = (name: string) => readFileSync(new URL(name, folder), 'utf8')
  const names = readdirSync(folder)
  return names
    .filter((name) => /^\d{4}-[a-z0-9-]+\.sql$/.test(name))
    .sort()
    .map((name) => {
      const undo = name.replace(/\.sql$/, '.undo.sql')
      return { name, script: read(name), ...(names.includes(undo) && { undo: read(undo) }) }
    })
}

/** Returns the migrations up to the wanted one; `null` when no file has that name. */
export function migrationsTo(migrations: readonly Migration[], wanted: string): readonly Migration[] | null {
  const at = migrations.findIndex(({ name }) => isNamed(name, wanted))
  return at < 0 ? null : migrations.slice(0, at + 1)
}

/** A migration may be named with or without `.sql`, or by its number. */
export function isNamed(name: string, wanted: string): boolean {
  return [name, name.replace(/\.sql$/, ''), name.slice(0, 4)].includes(wanted)
}

/**
 * Returns the migrations that the database lacks, in order. Throws one sentence for a file that was changed after it ran. Applied
 * migrations that are not known here belong to a newer program, and this one works with what they added (CONTRIBUTING.md).
 */
export async function missingMigrations(sql: Sql, migrations: readonly Migration[]): Promise<Migration[]> {
  const applied = await appliedMigrations(sql)
  return migrations.filter((migration) => {
    const checksum = applied.get(migration.name)
    if (checksum === undefined) return true
    if (isTextOf(migration, checksum)) return false
    throw new Error(
      `Migration ${migration.name} was changed after it ran: run the version that applied it, and back up with that version first.`,
    )
  })
}

/** Returns the checksums of the applied migrations, by name and in order; none where the database was never migrated. */
export async function appliedMigrations(sql: Sql): Promise<ReadonlyMap<string, string>> {
  const [row] = await sql.query<{ known: boolean }>(`select to_regclass('migration') is not null as known`)
  if (row?.known !== true) return new Map()
  const rows = await sql.query<{ name: string; checksum: string }>(
    'select name, checksum from migration order by name collate "C"',
  )
  return new Map(rows.map(({ name, checksum }) => [name, checksum]))
}

/** Checksums of texts that checkouts before 0.1.0 ran. They make the same schema as the present text, together with later migrations. */
const earlierTexts: Readonly<Record<string, string>> = {
  '0040-batch-of-a-tapped-tag.sql': '5a0681a03e25c1c3eaeb500c6081633a540addec4482e450512dfbfa5cf59f41',
  '0053-payments-by-block.sql': '9ad50ad12bf818b141523ddf6e4a064c91ad396f06080fc4dc0f9cf5a7de2e10',
}

/** Returns whether the checksum is that of the migration's text, now or in an earlier checkout. */
export function isTextOf(migration: Migration, checksum: string): boolean {
  return checksum === checksumOf(migration) || checksum === earlierTexts[migration.name]
}

export function checksumOf({ script }: Pick<Migration, 'script'>): string {
  return createHash('sha256').update(script).digest('hex')
}

/** Returns false when another process has applied the migration. */
async function applyOnce(sql: Sql, migration: Migration): Promise<boolean> {
  await sql.query(lockStatement(locks.migrations)) // «if not exists» alone fails when two processes start together
  await sql.query(
    'create table if not exists migration (name text primary key, checksum text not null, applied_at timestamptz not null default now())',
  )
  if ((await missingMigrations(sql, [migration])).length === 0) return false
  for (const statement of splitStatements(migration.script)) await sql.query(statement)
  await sql.query('insert into migration (name, checksum) values ($1, $2)', [migration.name, checksumOf(migration)])
  return true
}

/** Splits a script, because prepared statements take one at a time. `;` ends a statement at the end of a line, comments are whole lines. */
function splitStatements(script: string): string[] {
  return script
    .replace(/^\s*--.*$/gm, '')
    .split(/;\s*$/m)
    .map((text) => text.trim())
    .filter((text) => text !== '')
}

/** Longest wait for a lock in one attempt: statements of other processes queue behind it. */
const lockTimeoutMs = 400
/** Longest statement, such as an index over a large table. */
const statementTimeoutMs = 600_000
const reportEveryMs = 3_000

/**
 * Runs `work` in a transaction that gets its locks. An attempt that does not get them in a short time releases all and is repeated, so
 * that others can work in between. Throws one sentence when no attempt gets them.
 */
async function withLocks<T>(
  database: Pick<Database, 'transaction'>,
  name: string,
  work: (sql: Sql) => Promise<T>,
  { timeoutMs = 120_000, onWaiting, signal }: LockOptions,
): Promise<T> {
  const interrupted = () => new Error(`The command was interrupted before ${name}. Repeat it to go on.`)
  if (signal?.aborted === true) throw interrupted()
  const began = performance.now()
  const waitedMs = () => performance.now() - began
  let reportedMs = -Infinity
  const attempt = () =>
    database.transaction(async (sql) => {
      await sql.query(`set local lock_timeout = ${lockTimeoutMs}`)
      await sql.query(`set local statement_timeout = ${statementTimeoutMs}`)
      return work(sql)
    })
  return retry(attempt, {
    pausesMs: randomPauses(),
    signal,
    isRetryable: (error) => isLocked(error) && waitedMs() <= timeoutMs,
    onRetry() {
      if (waitedMs() - reportedMs <= reportEveryMs) return
      reportedMs = waitedMs()
      onWaiting?.(name, reportedMs)
    },
  }).catch((error: unknown) => {
    if (isMissingRight(error))
      throw new Error(
        `${name} needs a right that this role lacks: ${reasonOf(error)}. Nothing of it was changed. Run touchstone migrate as the owner of the tables, who may create in the schema and in the database.`,
        { cause: error },
      )
    if (!isLocked(error)) throw error
    if (signal?.aborted === true) throw interrupted()
    throw new Error(
      `${name} did not get its locks within ${Math.round(waitedMs() / 1000)} s: another process migrates, or a long transaction holds a table that it changes. Nothing was changed. Look into pg_stat_activity, then run touchstone migrate again.`,
      { cause: error },
    )
  })
}

function* randomPauses(): Generator<number, never> {
  for (;;) yield 300 + Math.random() * 700
}

function isLocked(error: unknown): boolean {
  return isLockTimeout(error) || isDeadlock(error)
}
