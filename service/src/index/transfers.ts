/** Transfers of the index (spec §3): the table `transfer`. */
import { bytes, earlierClock, hex, numbers, seconds, texts, zeroHashSql } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import type { AssetEvent } from '../domain/registry-event.ts'
import { clampSeconds } from '../domain/chain-index.ts'
import { missingTokens } from './assets/rows.ts'
import {
  expiredBefore,
  projectTransfers,
  provesOpen,
  type Transfer,
  transferKinds,
  type TransferStep,
} from './project.ts'

/**
 * Applies events to the transfers and returns their new statuses, in order; `past` is now, in unix seconds. `reopened` are offers that a clock
 * had called expired, and that these events ended in time, as they were before.
 */
export async function applyTransfers(
  sql: Sql,
  events: readonly AssetEvent[],
  past: bigint,
): Promise<Readonly<{ steps: readonly TransferStep[]; reopened: readonly Transfer[] }>> {
  const first = new Map<string, AssetEvent>()
  for (const event of events)
    if (transferKinds.has(event.kind) && !first.has(event.tokenId)) first.set(event.tokenId, event)
  if (first.size === 0) return { steps: [], reopened: [] }
  const stored = await sql.query<Transfer>(openStatement, [numbers([...first.keys()])])
  const open = new Map(stored.map((transfer) => [transfer.tokenId, transfer]))
  const reopened = stored.flatMap((offer) => {
    const event = first.get(offer.tokenId)
    if (offer.status !== 'FAILED' || event === undefined || !provesOpen(event, offer)) return []
    return [{ ...offer, status: 'PENDING' as const, settledAt: null }]
  })
  for (const offer of reopened) open.set(offer.tokenId, offer)
  const { transfers, steps } = projectTransfers(events, open, expiredBefore(past))
  await storeTransfers(sql, [...transfers.values()])
  return { steps, reopened }
}

/** Returns the ids of the offers of tokens that failed without a transaction, because they expired. */
export async function expiredIds(sql: Sql, tokens: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await sql.query<{ id: string }>(expiredStatement, [numbers(tokens)])
  return new Set(rows.map(({ id }) => id))
}

/** Adds and changes transfers of stored tokens, in their order; one of an unknown token is left out. */
export async function storeTransfers(sql: Sql, all: readonly Transfer[]): Promise<void> {
  if (all.length === 0) return
  const unknown = new Set(await missingTokens(sql, [...new Set(all.map(({ tokenId }) => tokenId))]))
  const transfers = all.filter(({ tokenId }) => !unknown.has(tokenId))
  await sql.query(upsertStatement, [
    texts(transfers.map(({ id }) => id)),
    numbers(transfers.map(({ tokenId }) => tokenId)),
    bytes(transfers.map(({ from }) => from)),
    bytes(transfers.map(({ to }) => to)),
    texts(transfers.map(({ status }) => status)),
    numbers(transfers.map(({ initiatedAt }) => clampSeconds(initiatedAt))),
    bytes(transfers.map(({ initiatedTransaction }) => initiatedTransaction)),
    numbers(transfers.map(({ expiresAt }) => expiresAt && clampSeconds(expiresAt))),
    numbers(transfers.map(({ settledAt }) => settledAt && clampSeconds(settledAt))),
    bytes(transfers.map(({ settledTransaction }) => settledTransaction)),
    bytes(transfers.map(({ messageHash }) => messageHash)),
  ])
}

/**
 * Expires at most 1,000 offers whose time is over, and returns them. No block contains it: an offer that expired failed at that time, as
 * in the projection of events. `now` is the clock of this machine in unix seconds.
 */
export async function expireOffers(sql: Sql, now: bigint): Promise<Transfer[]> {
  const due = await sql.query<DueRow>(dueStatement, [now])
  if (due.length === 0) return []
  const expired = await sql.query<DueRow>(expireStatement, columnsOf(due))
  return sql.query<Transfer>(ofIdsStatement, columnsOf(expired))
}

type DueRow = Readonly<{ token_id: string; id: string }>

const columnsOf = (rows: readonly DueRow[]) => [
  numbers(rows.map(({ token_id }) => token_id)),
  texts(rows.map(({ id }) => id)),
]

export function readTransfers(sql: Sql, tokenIds: readonly (bigint | string)[]): Promise<Transfer[]> {
  return sql.query<Transfer>(allStatement, [numbers(tokenIds)])
}

const transferColumns = `t.token_id as "tokenId", t.id, ${hex('t.from_addr')} as "from", ${hex('t.to_addr')} as "to", t.status,
    ${hex('t.initiated_tx')} as "initiatedTransaction", ${hex('t.settled_tx')} as "settledTransaction",
    ${hex('t.message_hash')} as "messageHash", ${seconds('t.initiated_at')} as "initiatedAt",
    ${seconds('t.expires_at')} as "expiresAt", ${seconds('t.settled_at')} as "settledAt"`

const allStatement = `select ${transferColumns} from transfer t where t.token_id = any($1::numeric[])`

/** The newest transfer of each token, where no transaction has ended it. */
const openStatement = `select * from (
    select distinct on (t.token_id) ${transferColumns} from transfer t where t.token_id = any($1::numeric[])
    order by t.token_id, t.initiated_at desc, t.pk desc) newest
  where "settledTransaction" is null`

const expiredStatement = `select t.id from transfer t
  where t.token_id = any($1::numeric[]) and t.status = 'FAILED' and t.settled_tx is null`

/** The time of an offer is over by the chain or by two clocks. One clock that is ahead must not end an offer for good. */
export const dueStatement = `select token_id, id from transfer where status = 'PENDING'
    and expires_at < greatest(${earlierClock('$1')}, (select block_time from index_cursor))
  order by expires_at limit 1000`

const expireStatement = `update transfer t set status = 'FAILED', settled_at = t.expires_at
  from unnest($1::numeric[], $2::text[]) due (token_id, id)
  where t.token_id = due.token_id and t.id = due.id and t.token_id = any($1::numeric[]) and t.status = 'PENDING'
  returning t.token_id, t.id`

const ofIdsStatement = `select ${transferColumns} from transfer t
  where t.token_id = any($1::numeric[]) and t.id = any($2::text[])`

const upsertStatement = `insert into transfer (id, token_id, from_addr, to_addr, status, initiated_at, initiated_tx,
    expires_at, settled_at, settled_tx, message_hash)
  select t.id, t.token_id, t.from_addr, t.to_addr, t.status, to_timestamp(t.initiated), t.initiated_tx,
    to_timestamp(t.expires), to_timestamp(t.settled), t.settled_tx, nullif(t.message_hash, ${zeroHashSql})
  from unnest($1::text[], $2::numeric[], $3::bytea[], $4::bytea[], $5::text[],
    $6::bigint[], $7::bytea[], $8::bigint[], $9::bigint[], $10::bytea[],
    $11::bytea[]) with ordinality
    t (id, token_id, from_addr, to_addr, status, initiated, initiated_tx, expires, settled, settled_tx, message_hash, place)
  order by t.place
  on conflict (token_id, id) do update set from_addr = excluded.from_addr, to_addr = excluded.to_addr,
    status = excluded.status, initiated_at = excluded.initiated_at, initiated_tx = excluded.initiated_tx,
    expires_at = excluded.expires_at, settled_at = excluded.settled_at, settled_tx = excluded.settled_tx,
    message_hash = excluded.message_hash`
