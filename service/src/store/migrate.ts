/**
 * Brings the database to the newest schema: the numbered files of `migrations/`, each in one transaction, once, in order,
 * under a lock, so that several processes may start at the same moment.
 */
import type { Database, Sql } from './database.ts'
import { withLocks, type LockOptions } from './migrate-locks.ts'
import {
  appliedMigrations,
  checksumOf,
  missingMigrations,
  readMigrations,
  statementsOf,
  type Migration,
} from './migrations.ts'

export type { Migration } from './migrations.ts'

export type MigrateOptions = LockOptions & Readonly<{ onApplied?: (name: string, milliseconds: number) => void }>

const lock = 'select pg_advisory_xact_lock(84532, 1)'

/** Applies what is missing and returns the names of it. A file that was changed after it ran is refused. */
export async function migrate(
  database: Pick<Database, 'query' | 'transaction'>,
  migrations: readonly Migration[] = readMigrations(),
  { onApplied, ...locks }: MigrateOptions = {},
): Promise<string[]> {
  const applied: string[] = []
  for (const migration of await missingMigrations(database, migrations)) {
    const began = performance.now()
    if (!(await withLocks(database, (sql) => applyOnce(sql, migration), { ...locks, what: migration.name }))) continue
    applied.push(migration.name)
    onApplied?.(migration.name, performance.now() - began)
  }
  return applied
}

/** The same within a transaction of the caller's, for a database that nobody else uses. */
export async function migrateWithin(sql: Sql, migrations: readonly Migration[]): Promise<void> {
  for (const migration of migrations) await applyOnce(sql, migration)
}

/** Takes the newest migration back; false when it is no longer the newest. */
export async function undoMigration(
  database: Pick<Database, 'transaction'>,
  { name, undo }: Required<Migration>,
  locks: LockOptions = {},
): Promise<boolean> {
  const run = async (sql: Sql): Promise<boolean> => {
    await sql.query(lock)
    if ([...(await appliedMigrations(sql)).keys()].at(-1) !== name) return false
    for (const statement of statementsOf(undo)) await sql.query(statement)
    await sql.query('delete from migration where name = $1', [name])
    return true
  }
  return withLocks(database, run, { ...locks, what: name })
}

/** False where another process was first. */
async function applyOnce(sql: Sql, migration: Migration): Promise<boolean> {
  await sql.query(lock) // «if not exists» alone fails when two start together
  await sql.query(
    'create table if not exists migration (name text primary key, checksum text not null, applied_at timestamptz not null default now())',
  )
  if ((await missingMigrations(sql, [migration])).length === 0) return false
  for (const statement of statementsOf(migration.script)) await sql.query(statement)
  await sql.query('insert into migration (name, checksum) values ($1, $2)', [migration.name, checksumOf(migration)])
  return true
}
