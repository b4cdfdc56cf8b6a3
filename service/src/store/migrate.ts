/**
 * Brings the database to the newest schema: the numbered files of `migrations/`, each in one transaction, once, in order,
 * under a lock, so that several processes may start at the same moment.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Database, Sql } from './database.ts'

export type Migration = Readonly<{ name: string; script: string }>

const lock = 'select pg_advisory_xact_lock(84532, 1)'

/** Applies what is missing and returns the names of it. A file that was changed after it ran is refused. */
export async function migrate(
  database: Database,
  migrations: readonly Migration[] = readMigrations(),
): Promise<string[]> {
  await database.transaction(async (sql) => {
    await sql.query(lock) // «if not exists» alone fails when two start together
    await sql.query(
      'create table if not exists migration (name text primary key, checksum text not null, applied_at timestamptz not null default now())',
    )
  })
  const applied: string[] = []
  for (const migration of migrations) {
    if (await database.transaction((sql) => applyOnce(sql, migration))) applied.push(migration.name)
  }
  return applied
}

async function applyOnce(sql: Sql, { name, script }: Migration): Promise<boolean> {
  await sql.query(lock)
  const checksum = createHash('sha256').update(script).digest('hex')
  const [known] = await sql.query<{ checksum: string }>('select checksum from migration where name = $1', [name])
  if (known !== undefined) {
    if (known.checksum === checksum) return false
    throw new Error(
      `The database was migrated with another text of ${name}. Restore that file, or start with an empty database.`,
    )
  }
  for (const statement of statementsOf(script)) await sql.query(statement)
  await sql.query('insert into migration (name, checksum) values ($1, $2)', [name, checksum])
  return true
}

/** A statement ends with `;` at the end of a line; comments are whole lines. Prepared statements take one at a time. */
function statementsOf(script: string): string[] {
  const code = script.replace(/^\s*--.*$/gm, '')
  return code
    .split(/;\s*$/m)
    .map((text) => text.trim())
    .filter((text) => text !== '')
}

function readMigrations(): Migration[] {
  const folder = new URL('./migrations/', import.meta.url)
  const names = readdirSync(folder)
    .filter((name) => /^\d{4}-[a-z0-9-]+\.sql$/.test(name))
    .sort()
  return names.map((name) => ({ name, script: readFileSync(new URL(name, folder), 'utf8') }))
}
