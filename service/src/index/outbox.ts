/** Events for subscribers (spec §6), in the order of their commits. A writer inserts its row in the transaction that causes it. */
import type { Database, Sql } from '../db/database.ts'
import { locks, lockStatement } from '../db/locks.ts'
import type { TransferRow } from './queries/transfers.ts'

/** `transfer`: its status changed; with its last values when a reorganisation removed it. `tap`: a bound item was tapped `at`, RFC 3339. */
type Payloads = {
  transfer: Pick<TransferRow, 'id' | 'status'> &
    (Pick<TransferRow, 'from' | 'to' | 'initiatedAt' | 'initiatedTx'> | Record<never, never>)
  tap: { readonly at: string }
}
type Topic = keyof Payloads
export type OutboxEvent<Of extends Topic = Topic> = {
  [Name in Of]: Readonly<{ seq: bigint; topic: Name; tokenId: bigint; payload: Payloads[Name] }>
}[Of]

export function outboxStore(database: Pick<Database, 'query' | 'transaction'>) {
  /**
   * Reads when every number assigned so far is committed: writers share the lock until they commit. Later writers wait behind this one,
   * so it does not wait long for a writer that hangs; it throws, and readers repeat.
   */
  const readCommitted = <Row>(text: string, values: readonly unknown[]): Promise<Row[]> =>
    database.transaction(async (sql) => {
      await sql.query('set local lock_timeout = 500')
      await sql.query(lockStatement(locks.outbox))
      return sql.query<Row>(text, values)
    })
  return {
    /** Returns events after `seq`, the oldest first. No later call returns an event below one that was returned. */
    async after(seq: bigint, limit: number): Promise<OutboxEvent[]> {
      if ((await database.query('select 1 from outbox where seq > $1 limit 1', [seq])).length === 0) return []
      const rows = await readCommitted<OutboxEvent & { tokenId: string }>(
        'select seq, topic, token_id as "tokenId", payload from outbox where seq > $1 order by seq limit $2',
        [seq, limit],
      )
      return rows.map((event) => ({ ...event, tokenId: BigInt(event.tokenId) }))
    },
    /** Returns the last `seq`, or 0 without events: they are deleted after an hour. */
    async newest(): Promise<bigint> {
      const [row] = await readCommitted<{ seq: bigint }>('select coalesce(max(seq), 0) as seq from outbox', [])
      return row?.seq ?? 0n
    },
  }
}

/** The channel that is notified, without a payload, after every transaction that wrote an event. */
export const outboxChannel = 'touchstone_outbox'

/**
 * Returns a function that notifies readers of events of taps, after their commit. Calls during a notice become one more notice. A lost
 * notice costs a second, because readers poll too.
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
