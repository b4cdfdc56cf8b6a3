/** Every advisory lock of the database, named once. Released migrations contain these numbers too, so they never change. */
export type Lock = readonly [first: number, second: number]

export const locks = {
  migrations: [84532, 1],
  /** Writers of the outbox share it until they commit: migrations 0005 and 0011. */
  outbox: [84532, 2],
  indexLeader: [84532, 3],
  /** A process that reads and extends the file of signed audit heads holds it. */
  auditHeads: [84532, 4],
  /** A process that reads and replaces a key file holds it. */
  keyFiles: [84532, 5],
  /** The command that distributes the tables over a cluster holds it. Processes that start then end. */
  distribution: [84532, 6],
  /** A process that imports tags holds it. */
  imports: [84532, 7],
  /** A process that takes back the taps of revoked batches holds it. */
  revokedTaps: [84532, 8],
} as const satisfies Record<string, Lock>

/** Returns the lock of one account that sends transactions; `number` is derived from its address. */
export const accountLock = (number: number): Lock => [84532003, number]

const holderClass = 84532004

/** Returns the session lock of a process that settles payments; `number` is drawn at its start, above 0. */
export const holderLock = (number: number): Lock => [holderClass, number]

/** SQL for whether a lock is of this database. */
const isHere = 'database = (select oid from pg_database where datname = current_database())'

/**
 * Returns the SQL condition that some session holds the lock of the number in `column`, null for none. PostgreSQL counts the cost of a list
 * of locks once, and that of `exists` for each row: from a few thousand on it would compile the statement, which takes a second.
 */
export const isLockHeld = (column: string): string =>
  `${column}::bigint::oid in (select objid from pg_locks where locktype = 'advisory' and granted and classid = ${holderClass} and ${isHere})`

/** Returns the statement for the transactions that share a lock. It needs no lock itself. */
export const holdersStatement = ([first, second]: Lock): string =>
  `select virtualtransaction as holder from pg_locks where locktype = 'advisory' and granted and mode = 'ShareLock'
     and classid = ${first} and objid = ${second} and ${isHere}`

/** Returns the statement that says whether no session holds a lock. */
export const freeStatement = ([first, second]: Lock): string =>
  `select pg_try_advisory_xact_lock_shared(${first}, ${second}) as free`

/** Selects whether a service holds a lock of this database: one that leads the index, or a gateway. Others cannot be seen. */
export const serviceStatement = `select exists (select from pg_locks where locktype = 'advisory' and granted
     and ((classid = ${locks.indexLeader[0]} and objid = ${locks.indexLeader[1]}) or classid = ${holderClass})
     and ${isHere}) as runs`

/** Returns the statement that waits for a lock and holds it until the transaction ends. */
export const lockStatement = ([first, second]: Lock): string => `select pg_advisory_xact_lock(${first}, ${second})`

/** Runs `work` under a lock of the database. PGlite needs none, because no other process can open it. */
export async function whileLocked<T>(
  { dialect, transaction }: LockingDatabase,
  lock: Lock,
  work: () => Promise<T>,
): Promise<T> {
  if (dialect === 'pglite') return work()
  return transaction(async (sql) => {
    await sql.query(lockStatement(lock))
    return work()
  })
}

type LockingDatabase = Readonly<{
  dialect: string
  transaction: <T>(run: (sql: { query: (text: string) => Promise<unknown> }) => Promise<T>) => Promise<T>
}>

/** A lock that one process holds among all processes of a database, for longer than a transaction. */
export type HeldLock = {
  /** Resolves at most 3 s after the database may have given the lock to another process. The holder must stop then. */
  readonly lost: Promise<void>
  readonly release: () => Promise<void>
}

/** Creates locks within one process, for a database that no other process can open (PGlite). It returns `null` for a lock that is held. */
export function localLocks(): (lock: Lock) => Promise<HeldLock | null> {
  const held = new Set<string>()
  return async (lock) => {
    const name = lock.join(' ')
    if (held.has(name)) return null
    held.add(name)
    const { promise: lost, resolve } = Promise.withResolvers<void>()
    return {
      lost,
      release: async () => {
        held.delete(name)
        resolve()
      },
    }
  }
}
