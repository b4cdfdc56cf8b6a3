/** What subscribers hear (spec §6), in the order in which it was committed; a writer inserts its row in the transaction that causes it. */
import type { Sql } from './database.ts'

/** `transfer`: its status changed, payload {id, status}. `tap`: a bound item was tapped, payload {at}, RFC 3339. */
export type OutboxEvent = Readonly<{ seq: bigint; topic: string; tokenId: bigint; payload: unknown }>

export function outboxStore(sql: Sql) {
  return {
    /** Events after `seq`, the oldest first. None of them can appear later below one that was already given. */
    after: async (seq: bigint, limit: number): Promise<OutboxEvent[]> => {
      const rows = await sql.query<{ seq: bigint; topic: string; token_id: string; payload: unknown }>(
        'select seq, topic, token_id, payload from outbox where seq > $1 order by seq limit $2',
        [seq, limit],
      )
      return rows.map(({ token_id, ...event }) => ({ ...event, tokenId: BigInt(token_id) }))
    },
    /** The last `seq` there is, 0 when there is none: events are trimmed after an hour. */
    newest: async (): Promise<bigint> => {
      const [row] = await sql.query<{ seq: bigint }>('select coalesce(max(seq), 0) as seq from outbox')
      return row?.seq ?? 0n
    },
  }
}

/** The channel that is notified, without a payload, after every transaction that wrote an event. */
export const outboxChannel = 'touchstone_outbox'
