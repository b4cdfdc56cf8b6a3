/**
 * The database: PGlite in the data folder (default) or PostgreSQL 15+ by URL. Both return the same types: int8 as bigint, numeric and
 * timestamptz as text, bytea as Uint8Array.
 */
import { types } from '@electric-sql/pglite'
import pg from 'pg'
import { databaseUnavailable } from '../lib/errors.ts'
import type { HeldLock, Lock } from './locks.ts'
import { openPglite } from './pglite.ts'
import { holdOn, listenOn } from './session.ts'

export type Sql = { query: <Row>(text: string, values?: readonly unknown[]) => Promise<Row[]> }

export type Database = Sql & {
  readonly dialect: 'pglite' | 'postgres'
  /** Runs a script of several statements, without parameters. */
  exec: (script: string) => Promise<void>
  /** Commits when `run` resolves and rolls back when it throws. Statements of `run` must go through its `sql`. */
  transaction: <T>(run: (sql: Sql) => Promise<T>) => Promise<T>
  /** Calls `onNotice` for every NOTIFY on `channel`, and whenever notices may have been missed: at first and after a reconnection. */
  listen: (channel: string, onNotice: () => void) => AsyncDisposable
  /** Takes a lock among all processes of this database; `null` while another process holds it. Closing releases it. */
  hold: (lock: Lock) => Promise<HeldLock | null>
  /** Ends listeners, releases locks, then closes. */
  close: () => Promise<void>
}

/** `url` is a postgres:// URL; else PGlite keeps its files in `dataDir` (`memory://` keeps nothing). */
export type DatabaseOptions =
  | { readonly url: string; readonly poolSize?: number; readonly statementTimeoutMs?: number }
  | { readonly dataDir: string }

/** Opens the database. Throws what the driver throws, such as for a wrong URL or a folder that is not a database. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return 'url' in options ? openPostgres(options) : openPglite(options.dataDir)
}

async function openPostgres(options: Extract<DatabaseOptions, { url: string }>): Promise<Database> {
  const { url, poolSize = 10, statementTimeoutMs = 5_000 } = options
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: 3_000,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + 1_000,
    application_name: 'touchstone',
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  })
  pool.on('error', () => {}) // an idle connection died; the next query opens another
  const on = (runner: pg.Pool | pg.PoolClient): Sql['query'] => {
    return async <Row>(text: string, values: readonly unknown[] = []) =>
      (await runner.query(text, [...values]).catch(rethrow)).rows as Row[]
  }
  await on(pool)('select 1').catch(async (error: unknown) => {
    await pool.end()
    throw error
  })
  const sessions = new Set<() => Promise<void>>()
  /** Makes sure that a session outside the pool ends with the database at the latest. */
  const owned = (end: () => Promise<void>) => {
    sessions.add(end)
    return () => {
      sessions.delete(end)
      return end()
    }
  }
  return {
    dialect: 'postgres',
    query: on(pool),
    exec: async (script) => void (await pool.query(script).catch(rethrow)),
    transaction: async (run) => {
      const client = await pool.connect().catch(rethrow)
      const noteLoss = () => {} // the next statement fails; without a listener a connection that dies between two ends the process
      client.on('error', noteLoss)
      try {
        await client.query('begin').catch(rethrow)
        const result = await run({ query: on(client) })
        await client.query('commit').catch(rethrow)
        client.release()
        return result
      } catch (error) {
        await client.query('rollback').then(
          () => client.release(),
          (broken: Error) => client.release(broken),
        )
        throw error
      } finally {
        client.off('error', noteLoss)
      }
    },
    listen: (channel, onNotice) => {
      const listening = listenOn(url, channel, onNotice)
      return { [Symbol.asyncDispose]: owned(() => Promise.resolve(listening[Symbol.asyncDispose]())) }
    },
    hold: async (lock) => {
      const held = await holdOn(url, lock)
      return held && { ...held, release: owned(held.release) }
    },
    close: async () => {
      await Promise.all([...sessions].map((end) => end()))
      await pool.end()
    },
  }
}

/** Throws an error of the driver, as DATABASE_UNAVAILABLE when not the statement failed but the server does not answer or is full. */
function rethrow(error: unknown): never {
  const isOfStatement = error instanceof pg.DatabaseError && !/^(08|57P|53)/.test(error.code ?? '')
  if (isOfStatement || error instanceof TypeError || error instanceof RangeError) throw error
  throw databaseUnavailable(error)
}

/** Copies Node's Buffer into a plain Uint8Array, as PGlite returns. */
function parserOf(oid: number, format?: string): (text: string) => unknown {
  if (oid === types.INT8) return BigInt
  if (oid === types.TIMESTAMPTZ || oid === types.NUMERIC) return (text) => text
  if (oid === types.BYTEA) return (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'))
  return pg.types.getTypeParser(oid, format as 'text')
}
