/**
 * The rows of the database as lines of JSON, all of one moment, in bounded memory, the same from both engines: numbers of any
 * size as digits, bytes as hex, times to the microsecond. Lines are handed on as PostgreSQL wrote them, never parsed here.
 */
import { keptTables, leftOutTables } from './backup-tables.ts'
import type { Database, Sql } from './database.ts'
import { appliedMigrations } from './migrations.ts'

/** `sequence`: where the numbers of an identity column go on. */
export type TableHead = Readonly<{
  table: string
  columns: readonly string[]
  sequence: Readonly<{ column: string; last: string; called: boolean }> | null
}>
export type SchemaHead = Readonly<{
  migrations: readonly Readonly<{ name: string; checksum: string }>[]
  /** Of the index; null where nothing is indexed yet. */
  contract: string | null
}>

/** What is told of a database: first its schema, then each table with its rows. Each is awaited, so that a slow writer slows the reader. */
export type BackupSink = Readonly<{
  schema: (head: SchemaHead) => Promise<void>
  table: (head: TableHead) => Promise<void>
  /** JSON objects. */
  rows: (texts: readonly string[]) => Promise<void>
}>

/** A row has 40 kB at the most. */
const rowsAtOnce = 200

export async function dumpDatabase(database: Pick<Database, 'transaction'>, sink: BackupSink): Promise<void> {
  await database.transaction(async (sql) => {
    await sql.query('set transaction isolation level repeatable read, read only')
    await sql.query(`set local timezone = 'UTC'`)
    const tables = await tablesOf(sql)
    const unknown = tables.find((name) => ![...keptTables, ...leftOutTables].some((known) => known === name))
    if (unknown !== undefined)
      throw new Error(
        `This version does not know the table ${unknown}: back up with the version that made it, or remove what is not Touchstone's.`,
      )
    await sink.schema(await schemaOf(sql))
    for (const table of keptTables) if (tables.includes(table)) await dumpTable(sql, table, sink)
  })
}

/** All tables, but those that do not outlive a crash anyway (UNLOGGED). */
export async function tablesOf(sql: Sql): Promise<string[]> {
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
    ? await sql.query<{ contract: string }>(`select '0x' || encode(contract, 'hex') as contract from index_cursor`)
    : []
  return { migrations, contract: cursor?.contract ?? null }
}

async function dumpTable(sql: Sql, table: string, sink: BackupSink): Promise<void> {
  const head = await headOf(sql, table)
  await sink.table(head)
  const columns = head.columns.map(quoted).join(', ')
  await sql.query(
    `declare backup_rows no scroll cursor for select row_to_json(kept)::text as row from (select ${columns} from ${quoted(table)}) kept`,
  )
  for (;;) {
    const rows = await sql.query<{ row: string }>(`fetch ${rowsAtOnce} from backup_rows`)
    if (rows.length === 0) break
    await sink.rows(rows.map(({ row }) => row))
  }
  await sql.query('close backup_rows')
}

async function headOf(sql: Sql, table: string): Promise<TableHead> {
  const columns = await sql.query<{ name: string; sequence: string | null }>(
    `select attname as name, case when attidentity <> '' then pg_get_serial_sequence($1, attname) end as sequence
     from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [quoted(table)],
  )
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

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
