/** The numbered files of `migrations/`, and what a database has of them. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Sql } from './database.ts'

/** `undo` is the script that takes it back, where nothing is lost by that or only what can be derived again. */
export type Migration = Readonly<{ name: string; script: string; undo?: string }>

/** In their order. */
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

/** Those up to a name, given with or without `.sql`, or as its number; null when no file has the name. */
export function migrationsTo(migrations: readonly Migration[], wanted: string): readonly Migration[] | null {
  const at = migrations.findIndex(({ name }) => isNamed(name, wanted))
  return at < 0 ? null : migrations.slice(0, at + 1)
}

export function isNamed(name: string, wanted: string): boolean {
  return [name, name.replace(/\.sql$/, ''), name.slice(0, 4)].includes(wanted)
}

/**
 * What the database lacks, in order. A file that was changed after it ran throws one sentence. Rows of files that are not known
 * here are a newer program's: what it added does not trouble this one (CONTRIBUTING.md).
 */
export async function missingMigrations(sql: Sql, migrations: readonly Migration[]): Promise<Migration[]> {
  const applied = await appliedMigrations(sql)
  return migrations.filter((migration) => {
    const checksum = applied.get(migration.name)
    if (checksum === undefined) return true
    if (checksum === checksumOf(migration)) return false
    throw new Error(
      `The database was migrated with another text of ${migration.name}. Restore that file, or start with an empty database.`,
    )
  })
}

/** Checksums by name, in the order of names; empty where nothing was ever migrated. */
export async function appliedMigrations(sql: Sql): Promise<ReadonlyMap<string, string>> {
  const [row] = await sql.query<{ known: boolean }>(`select to_regclass('migration') is not null as known`)
  if (row?.known !== true) return new Map()
  const rows = await sql.query<{ name: string; checksum: string }>(
    'select name, checksum from migration order by name collate "C"',
  )
  return new Map(rows.map(({ name, checksum }) => [name, checksum]))
}

export function checksumOf({ script }: Pick<Migration, 'script'>): string {
  return createHash('sha256').update(script).digest('hex')
}

/** A statement ends with `;` at the end of a line; comments are whole lines. Prepared statements take one at a time. */
export function statementsOf(script: string): string[] {
  const code = script.replace(/^\s*--.*$/gm, '')
  return code
    .split(/;\s*$/m)
    .map((text) => text.trim())
    .filter((text) => text !== '')
}
