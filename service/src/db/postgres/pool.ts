/** PostgreSQL by URL, also behind PgBouncer in transaction mode: requests share a pool, sessions have connections of their own. */
import { Socket } from 'node:net'
import { types } from '@electric-sql/pglite'
import pg from 'pg'
import { isDatabaseUnavailable } from '../../lib/errors.ts'
import { hasCitus, isOfLostNode } from '../cluster/nodes.ts'
import type { SqlQuery } from '../columns.ts'
import { isLimit, isOfServer, serverFailure } from '../errors.ts'
import type { Lock } from '../locks.ts'
import { assertFit, PinnedClient } from './fitness.ts'
import { isOneDatabase, OtherDatabaseError } from './identity.ts'
import { createServers, type Servers } from './servers.ts'
import { holdOn, inOwnSession, listenOn } from './session.ts'

export type PostgresOptions = {
  /** One server, or a list of which one takes writes: see `parseServers`. */
  readonly url: string
  /** URL of the sessions that LISTEN and hold locks. A pooler may stand before `url`, and must not stand before this one; left out: `url`. */
  readonly directUrl?: string
  readonly poolSize?: number
  readonly statementTimeoutMs?: number
}

/** `statementTimeoutMs` is the limit of each statement of one transaction; the default is that of all statements. */
export type TransactionOptions = { readonly statementTimeoutMs?: number }

/**
 * Opens a pool. Throws what the driver throws, PooledSessionError where `directUrl` leads to a pooler, OtherDatabaseError where it leads to
 * another database, and UnfitDatabaseError for settings that would change answers.
 */
export async function openPostgres({ url, directUrl, poolSize = 10, statementTimeoutMs = 5_000 }: PostgresOptions) {
  const servers = createServers(url)
  const sessionServers = directUrl === undefined || directUrl === url ? servers : createServers(directUrl)
  const pools = await openPools(servers, { poolSize, statementTimeoutMs })
  const sessions = new Set<() => Promise<void>>()
  /** Makes sure that a session outside the pool ends with the database at the latest. */
  const owned = (end: () => Promise<void>) => {
    sessions.add(end)
    return () => {
      sessions.delete(end)
      return end()
    }
  }
  const check = async () => {
    const isOne =
      directUrl === undefined ||
      (await inOwnSession(sessionServers, (session) => pools.use((pool) => isOneDatabase(on(pool), session))))
    if (!isOne) throw new OtherDatabaseError('DATABASE_DIRECT_URL')
    return pools.use(async (pool) => {
      const found = await dialectOf(on(pool))
      await assertFit(on(pool), found)
      return found
    })
  }
  const dialect = await check().catch(async (error: unknown) => {
    await pools.close()
    throw error
  })
  return {
    dialect,
    query: <Row>(text: string, values?: readonly unknown[]) => pools.use((pool) => on(pool)<Row>(text, values)),
    exec: (script: string) => pools.use(async (pool) => void (await pool.query(script).catch(rethrow))),
    transaction: async <T>(run: (sql: { query: SqlQuery }) => Promise<T>, options?: TransactionOptions): Promise<T> => {
      const { client, url: server } = await pools.use(async (pool, url) => ({
        client: await pool.connect().catch(rethrow),
        url,
      }))
      return pools.watch(server, transactionOn(client, run, options))
    },
    listen: (channel: string, onNotice: () => void) => {
      const listening = listenOn(sessionServers, channel, onNotice)
      return { [Symbol.asyncDispose]: owned(() => Promise.resolve(listening[Symbol.asyncDispose]())) }
    },
    hold: async (lock: Lock) => {
      const held = await holdOn(sessionServers, lock)
      return held && { ...held, release: owned(held.release) }
    },
    close: async () => {
      await Promise.all([...sessions].map((end) => end()))
      await pools.close()
    },
  }
}

/** A cluster whose tables are not distributed yet takes the statements of PostgreSQL. */
async function dialectOf(query: SqlQuery): Promise<'postgres' | 'citus'> {
  if (!(await hasCitus(query))) return 'postgres'
  const distributed = await query(`select 1 from pg_dist_partition where logicalrelid = to_regclass('tag')`)
  return distributed.length > 0 ? 'citus' : 'postgres'
}

