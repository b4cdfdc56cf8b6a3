/** PostgreSQL by URL, also behind PgBouncer in transaction mode: requests share a pool, sessions have connections of their own. */
import { types } from '@electric-sql/pglite'
import pg from 'pg'
import { databaseUnavailable } from '../../lib/errors.ts'
import type { Lock } from '../locks.ts'
import { assertOwnSession, holdOn, listenOn } from './session.ts'

export type PostgresOptions = {
  readonly url: string
  /** URL of the sessions that LISTEN and hold locks. A pooler may stand before `url`, and must not stand before this one; left out: `url`. */
  readonly directUrl?: string
  readonly poolSize?: number
  readonly statementTimeoutMs?: number
}

type Query = <Row>(text: string, values?: readonly unknown[]) => Promise<Row[]>

/** Opens a pool. Throws what the driver throws, and PooledSessionError where `directUrl` leads to a pooler. */
export async function openPostgres({ url, directUrl, poolSize = 10, statementTimeoutMs = 5_000 }: PostgresOptions) {
  const pool = await openPool({ url, poolSize, statementTimeoutMs })
  const sessionUrl = directUrl ?? url
  const sessions = new Set<() => Promise<void>>()
  /** Makes sure that a session outside the pool ends with the database at the latest. */
  const owned = (end: () => Promise<void>) => {
    sessions.add(end)
    return () => {
      sessions.delete(end)
      return end()
    }
  }
  if (directUrl !== undefined) {
    await assertOwnSession(directUrl).catch(async (error: unknown) => {
      await pool.end()
      throw error
    })
  }
  return {
    dialect: 'postgres' as const,
    query: on(pool),
    exec: async (script: string) => void (await pool.query(script).catch(rethrow)),
    transaction: async <T>(run: (sql: { query: Query }) => Promise<T>): Promise<T> => {
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
    listen: (channel: string, onNotice: () => void) => {
      const listening = listenOn(sessionUrl, channel, onNotice)
      return { [Symbol.asyncDispose]: owned(() => Promise.resolve(listening[Symbol.asyncDispose]())) }
    },
    hold: async (lock: Lock) => {
      const held = await holdOn(sessionUrl, lock)
      return held && { ...held, release: owned(held.release) }
    },
    close: async () => {
      await Promise.all([...sessions].map((end) => end()))
      await pool.end()
    },
  }
}

type PoolOptions = Required<Pick<PostgresOptions, 'url' | 'poolSize' | 'statementTimeoutMs'>>

/** Opens the pool and its first connection. PgBouncer rejects statement_timeout at the start of a connection: then the role's is in force. */
async function openPool(options: PoolOptions): Promise<pg.Pool> {
  const limited = createPool(options, { statement_timeout: options.statementTimeoutMs })
  const refusal = await refusalOf(limited)
  if (refusal === null) return limited
  const pooled = isParameterRefused(refusal) ? createPool(options) : null
  const fault = pooled === null ? refusal : await refusalOf(pooled)
  if (pooled !== null && fault === null) return pooled
  return rethrow(fault)
}

function isParameterRefused(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('unsupported startup parameter')
}

function createPool({ url, poolSize, statementTimeoutMs }: PoolOptions, startup: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: 3_000,
    query_timeout: statementTimeoutMs + 1_000,
    application_name: 'touchstone',
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
    ...startup,
  })
  pool.on('error', () => {}) // an idle connection died; the next query opens another
  return pool
}

/** Returns why the pool gets no connection, and ends it then. */
async function refusalOf(pool: pg.Pool): Promise<unknown> {
  try {
    await pool.query('select 1')
    return null
  } catch (error) {
    await pool.end()
    return error
  }
}

function on(runner: pg.Pool | pg.PoolClient): Query {
  return async <Row>(text: string, values: readonly unknown[] = []) =>
    (await runner.query(text, [...values]).catch(rethrow)).rows as Row[]
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
