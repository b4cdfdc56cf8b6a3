/** Pages of what the chain recorded about products (Product.history): the oldest first, one statement for all that are asked for. */
import type { Hex } from '@touchstone/verdict'
import type { Sql } from './database.ts'
import { hex, instant } from './products.ts'

/** `kind` is a code of chain/events.ts; `data` a metadata, tag, message or reason hash. The time is RFC 3339 in UTC. */
export type HistoryRow = {
  readonly blockNumber: bigint
  readonly logIndex: number
  readonly blockHash: Hex
  readonly txHash: Hex
  readonly timestamp: string
  readonly kind: number
  readonly fromState: number | null
  readonly toState: number | null
  readonly flags: number | null
  readonly from: Hex | null
  readonly to: Hex | null
  readonly actor: Hex | null
  readonly data: Hex | null
}

/** `after` is the place of an event: its block and the index of its log. */
export type HistoryQuestion = {
  readonly tokenId: bigint
  readonly after: readonly [block: string, logIndex: string] | null
  readonly limit: number
}
/** `total` counts all events of the token. */
export type HistoryAnswer = { readonly rows: readonly HistoryRow[]; readonly total: number }

export type ProductHistoryStore = ReturnType<typeof productHistoryStore>

export function productHistoryStore(sql: Sql) {
  return {
    /** The answers in the order of the questions. */
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
