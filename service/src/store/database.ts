/**
 * The database: PGlite in the data folder (default) or PostgreSQL 15+ by URL (spec §8 asks nothing of it; everything durable stands on it).
 * Both answer the same way: int8 as bigint, numeric and timestamptz as text, bytea as Uint8Array.
 */
import { mkdir } from 'node:fs/promises'
import { PGlite, types } from '@electric-sql/pglite'
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm'
import pg from 'pg'
import { listenOn } from './database-listen.ts'
import { holdOn, localLocks, type HeldLock } from './database-lock.ts'

export type Sql = { query: <Row>(text: string, values?: readonly unknown[]) => Promise<Row[]> }

export type Database = Sql & {
  readonly dialect: 'pglite' | 'postgres'
  /** Runs a script of several statements, without parameters. */
  exec: (script: string) => Promise<void>
  /** All or nothing: what `run` throws rolls everything back. Statements of `run` must go through the `sql` it is given. */
  transaction: <T>(run: (sql: Sql) => Promise<T>) => Promise<T>
  /** Calls `onNotice` for every NOTIFY on `channel`, and whenever notices may have been missed: at first and after a reconnection. */
  listen: (channel: string, onNotice: () => void) => AsyncDisposable
  /** A lock among all processes of this database; null while another holds it. Closing the database lets go of it. */
  hold: (first: number, second: number) => Promise<HeldLock | null>
  /** Ends what listens, lets go of locks, then closes. */
  close: () => Promise<void>
}

/** `url` is a postgres:// URL; else PGlite keeps its files in `dataDir` (`memory://` keeps nothing). */
export type DatabaseOptions =
  | { readonly url: string; readonly poolSize?: number; readonly statementTimeoutMs?: number }
  /** `dump` is what a new one begins with: a data folder as PGlite dumps it. */
  | { readonly dataDir: string; readonly dump?: Blob }

/** Opens the database. It throws what the driver throws: a wrong URL, a folder that is not a database. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return 'url' in options ? openPostgres(options) : openPglite(options.dataDir, options.dump)
}

async function openPglite(dataDir: string, dump?: Blob): Promise<Database> {
  if (!dataDir.includes('://')) await mkdir(dataDir, { recursive: true })
  const asText = (text: string) => text
  const db = await PGlite.create(dataDir, {
    extensions: { pg_trgm },
    ...(dump !== undefined && { loadDataDir: dump }),
    parsers: { [types.INT8]: BigInt, [types.TIMESTAMPTZ]: asText, [types.NUMERIC]: asText },
  })
  const on = (runner: Pick<PGlite, 'query'>): Sql['query'] => {
    return async <Row>(text: string, values: readonly unknown[] = []) =>
      (await runner.query<Row>(text, [...values])).rows
  }
  return {
    dialect: 'pglite',
    query: on(db),
    exec: async (script) => void (await db.exec(script)),
    transaction: <T>(run: (sql: Sql) => Promise<T>) =>
      db.transaction((tx) => run({ query: on(tx as unknown as PGlite) })) as Promise<T>,
    listen: (channel, onNotice) => {
      const listening = db.listen(nameOf(channel), onNotice)
      listening.then(onNotice, () => {}) // fails only when the database is closed
      return { [Symbol.asyncDispose]: async () => (await listening.catch(() => null))?.() }
    },
    hold: localLocks(),
    close: () => db.close(),
  }
}

async function openPostgres({
  url,
  poolSize = 10,
  statementTimeoutMs = 5_000,
}: {
  url: string
  poolSize?: number
  statementTimeoutMs?: number
}): Promise<Database> {
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
      (await runner.query(text, [...values])).rows as Row[]
  }
  await pool.query('select 1').catch(async (error: unknown) => {
    await pool.end()
    throw error
  })
  const own = new Set<() => Promise<void>>()
  /** What has a connection of its own ends with the database at the latest. */
  const owned = (end: () => Promise<void>) => {
    own.add(end)
    return () => {
      own.delete(end)
      return end()
    }
  }
  return {
    dialect: 'postgres',
    query: on(pool),
    exec: async (script) => void (await pool.query(script)),
    transaction: async (run) => {
      const client = await pool.connect()
      const noteLoss = () => {} // the next statement fails; without a listener a connection that dies between two ends the process
      client.on('error', noteLoss)
      try {
        await client.query('begin')
        const result = await run({ query: on(client) })
        await client.query('commit')
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
      const listening = listenOn(url, nameOf(channel), onNotice)
      return { [Symbol.asyncDispose]: owned(() => Promise.resolve(listening[Symbol.asyncDispose]())) }
    },
    hold: async (first, second) => {
      const held = await holdOn(url, first, second)
      return held && { ...held, release: owned(held.release) }
    },
    close: async () => {
      await Promise.all([...own].map((end) => end()))
      await pool.end()
    },
  }
}

/** LISTEN takes no parameter: the name becomes part of its text. */
function nameOf(channel: string): string {
  if (!/^[a-z_]{1,60}$/.test(channel)) throw new RangeError('A channel is named with small letters and underscores.')
  return channel
}

/** Node's Buffer is cut down to a plain Uint8Array, so that both drivers give the same. */
function parserOf(oid: number, format?: string): (text: string) => unknown {
  if (oid === types.INT8) return BigInt
  if (oid === types.TIMESTAMPTZ || oid === types.NUMERIC) return (text) => text
  if (oid === types.BYTEA) return (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'))
  return pg.types.getTypeParser(oid, format as 'text')
}
