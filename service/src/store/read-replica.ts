/**
 * Lists from a second PostgreSQL that follows the first (spec §4.9): used while it is there and close behind. Whatever it does not
 * answer, or would answer too late, the first one answers.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Database } from './database.ts'

/** What lists are read from. */
export type ListDatabase = Pick<Database, 'query' | 'transaction' | 'dialect'>

export type ReplicaStats = Readonly<{ up: boolean; reads: Readonly<Record<'replica' | 'primary', number>> }>

export type ReadReplica = Readonly<{
  database: ListDatabase
  stats: () => ReplicaStats
  /** Begins to look; until then the first database answers. */
  start: () => void
  close: () => Promise<void>
}>

/** A replica is left out when it lacks what the first database had so long ago, in milliseconds. */
const replicaBoundMs = 5_000
const checkMs = 1_000
/** Of one look at both. */
const lookMs = 3_000

/** How far a database is: block of the index, and the newest event that subscribers hear (a tap, a transfer). */
type Place = Readonly<{ number: bigint; seq: bigint }>

export function createReadReplica({
  primary,
  open,
  log,
}: {
  readonly primary: Database
  readonly open: () => Promise<Database>
  readonly log: Log
}): ReadReplica {
  const reads = { replica: 0, primary: 0 }
  const closing = new AbortController()
  let replica: Database | undefined
  let state: 'new' | 'up' | 'down' = 'new'
  /** Where the first one was, and when: the replica must get there in time. */
  let mark: { readonly at: number; readonly place: Place } | undefined
  let checking: Promise<void> | undefined

  async function check(): Promise<void> {
    while (!closing.signal.aborted) {
      await look().catch((error: unknown) => setDown(reasonOf(error)))
      await delay(checkMs, undefined, { ref: false, signal: closing.signal }).catch(() => {})
    }
  }

  async function look(): Promise<void> {
    const asked = performance.now()
    replica ??= await open()
    const [there, here] = await inTime(Promise.all([placeOf(replica), placeOf(primary)]))
    mark ??= { at: asked, place: here }
    // A reorganisation takes the first one back as well: where both are the same, nothing is missing.
    const isEven = there.number === here.number && there.seq === here.seq
    if (isEven || (there.number >= mark.place.number && there.seq >= mark.place.seq)) {
      mark = { at: asked, place: here }
      if (state !== 'up') log.info('lists are read from the replica')
      state = 'up'
    } else if (asked - mark.at > replicaBoundMs) setDown('it lags')
  }

  function setDown(reason: string): void {
    if (state !== 'down' && !closing.signal.aborted) log.warn('read replica left out', { reason })
    state = 'down'
  }

  async function read<T>(from: (database: ListDatabase) => Promise<T>): Promise<T> {
    if (state === 'up' && replica !== undefined) {
      try {
        const answer = await from(replica)
        reads.replica += 1
        return answer
      } catch (error) {
        const code = codeOf(error)
        if (code === '57014') throw error // it took too long, and would there as well
        if (!isAboutTheStatement(code)) setDown(reasonOf(error))
      }
    }
    reads.primary += 1
    return from(primary)
  }

  return {
    database: {
      dialect: primary.dialect,
      query: (text, values) => read((database) => database.query(text, values)),
      transaction: (run) => read((database) => database.transaction(run)),
    },
    stats: () => ({ up: state === 'up', reads: { ...reads } }),
    start: () => void (checking ??= check()),
    async close() {
      closing.abort()
      await checking
      await replica?.close()
    },
  }
}

async function placeOf(database: ListDatabase): Promise<Place> {
  const [row] = await database.query<Place>(
    `select coalesce((select number from index_cursor), -1) as number, coalesce((select max(seq) from outbox), 0) as seq`,
  )
  return row ?? { number: -1n, seq: 0n }
}

/** SQLSTATE, or nothing when the error did not come from the server. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

/** Such as a row that replay has taken away (40001), or a table that has not arrived yet; not a connection that is gone (08, 57P). */
function isAboutTheStatement(code: string): boolean {
  return code !== '' && !code.startsWith('08') && !code.startsWith('57P')
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const over = new AbortController()
  const late = delay(lookMs, undefined, { ref: false, signal: over.signal }).then(() => {
    throw new Error(`no answer within ${lookMs / 1000} s`)
  })
  late.catch(() => {}) // ended before
  return Promise.race([work, late]).finally(() => over.abort())
}
