/** A lock that one process holds among all of them, such as that of the indexer's leader: PostgreSQL's session lock. */
import { openConnection } from './database-connection.ts'

export type HeldLock = {
  /** Resolves at most 3 s after the database may have given the lock to another: the holder stops then. */
  readonly lost: Promise<void>
  readonly release: () => Promise<void>
}

/** Null: another holds it. Both numbers are 32-bit. It throws what the driver throws when PostgreSQL cannot be reached. */
export async function holdOn(url: string, first: number, second: number): Promise<HeldLock | null> {
  const connection = await openConnection({ url, checkMs: 1_000 })
  const [row] = await connection
    .query<{ held: boolean }>('select pg_try_advisory_lock($1, $2) as held', [first, second])
    .catch(async (error: unknown) => {
      await connection.end()
      throw error
    })
  if (row?.held !== true) {
    await connection.end()
    return null
  }
  return {
    lost: connection.lost,
    release: async () => {
      // Ending the connection frees the lock only when the server has noticed; the next holder need not wait for that.
      await connection.query('select pg_advisory_unlock($1, $2)', [first, second]).catch(() => {})
      await connection.end()
    },
  }
}

/** Within one process, where nobody else can be (PGlite): the first asker holds the lock until it lets go. */
export function localLocks(): (first: number, second: number) => Promise<HeldLock | null> {
  const taken = new Set<string>()
  return async (first, second) => {
    const name = `${first} ${second}`
    if (taken.has(name)) return null
    taken.add(name)
    const { promise: lost, resolve } = Promise.withResolvers<void>()
    return {
      lost,
      release: async () => {
        taken.delete(name)
        resolve()
      },
    }
  }
}
