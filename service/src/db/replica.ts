/**
 * Lists from a second PostgreSQL that follows the first (spec §4.9), while it is up and lags only a little. The first one answers
 * whenever the replica fails.
 */
import { withDeadline } from '../lib/async/deadline.ts'
import { sleep } from '../lib/async/sleep.ts'
import { isDatabaseUnavailable, reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { memoize } from '../lib/memoize.ts'
import type { Database } from './database.ts'
import { isLockTimeout, isTimeout } from './errors.ts'
import { isOneDatabase, OtherDatabaseError } from './postgres/identity.ts'

/** The database that lists are read from. */
type ListDatabase = Pick<Database, 'query' | 'transaction' | 'dialect'>

export type ReplicaStats = Readonly<{ up: boolean; reads: Readonly<Record<'replica' | 'primary', number>> }>

export type ReadReplica = ReturnType<typeof createReadReplica>

/** The replica is left out when it lacks what the first database had so long ago, in milliseconds. */
const maxLagMs = 5_000
/** Time for one check of both databases. */
const checkTimeoutMs = 3_000

/** Connections to the replica. A balancer may lead each to another server, so that a check looks at all of them. */
const connections = 10

/** The progress of a database: block of the index, and newest event of the outbox. */
type Position = Readonly<{ number: bigint; seq: bigint }>

export function createReadReplica({
  primary,
  open,
  log,
  now = () => performance.now(),
  checkMs = 1_000,
}: {
  readonly primary: Database
  readonly open: (options: { readonly poolSize: number }) => Promise<Database>
  readonly log: Log
  /** Monotonic milliseconds. */
  readonly now?: () => number
  readonly checkMs?: number
}) {
  const reads = { replica: 0, primary: 0 }
  const closing = new AbortController()
  let replica: Database | undefined
  let state: 'new' | 'up' | 'down' = 'new'
  /** A position of the first database, and when it was there: the replica must reach it in time. */
  let mark: { readonly at: number; readonly position: Position } | undefined
  let checking: Promise<void> | undefined

  async function keepChecking(): Promise<void> {
    while (!closing.signal.aborted) {
      await check().catch((error: unknown) =>
        setDown(reasonOf(error), error instanceof OtherDatabaseError ? log.error : log.warn),
      )
      await sleep(checkMs, { ref: false, signal: closing.signal })
    }
  }

  async function check(): Promise<void> {
    const at = now()
    const follower = (replica ??= await openSame())
    const looks = Array.from({ length: connections }, () => readPosition(follower))
    const both = Promise.all([Promise.all(looks).then(lowest), readPosition(primary)])
    const [there, here] = await withDeadline(both, checkTimeoutMs, { ref: false })
    mark ??= { at, position: here }
    // A reorganisation takes the first database back as well: equal positions lack nothing.
    const isEven = there.number === here.number && there.seq === here.seq
    const isLate = !isEven && at - mark.at > maxLagMs
    if (isLate) setDown('it lags')
    if (!isEven && (there.number < mark.position.number || there.seq < mark.position.seq)) return
    mark = { at, position: here }
    if (isLate) return // it has by now what the first database had too long ago
    if (state !== 'up') log.info('lists are read from the replica')
    state = 'up'
  }

  async function openSame(): Promise<Database> {
    const opened = await open({ poolSize: connections })
    try {
      if (await isOneDatabase(primary.query, opened.query)) return opened
      throw new OtherDatabaseError('DATABASE_READ_URL')
    } catch (error) {
      await opened.close()
      throw error
    }
  }

  function setDown(reason: string, write = log.warn): void {
    if (state !== 'down' && !closing.signal.aborted) write('read replica left out', { reason })
    state = 'down'
  }

  async function read<T>(from: (database: ListDatabase) => Promise<T>): Promise<T> {
    if (state === 'up' && replica !== undefined) {
      try {
        const answer = await from(replica)
        reads.replica += 1
        return answer
      } catch (error) {
        if (isTimeout(error)) throw error // the first database would take as long
        if (isDatabaseUnavailable(error) && !isLockTimeout(error)) setDown(reasonOf(error))
      }
    }
    reads.primary += 1
    return from(primary)
  }

  return {
    /** Returns the database for lists. All that `view` asks for one of its reads comes from the same of the two databases. */
    over(view: (database: ListDatabase) => ListDatabase): ListDatabase {
      const viewOf = memoize(view, { max: 2 })
      return {
        dialect: primary.dialect,
        query: (text, values) => read((database) => viewOf(database).query(text, values)),
        transaction: (run) => read((database) => viewOf(database).transaction(run)),
      }
    },
    stats: (): ReplicaStats => ({ up: state === 'up', reads: { ...reads } }),
    /**
     * Begins to check the replica; until then the first database answers. It always does for a cluster: a standby of the coordinator lags,
     * and reads shards of workers that do not, so that its cursor says nothing of their rows.
     */
    start(): void {
      if (primary.dialect !== 'citus') checking ??= keepChecking()
      else log.error('lists of a cluster have no replica', { remedy: 'remove DATABASE_READ_URL' })
    },
    async close(): Promise<void> {
      closing.abort()
      await checking
      await replica?.close()
    },
  }
}

function lowest(positions: readonly Position[]): Position {
  return positions.reduce((one, other) => ({
    number: one.number < other.number ? one.number : other.number,
    seq: one.seq < other.seq ? one.seq : other.seq,
  }))
}

async function readPosition(database: ListDatabase): Promise<Position> {
  const [row] = await database.query<Position>(
    `select coalesce((select number from index_cursor), -1) as number, coalesce((select max(seq) from outbox), 0) as seq`,
  )
  return row ?? { number: -1n, seq: 0n }
}
