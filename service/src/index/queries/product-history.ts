/** Pages of the events of products (Product.history), the oldest first; one statement for all pages of a request. */
import type { Hex } from '@touchstone/verdict'
import type { Sql } from '../../db/database.ts'
import type { AssetEvent } from '../../domain/registry-event.ts'
import { hex, instant } from '../../db/columns.ts'

/** An event as GraphQL shows it. `timestamp` is RFC 3339 in UTC. */
export type HistoryRow = Pick<
  AssetEvent,
  | 'blockNumber'
  | 'logIndex'
  | 'blockHash'
  | 'kind'
  | 'fromState'
  | 'toState'
  | 'flags'
  | 'from'
  | 'to'
  | 'actor'
  | 'data'
> & { readonly txHash: Hex; readonly timestamp: string }

/** `after` is an event: its block and the index of its log. */
export type HistoryQuestion = {
  readonly tokenId: bigint
  readonly after: readonly [block: string, logIndex: string] | null
  readonly limit: number
}
/** `total` counts all events of the token. */
export type HistoryAnswer = { readonly rows: readonly HistoryRow[]; readonly total: number }

export function productHistoryStore(sql: Sql) {
  return {
    /** Returns the answers in the order of the questions. */
    async pages(questions: readonly HistoryQuestion[]): Promise<HistoryAnswer[]> {
      const found = await sql.query<HistoryRow & { place: number; total: bigint }>(pagesStatement, [
        questions.map(({ tokenId }) => tokenId.toString()),
        questions.map(({ after }) => after?.[0] ?? '-1'),
        questions.map(({ after }) => after?.[1] ?? '0'),
        questions.map(({ limit }) => String(limit)),
      ])
      const answers = questions.map((): { rows: HistoryRow[]; total: number } => ({ rows: [], total: 0 }))
      for (const { place, total, ...row } of found) {
        const answer = answers[Number(place) - 1]
        if (answer === undefined) continue
        answer.total = Number(total)
        if (row.blockNumber !== null) answer.rows.push(row)
      }
      return answers
    },
  }
}

export const pagesStatement = `select k.place::int as place, c.total, h.block_number as "blockNumber", h.log_index as "logIndex",
    ${hex('h.block_hash')} as "blockHash", ${hex('h.tx_hash')} as "txHash", ${instant('h.ts')} as timestamp, h.kind,
    h.from_state as "fromState", h.to_state as "toState", h.flags, ${hex('h.from_addr')} as "from", ${hex('h.to_addr')} as "to",
    ${hex('h.actor')} as actor, ${hex('h.data')} as data
  from unnest($1::text[]::numeric[], $2::text[]::bigint[], $3::text[]::int[], $4::text[]::int[]) with ordinality
    k(token, block, log, most, place)
  cross join lateral (select count(*) as total from history where token_id = k.token) c
  left join lateral (
    select * from history where token_id = k.token and (block_number, log_index) > (k.block, k.log)
    order by block_number, log_index limit k.most
  ) h on true
  order by k.place, h.block_number, h.log_index`
