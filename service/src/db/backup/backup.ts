/**
 * Reads all rows of the database as lines of JSON, in one snapshot and bounded memory. Both engines give the same lines: numbers as
 * digits, bytes as hex, times to the microsecond. A line is passed on as PostgreSQL wrote it, never parsed.
 */
import type { Database, Sql } from '../database.ts'
import { appliedMigrations } from '../migrate.ts'

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

/** A row has at most 40 kB. */
const rowsAtOnce = 200

export async function dumpDatabase(database: Pick<Database, 'transaction'>, writer: BackupWriter): Promise<void> {
  await database.transaction(async (sql) => {
    await sql.query('set transaction isolation level repeatable read, read only')
    await sql.query(`set local timezone = 'UTC'`)
    const tables = await tablesOf(sql)
    const unknown = tables.find((name) => ![...keptTables, ...leftOutTables].some((known) => known === name))
    if (unknown !== undefined)
      throw new Error(
        `This version does not know the table ${unknown}: back up with the version that made it, or remove what is not Touchstone's.`,
      )
    await writer.schema(await schemaOf(sql))
    for (const table of keptTables) if (tables.includes(table)) await dumpTable(sql, table, writer)
  })
}

/** Returns all tables except UNLOGGED ones, which a crash empties anyway. */
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

/** Tables of a backup; every row comes after the rows that it refers to. A test fails on a table that is in neither list. */
export const keptTables = [
  'metadata',
  'tag_batch',
  'tag',
  'tap',
  'signer',
  'operation',
  'replaced_transaction',
  'item',
  'status_place',
  'index_cursor',
  'index_block',
  'history',
  'registration',
  'asset_tap',
  'asset',
  'product_count',
  'product_total',
  'transfer',
  'transfer_message',
  'outbox',
  'api_key',
  'payment',
  'attestation_key',
  'issuer_key',
] as const

/** Tables without a backup: `migration` is in the head of the file, and the counts of a rate limit expire within a minute. */
export const leftOutTables = ['migration', 'rate_window'] as const