async function transactionOn<T>(
  client: pg.PoolClient,
  run: (sql: { query: SqlQuery }) => Promise<T>,
  { statementTimeoutMs }: TransactionOptions = {},
): Promise<T> {
  const noteLoss = () => {} // the next statement fails; without a listener a connection that dies between two ends the process
  client.on('error', noteLoss)
  try {
    await client.query('begin').catch(rethrow)
    if (statementTimeoutMs !== undefined)
      await client.query(`set local statement_timeout = ${statementTimeoutMs}`).catch(rethrow)
    const result = await run({ query: on(client, statementTimeoutMs) })
    const { command } = await client.query('commit').catch(rethrow)
    // PostgreSQL answers so, without an error, where a statement has failed and `run` went on.
    if (command !== 'COMMIT') throw new Error('The transaction was rolled back: a statement of it had failed.')
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
}

type PoolOptions = Required<Pick<PostgresOptions, 'poolSize' | 'statementTimeoutMs'>>

/** Opens a pool on the server that takes writes, and a new one when another server does. */
async function openPools(servers: Servers, options: PoolOptions) {
  const first = await servers.writable()
  const startup = await startupOf(first, options)
  const closing = new Set<Promise<void>>()
  const poolOn = (url: string) => ({ url, ...createPool(url, options, startup, () => servers.doubt(url)) })
  let current = poolOn(first)

  async function poolOfWritable(): Promise<typeof current> {
    const url = await servers.writable()
    if (url !== current.url) {
      closing.add(current.end())
      current = poolOn(url)
    }
    return current
  }

  /** Notes a server that does not answer, so that all are looked at before the next use. */
  async function watch<T>(url: string, work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      if (isDatabaseUnavailable(error) && !isLimit(error)) servers.doubt(url)
      throw error
    }
  }

  return {
    watch,
    /** Runs one statement, or takes a connection. Where nothing was sent and another server takes writes by now, it is asked instead. */
    async use<T>(work: (pool: pg.Pool, url: string) => Promise<T>): Promise<T> {
      const { url, pool } = await poolOfWritable()
      try {
        return await watch(url, work(pool, url))
      } catch (error) {
        if (!isConnectionRefused(error) || (await servers.writable()) === url) throw error
        const other = await poolOfWritable()
        return watch(other.url, work(other.pool, other.url))
      }
    },
    close: async () => {
      await Promise.all([...closing, current.end()])
    },
  }
}

function isConnectionRefused(error: unknown): boolean {
  return (
    isDatabaseUnavailable(error) &&
    ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
  )
}

/** Returns the parameters that a connection begins with. PgBouncer rejects them: then those of the role are in force. */
async function startupOf(url: string, options: PoolOptions): Promise<pg.PoolConfig> {
  const pinned = { statement_timeout: options.statementTimeoutMs, Client: PinnedClient }
  const refusal = await refusalOf(createPool(url, options, pinned))
  if (refusal === null) return pinned
  if (!isParameterRefused(refusal)) return rethrow(refusal)
  const fault = await refusalOf(createPool(url, options, {}))
  return fault === null ? {} : rethrow(fault)
}

function isParameterRefused(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('unsupported startup parameter')
}

/** Connections that are in use, or that the server has not closed, have so long when the pool ends. */
const endMs = 1_000

function createPool(
  url: string,
  { poolSize, statementTimeoutMs }: PoolOptions,
  startup: pg.PoolConfig,
  onLoss = () => {},
): { readonly pool: pg.Pool; readonly end: () => Promise<void> } {
  const sockets = new Set<Socket>()
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: 3_000,
    query_timeout: queryTimeoutMs(statementTimeoutMs),
    application_name: 'touchstone',
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
    stream: () => {
      const socket = new Socket()
      sockets.add(socket)
      return socket.once('close', () => sockets.delete(socket))
    },
    ...startup,
  })
  pool.on('error', onLoss) // an idle connection died; the next query opens another
  /** A server that hangs closes nothing, and each socket would keep the process from ending. */
  async function end(): Promise<void> {
    const cut = setTimeout(() => sockets.forEach((socket) => socket.destroy()), endMs)
    await pool.end()
    await Promise.all([...sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
    clearTimeout(cut)
  }
  return { pool, end }
}

/** Returns why a pool gets no connection, and ends it. */
async function refusalOf({ pool, end }: ReturnType<typeof createPool>): Promise<unknown> {
  try {
    await pool.query('select 1')
    return null
  } catch (error) {
    return error
  } finally {
    await end()
  }
}

function on(runner: pg.Pool | pg.PoolClient, statementTimeoutMs?: number): SqlQuery {
  const limit = statementTimeoutMs === undefined ? {} : { query_timeout: queryTimeoutMs(statementTimeoutMs) }
  return async <Row>(text: string, values: readonly unknown[] = []) =>
    (await runner.query({ ...limit, text, values: [...values] }).catch(rethrow)).rows as Row[]
}

/** Returns how long the driver waits for an answer: longer than the server takes to end the statement. */
function queryTimeoutMs(statementTimeoutMs: number): number {
  return statementTimeoutMs + 1_000
}

/** Throws an error of the driver. It is DATABASE_UNAVAILABLE when the server failed and not the statement. */
function rethrow(error: unknown): never {
  const isOfStatement = error instanceof pg.DatabaseError && !isOfServer(error) && !isOfLostNode(error)
  if (isOfStatement || error instanceof TypeError || error instanceof RangeError) throw error
  throw serverFailure(error)
}

/** Copies Node's Buffer into a plain Uint8Array, as PGlite returns. */
function parserOf(oid: number, format?: string): (text: string) => unknown {
  if (oid === types.INT8) return BigInt
  if (oid === types.TIMESTAMPTZ || oid === types.NUMERIC) return (text) => text
  if (oid === types.BYTEA) return (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'))
  return pg.types.getTypeParser(oid, format as 'text')
}
