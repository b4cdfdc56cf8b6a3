/** Writes the rows of a backup into an empty database, in one transaction of the caller. */
import { keptTables, quoted, type SchemaHead, type TableHead, tablesOf } from './backup.ts'
import type { Sql } from '../database.ts'
import { checksumOf, migrateWithin, type Migration } from '../migrate.ts'

/** Returns the reason why this program cannot restore a backup of that schema; `null` when it can. */
export function schemaRefusal({ migrations }: SchemaHead, known: readonly Migration[]): string | null {
  for (const { name, checksum } of migrations) {
    const own = known.find((migration) => migration.name === name)
    if (own === undefined)
      return `The backup is of a newer version: it has ${name}, which this one lacks. Restore it with that version.`
    if (checksumOf(own) !== checksum)
      return `Migration ${name} was changed since the backup: restore it with the version that made it.`
  }
  return null
}

/** Returns one table of the database; `null` when it is empty. */
export async function anyTable(sql: Sql): Promise<string | null> {
  return (await tablesOf(sql))[0] ?? null
}

/** Creates the schema of the backup, without rows and with its triggers off: the backup has what they write. */
export async function beginRestore(sql: Sql, { migrations }: SchemaHead, known: readonly Migration[]): Promise<void> {
  await migrateWithin(
    sql,
    known.filter(({ name }) => migrations.some((migration) => migration.name === name)),
  )
  const tables = await keptOf(sql)
  if (tables.length === 0) return
  await sql.query(`truncate ${tables.join(', ')}`)
  for (const table of tables) await sql.query(`alter table ${table} disable trigger user`)
}

/** Returns whether the schema has this table with exactly these columns. */
export async function isKnown(sql: Sql, { table, columns }: TableHead): Promise<boolean> {
  if (!keptTables.some((kept) => kept === table)) return false
  const rows = await sql.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [quoted(table)],
  )
  return columns.length === rows.length && columns.every((column) => rows.some(({ name }) => name === column))
}

/** `texts` are JSON objects. */
export async function insertRows(sql: Sql, { table, columns }: TableHead, texts: readonly string[]): Promise<void> {
  const names = columns.map(quoted).join(', ')
  await sql.query(
    `insert into ${quoted(table)} (${names}) overriding system value
     select ${names} from json_populate_recordset(null::${quoted(table)}, $1::text::json)`,
    [`[${texts.join(',')}]`],
  )
}

/** Restores the sequences, switches the triggers on, and brings the schema up to date. */
export async function endRestore(sql: Sql, heads: readonly TableHead[], known: readonly Migration[]): Promise<void> {
  for (const { table, sequence } of heads) {
    if (sequence === null) continue
    await sql.query('select setval(pg_get_serial_sequence($1, $2), $3::text::bigint, $4)', [
      quoted(table),
      sequence.column,
      sequence.last,
      sequence.called,
    ])
  }
  for (const table of await keptOf(sql)) await sql.query(`alter table ${table} enable trigger user`)
  await migrateWithin(sql, known)
}

async function keptOf(sql: Sql): Promise<string[]> {
  const tables = await tablesOf(sql)
  return keptTables.filter((kept) => tables.includes(kept)).map(quoted)
}
