/**
 * Sessions of PostgreSQL outside the pool, for what lives as long as a session: LISTEN and session locks. A session is checked at
 * regular times, because a network that drops packets ends no connection.
 */
import { Socket } from 'node:net'
import pg from 'pg'
import { createQueue } from '../../lib/async/concurrency.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { backoff } from '../../lib/async/retry.ts'
import { sleep } from '../../lib/async/sleep.ts'
import type { HeldLock, Lock } from '../locks.ts'
import type { Servers } from './servers.ts'

/** A pooler answers under a URL that must lead to a session of PostgreSQL's own. */
export class PooledSessionError extends Error {
  constructor() {
    super(
      'A connection pooler such as PgBouncer stands before PostgreSQL: set DATABASE_DIRECT_URL to PostgreSQL itself, because notices and locks need sessions of their own.',
    )
    this.name = 'PooledSessionError'
  }
}

/** Runs `work` in a session. Throws PooledSessionError where a pooler stands before PostgreSQL, and what the driver throws. */
export async function inOwnSession<T>(servers: Servers, work: (query: SessionQuery) => Promise<T>): Promise<T> {
  const session = await openSession({ servers, checkMs: 1_000 })
  try {
    return await work(session.query)
  } finally {
    await session.end()
  }
}

type SessionQuery = Awaited<ReturnType<typeof openSession>>['query']

/** Takes a session lock; `null` while another process holds it. Throws what the driver throws when PostgreSQL cannot be reached. */
export async function holdOn(servers: Servers, lock: Lock): Promise<HeldLock | null> {
  const session = await openSession({ servers, checkMs: 1_000 })
  const [row] = await session
    .query<{ held: boolean }>('select pg_try_advisory_lock($1, $2) as held', lock)
    .catch(async (error: unknown) => {
      await session.end()
      throw error
    })
  if (row?.held !== true) {
    await session.end()
    return null
  }
  return {
    lost: session.lost,
    release: async () => {
      // The end of a session frees its lock only when the server notices it. The next holder need not wait for that.
      await session.query('select pg_advisory_unlock($1, $2)', lock).catch(() => {})
      await session.end()
    },
  }
}

/**
 * Calls `onNotice` for every notice on the channel, and after every (re)connection, because notices sent in between are lost. A session
 * that ends is replaced, after at most 5 s; it never throws.
 */
export function listenOn(servers: Servers, channel: string, onNotice: () => void): AsyncDisposable {
  checkChannel(channel)
  const closing = new AbortController()
  const { signal } = closing
  const closed = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))

  async function keepListening(): Promise<void> {
    let pausesMs = backoff(50, 5_000)
    while (!signal.aborted) {
      if (await listenOnce()) pausesMs = backoff(50, 5_000)
      await sleep(pausesMs.next().value, { signal })
    }
  }

  /** Returns whether it could listen until the session ended. */
  async function listenOnce(): Promise<boolean> {
    const session = await openSession({ servers, checkMs: 5_000, onNotice }).catch(() => null)
    if (session === null) return false
    try {
      await session.query(`listen ${channel}`)
      onNotice()
      await Promise.race([session.lost, closed])
      return true
    } catch {
      return false
    } finally {
      await session.end()
    }
  }

  const ended = keepListening()
  return {
    [Symbol.asyncDispose]: () => {
      closing.abort()
      return ended
    },
  }
}

/** Checks a name that becomes part of a statement: LISTEN takes no parameter. */
export function checkChannel(name: string): void {
  if (!/^[a-z_]{1,60}$/.test(name)) throw new RangeError('A channel name has small letters and underscores only.')
}

type SessionOptions = { readonly servers: Servers; readonly checkMs: number; readonly onNotice?: () => void }

/** Opens a session that is checked every `checkMs`. `lost` resolves when it has ended or left a query unanswered for 2 s. */
async function openSession({ servers, checkMs, onNotice }: SessionOptions) {
  const url = await servers.writable()
  const socket = new Socket()
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 3_000,
    query_timeout: 2_000,
    application_name: 'touchstone',
    stream: () => socket,
  })
  const { promise: lost, resolve: lose } = Promise.withResolvers<void>()
  let ending = false
  const drop = () => {
    if (!ending) servers.doubt(url)
    socket.destroy()
    lose()
  }
  client.on('error', drop)
  client.on('end', drop)
  if (onNotice !== undefined) client.on('notification', onNotice)
  const inTurn = createQueue() // checks come between the queries of the user
  const query = <Row>(text: string, values: readonly unknown[] = []) =>
    inTurn(async () => (await client.query(text, [...values])).rows as Row[])
  try {
    await client.connect()
    const [session] = await query<{ pid: number }>(keepAliveStatement)
    // A pooler makes up the process id of its sessions. Two processes would both get a lock there.
    if (session?.pid !== (client as { processID?: unknown }).processID) throw new PooledSessionError()
  } catch (error) {
    drop()
    throw error
  }
  let checking = false
  const checks = setInterval(() => {
    if (checking) return
    checking = true
    void query('select 1').then(() => (checking = false), drop)
  }, checkMs)
  void lost.then(() => clearInterval(checks))
  const end = async (): Promise<void> => {
    ending = true
    clearInterval(checks)
    client.end().catch(() => {})
    await withDeadline(lost, 1_000, { onTimeout: drop })
  }
  return { query, lost, end }
}

/** The server ends the session of a vanished machine after about 11 s instead of hours, and frees its locks. */
const keepAliveStatement = `select pg_backend_pid() as pid, set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
  set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '11000', false)`
