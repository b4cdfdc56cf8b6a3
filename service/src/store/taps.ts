/** Housekeeping of the tap ledger (spec §4.4); its two statements per tap are in `tap/counter.ts`. */
import type { Sql } from './database.ts'

export function tapStore(sql: Sql) {
  return {
    /**
     * Forgets taps that were first seen more than `days` ago (90 or what the operator's law says) and returns how many, at most 10,000
     * a call. No forgotten tap verifies again: the last counter of its tag stays.
     */
    prune: async (days = 90): Promise<number> => {
      if (!(days >= 1)) throw new RangeError('Taps are kept for at least one day.')
      return (await sql.query(pruneStatement, [days])).length
    },
  }
}

const pruneStatement = `
DELETE FROM tap WHERE (uid, epoch, counter) IN (
  SELECT uid, epoch, counter FROM tap WHERE first_seen < clock_timestamp() - make_interval(secs => $1::float8 * 86400) LIMIT 10000)
RETURNING counter`
