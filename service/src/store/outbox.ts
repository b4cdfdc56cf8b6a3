/** What subscribers hear (spec §6), in the order in which it was committed; a writer inserts its row in the transaction that causes it. */
import type { Database, Sql } from './database.ts'

/** `transfer`: its status changed, payload {id, status}. `tap`: a bound item was tapped, payload {at}, RFC 3339. */
export type OutboxEvent = Readonly<{ seq: bigint; topic: string; tokenId: bigint; payload: unknown }>

export function outboxStore(database: Pick<Database, 'query' | 'transaction'>) {
  /**
   * Runs when every number that was given to an event so far is committed: writers hold the lock together, until then. Writers that come
   * later wait behind this one, so it does not wait long for a writer that hangs: it throws, and readers come again.
   */
  const whenCommitted = <T>(read: (sql: Sql) => Promise<T>): Promise<T> =>
    database.transaction(async (sql) => {
      await sql.query('set local lock_timeout = 500')
      await sql.query('select pg_advisory_xact_lock(84532, 2)')
      return read(sql)
    })
  return {
    /** Events after `seq`, the oldest first. None of them can appear later below one that was already given. */
    after: async (seq: bigint, limit: number): Promise<OutboxEvent[]> => {
      if ((await database.query('select 1 from outbox where seq > $1 limit 1', [seq])).length === 0) return []
      const rows = await whenCommitted((sql) =>
        sql.query<{ seq: bigint; topic: string; token_id: string; payload: unknown }>(
          'select seq, topic, token_id, payload from outbox where seq > $1 order by seq limit $2',
          [seq, limit],
        ),
      )
      return rows.map(({ token_id, ...event }) => ({ ...event, tokenId: BigInt(token_id) }))
    },
    /** The last `seq` there is, 0 when there is none: events are trimmed after an hour. */
    newest: async (): Promise<bigint> => {
      const [row] = await whenCommitted((sql) =>
        sql.query<{ seq: bigint }>('select coalesce(max(seq), 0) as seq from outbox'),
      )
      return row?.seq ?? 0n
    },
  }
}

/** The channel that is notified, without a payload, after every transaction that wrote an event. */
export const outboxChannel = 'touchstone_outbox'

/**
 * Tells readers of events of taps, after their commit. Notices that come while one is being sent become one. A lost notice costs a
 * second: readers look by themselves too.
 */
export function outboxNotices(sql: Sql): () => void {
  let wanted = false
  let sending = false
  async function send(): Promise<void> {
    sending = true
    while (wanted) {
      wanted = false
      await sql.query("select pg_notify($1, '')", [outboxChannel]).catch(() => {})
    }
    sending = false
  }
  return () => {
    wanted = true
    if (!sending) void send()
  }
}
