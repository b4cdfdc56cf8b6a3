/**
 * The database: PGlite in the data folder (default) or PostgreSQL 15+ by URL. Both return the same types: int8 as bigint, numeric and
 * timestamptz as text, bytea as Uint8Array.
 */
import type { SqlQuery } from './columns.ts'
import type { HeldLock, Lock } from './locks.ts'
import { openPglite } from './pglite.ts'
import { openPostgres, type PostgresOptions, type TransactionOptions } from './postgres/pool.ts'
import { tracedDatabase } from './traced.ts'

export type Sql = { query: SqlQuery }

/** Disposing of it closes it. */
export type Database = Sql &
  AsyncDisposable & {
    /** `citus`: PostgreSQL whose tables are distributed over a cluster. */
    readonly dialect: 'pglite' | 'postgres' | 'citus'
    /** Runs a script of several statements, without parameters. */
    exec: (script: string) => Promise<void>
    /**
     * Commits when `run` resolves and rolls back when it throws. Statements of `run` must go through its `sql`. The embedded database has no
     * limit for statements.
     */
    transaction: <T>(run: (sql: Sql) => Promise<T>, options?: TransactionOptions) => Promise<T>
    /** Calls `onNotice` for every NOTIFY on `channel`, and whenever notices may have been missed: at first and after a reconnection. */
    listen: (channel: string, onNotice: () => void) => AsyncDisposable
    /** Takes a lock among all processes of this database; `null` while another process holds it. Closing releases it. */
    hold: (lock: Lock) => Promise<HeldLock | null>
    /** Ends listeners, releases locks, then closes. */
    close: () => Promise<void>
  }

/** Returns false where the database takes no writes, such as a standby. */
export async function takesWrites({ query }: Pick<Database, 'query'>): Promise<boolean> {
  const [row] = await query<{ mode: string }>(`select current_setting('transaction_read_only') as mode`)
  return row?.mode === 'off'
}

/** `url` is a postgres:// URL; else PGlite keeps its files in `dataDir` (`memory://` keeps nothing). */
export type DatabaseOptions = PostgresOptions | { readonly dataDir: string }

/** Opens the database. Throws what the driver throws, such as for a wrong URL or a folder that is not a database. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const database = tracedDatabase(await ('url' in options ? openPostgres(options) : openPglite(options.dataDir)))
  return { ...database, [Symbol.asyncDispose]: database.close }
}
