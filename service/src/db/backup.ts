/**
 * Reads all rows of the database as lines of JSON, in one snapshot and bounded memory. Writes them into an empty database, in one
 * transaction of the caller. Both engines write the same lines: numbers as digits, bytes as hex, times to the microsecond. A line is passed
 * on as PostgreSQL wrote it, never parsed.
 */
import pg from 'pg'
import { hex } from './columns.ts'
import type { Database, Sql } from './database.ts'
import { locks, lockStatement } from './locks.ts'
import { appliedMigrations, isTextOf, migrateWithin, type Migration, readMigrations } from './migrate.ts'

/** `sequence` is the state of the table's identity column. */
export type TableHead = Readonly<{
  table: string
  columns: readonly string[]
  sequence: Readonly<{ column: string; last: string; called: boolean }> | null
}>
export type SchemaHead = Readonly<{
  migrations: readonly Readonly<{ name: string; checksum: string }>[]
  /** The contract of the index; `null` where nothing is indexed yet. */
  contract: string | null
}>

/** Receives the schema, then each table followed by its rows. Each call is awaited, so that a slow writer slows the reader. */
type BackupWriter = Readonly<{
  schema: (head: SchemaHead) => Promise<void>
  table: (head: TableHead) => Promise<void>
  /** `texts` are JSON objects. */
  rows: (texts: readonly string[]) => Promise<void>
}>

/** A row has at most 125 kB: a picture in hex. */
const rowsAtOnce = 100

const quoted = pg.escapeIdentifier

export async function dumpDatabase(database: Pick<Database, 'transaction'>, writer: BackupWriter): Promise<void> {
  await database.transaction(async (sql) => {
    await sql.query('set transaction isolation level repeatable read, read only')
    await sql.query(`set local timezone = 'UTC'`)
    const tables = await tablesOf(sql)
    const unknown = tables.find((name) => ![...keptTables, ...leftOutTables].includes(name))
    const schema = await schemaOf(sql)
    if (unknown !== undefined) throw new Error(unknownTable(unknown, schema))
    await writer.schema(schema)
    for (const table of keptTables) if (tables.includes(table)) await dumpTable(sql, table, writer)
  })
}

/** A table that a newer version may have made must not be taken for a stranger's. */
function unknownTable(table: string, { migrations }: SchemaHead): string {
  const known = new Set(readMigrations().map(({ name }) => name))
  const newer = migrations.findLast(({ name }) => !known.has(name))
  return newer === undefined
    ? `This version does not know the table ${table}: back up with the version that made it, or remove what is not Touchstone's.`
    : `This version does not know the table ${table} of the database, and a newer version has migrated it (${newer.name}): back up with that.`
}

/** Returns all tables except UNLOGGED ones, which a crash empties anyway. */
async function tablesOf(sql: Sql): Promise<string[]> {
  const rows = await sql.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and relpersistence = 'p' order by 1`,
  )
  return rows.map(({ name }) => name)
}

async function schemaOf(sql: Sql): Promise<SchemaHead> {
  const migrations = [...(await appliedMigrations(sql))].map(([name, checksum]) => ({ name, checksum }))
  const hasIndex = (await tablesOf(sql)).includes('index_cursor')
  const [cursor] = hasIndex
    ? await sql.query<{ contract: string }>(`select ${hex('contract')} as contract from index_cursor`)
    : []
  return { migrations, contract: cursor?.contract ?? null }
}

async function dumpTable(sql: Sql, table: string, writer: BackupWriter): Promise<void> {
  const head = await headOf(sql, table)
  await writer.table(head)
  const columns = head.columns.map(quoted).join(', ')
  await sql.query(
    `declare backup_rows no scroll cursor for select row_to_json(kept)::text as row from (select ${columns} from ${quoted(table)}) kept`,
  )
  for (;;) {
    const rows = await sql.query<{ row: string }>(`fetch ${rowsAtOnce} from backup_rows`)
    if (rows.length === 0) break
    await writer.rows(rows.map(({ row }) => row))
  }
  await sql.query('close backup_rows')
}

async function headOf(sql: Sql, table: string): Promise<TableHead> {
  const columns = await columnsOf(sql, table)
  const numbered = columns.find(({ sequence }) => sequence !== null)
  const [at] = numbered
    ? await sql.query<{ last: string; called: boolean }>(
        `select last_value::text as last, is_called as called from ${numbered.sequence}`,
      )
    : []
  return {
    table,
    columns: columns.map(({ name }) => name),
    sequence: numbered && at ? { column: numbered.name, ...at } : null,
  }
}

/** Returns the columns that are not generated, each with the sequence of an identity. */
function columnsOf(sql: Sql, table: string): Promise<{ name: string; sequence: string | null }[]> {
  return sql.query(
    `select attname as name, case when attidentity <> '' then pg_get_serial_sequence($1, attname) end as sequence
     from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [quoted(table)],
  )
}

/** Returns the reason why this program cannot restore a backup of that schema; `null` when it can. */
export function schemaRefusal({ migrations }: SchemaHead, known: readonly Migration[]): string | null {
  for (const { name, checksum } of migrations) {
    const own = known.find((migration) => migration.name === name)
    if (own === undefined)
      return `The backup is of a newer version: it has ${name}, which this one lacks. Restore it with that version.`
    if (!isTextOf(own, checksum))
      return `Migration ${name} was changed since the backup: restore it with the version that made it.`
  }
  return null
}

/**
 * Creates the schema of the backup, without rows and with its triggers off: the backup has what they write. Returns a table that the
 * database has already, and then changes nothing; `null` when it was empty.
 */
export async function beginRestore(
  sql: Sql,
  { migrations }: SchemaHead,
  known: readonly Migration[],
): Promise<string | null> {
  await sql.query(lockStatement(locks.migrations)) // a service that starts now waits, or was first
  const [other] = await tablesOf(sql)
  if (other !== undefined) return other
  await migrateWithin(
    sql,
    known.filter(({ name }) => migrations.some((migration) => migration.name === name)),
  )
  const tables = await keptOf(sql)
  if (tables.length > 0) await sql.query(`truncate ${tables.join(', ')}`)
  for (const table of tables) await sql.query(`alter table ${table} disable trigger user`)
  return null
}

/** Returns whether the schema has this table with exactly these columns. */
export async function isKnown(sql: Sql, { table, columns }: TableHead): Promise<boolean> {
  if (!keptTables.includes(table)) return false
  const own = await columnsOf(sql, table)
  return columns.length === own.length && columns.every((column) => own.some(({ name }) => name === column))
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

/** Tables of a backup; every row comes after the rows that it refers to. A test fails on a table that is in neither list. */
export const keptTables = `
  metadata picture restricted_details
  tag_batch tag tag_of_token tap tap_log tap_anomaly
  signer operation replaced_transaction item token_of_item status_place
  index_cursor index_shown index_block history registration asset_tap asset product_count product_total product_group product_name
  transfer transfer_message erased_message offered_message outbox outbox_trim
  api_key audit_head audit_entry approval difference_report
  payment payment_identifier channel settlement attestation_key issuer_key
`
  .trim()
  .split(/\s+/)

/** Tables without a backup. `migration` is in the head of the file, and the counts of a rate limit expire within a minute. */
export const leftOutTables = ['migration', 'rate_window']
