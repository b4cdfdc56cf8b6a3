/** Transfers of the index (spec §3, §6) and what subscribers hear of them: one outbox row for every status that changed. */
import type { Sql } from './database.ts'
import { bytes, hexOf, numbers, secondOf, texts } from './index-columns.ts'
import { transferKinds, type IndexedEvent } from './index-events.ts'
import { foldTransfers, type Transfer, type TransferStatus } from './index-fold.ts'

/** Statuses before and after a transaction, by the id of the transfer; `null` where there was or is none. `at` is the time of the change. */
export type StatusChanges = Map<
  string,
  {
    readonly tokenId: string
    readonly before: TransferStatus | null
    after: TransferStatus | null
    at: bigint
    /** Of a transfer that a reorganisation took away: what is told of it. */
    readonly was?: object
  }
>

/** `past` and times are unix seconds. What changes is noted in `changes`. */
export async function followTransfers(
  sql: Sql,
  events: readonly IndexedEvent[],
  past: bigint,
  changes: StatusChanges,
): Promise<void> {
  const tokens = new Set<string>()
  for (const event of events) if (transferKinds.has(event.kind)) tokens.add(event.tokenId)
  if (tokens.size === 0) return
  const rows = await sql.query<TransferRow>(openStatement, [numbers([...tokens])])
  const open = rows.map(transferOf)
  const folded = foldTransfers(events, new Map(open.map((transfer) => [transfer.tokenId, transfer])), past)
  await storeTransfers(sql, [...folded.values()], new Map(open.map(({ id, status }) => [id, status])), changes)
}

/** `before` are the statuses of those that were stored; `at` is when they changed, if not when the chain says. */
export async function storeTransfers(
  sql: Sql,
  transfers: readonly Transfer[],
  before: ReadonlyMap<string, TransferStatus>,
  changes: StatusChanges,
  at?: bigint,
): Promise<void> {
  if (transfers.length === 0) return
  for (const { id, tokenId, status, initiatedAt, settledAt } of transfers) {
    const changed = at ?? settledAt ?? initiatedAt
    noteStatus(changes, { id, tokenId, before: before.get(id) ?? null, after: status, at: changed })
  }
  await sql.query(upsertStatement, [
    texts(transfers.map(({ id }) => id)),
    numbers(transfers.map(({ tokenId }) => tokenId)),
    bytes(transfers.map(({ from }) => from)),
    bytes(transfers.map(({ to }) => to)),
    texts(transfers.map(({ status }) => status)),
    numbers(transfers.map(({ initiatedAt }) => secondOf(initiatedAt))),
    bytes(transfers.map(({ initiatedTransaction }) => initiatedTransaction)),
    numbers(transfers.map(({ expiresAt }) => expiresAt && secondOf(expiresAt))),
    numbers(transfers.map(({ settledAt }) => settledAt && secondOf(settledAt))),
    bytes(transfers.map(({ settledTransaction }) => settledTransaction)),
    bytes(transfers.map(({ messageHash }) => messageHash)),
  ])
}

type Noted = Readonly<{
  id: string
  tokenId: string
  before: TransferStatus | null
  after: TransferStatus | null
  at: bigint
  was?: object
}>

/** The first status before and the last one after count. */
export function noteStatus(changes: StatusChanges, { id, ...noted }: Noted): void {
  const known = changes.get(id)
  const { after, at } = noted
  if (known === undefined) changes.set(id, noted)
  else Object.assign(known, { after, at: at > known.at ? at : known.at })
}

/**
 * Tells of changes since a moment. A transfer that a reorganisation took away has failed. Comes last in a transaction: the
 * lock of the outbox is held from here to its end.
 */
export async function announce(sql: Sql, changes: StatusChanges, since: bigint): Promise<void> {
  const told = [...changes]
    .map(([id, change]) => ({ id, ...change, status: change.after ?? 'FAILED' }))
    .filter(({ before, status, after, at }) => at >= since && before !== status && (before ?? after) !== null)
  if (told.length === 0) return
  await sql.query(announceStatement, [
    numbers(told.map(({ tokenId }) => tokenId)),
    texts(told.map(({ id }) => id)),
    texts(told.map(({ status }) => status)),
    texts(told.map(({ after, was }) => JSON.stringify(after === null ? (was ?? {}) : {}))),
  ])
}

const announceStatement = `insert into outbox (topic, token_id, payload)
  select 'transfer', token_id, was::jsonb || jsonb_build_object('id', id, 'status', status)
  from unnest($1::numeric[], $2::text[], $3::text[], $4::text[]) t (token_id, id, status, was)`

type TransferRow = {
  id: string
  token_id: string
  from_addr: Uint8Array
  to_addr: Uint8Array
  status: TransferStatus
  initiated_tx: Uint8Array
  initiated: bigint
  expires: bigint | null
  settled: bigint | null
  settled_tx: Uint8Array | null
  message_hash: Uint8Array | null
}

/** The newest transfer of each token, where no transaction has ended it. */
const openStatement = `select a.token_id, t.id, t.from_addr, t.to_addr, t.status, t.initiated_tx, t.settled_tx, t.message_hash,
    extract(epoch from t.initiated_at)::bigint as initiated, extract(epoch from t.expires_at)::bigint as expires,
    extract(epoch from t.settled_at)::bigint as settled
  from unnest($1::numeric[]) k (token_id) join asset a on a.token_id = k.token_id
  cross join lateral (select * from transfer where asset_pk = a.pk order by initiated_at desc, pk desc limit 1) t
  where t.settled_tx is null`

function transferOf(row: TransferRow): Transfer {
  return {
    id: row.id,
    tokenId: row.token_id,
    from: hexOf(row.from_addr),
    to: hexOf(row.to_addr),
    status: row.status,
    initiatedAt: row.initiated,
    initiatedTransaction: hexOf(row.initiated_tx),
    expiresAt: row.expires,
    settledAt: row.settled,
    settledTransaction: row.settled_tx && hexOf(row.settled_tx),
    messageHash: row.message_hash && hexOf(row.message_hash),
  }
}

const upsertStatement = `insert into transfer (id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx,
    expires_at, settled_at, settled_tx, message_hash)
  select t.id, a.pk, t.from_addr, t.to_addr, t.status, to_timestamp(t.initiated), t.initiated_tx,
    to_timestamp(t.expires), to_timestamp(t.settled), t.settled_tx, nullif(t.message_hash, '\\x${'00'.repeat(32)}'::bytea)
  from unnest($1::text[], $2::numeric[], $3::bytea[], $4::bytea[], $5::text[],
    $6::bigint[], $7::bytea[], $8::bigint[], $9::bigint[], $10::bytea[],
    $11::bytea[]) with ordinality
    t (id, token_id, from_addr, to_addr, status, initiated, initiated_tx, expires, settled, settled_tx, message_hash, place)
  join asset a on a.token_id = t.token_id
  order by t.place
  on conflict (id) do update set asset_pk = excluded.asset_pk, from_addr = excluded.from_addr, to_addr = excluded.to_addr,
    status = excluded.status, initiated_at = excluded.initiated_at, initiated_tx = excluded.initiated_tx,
    expires_at = excluded.expires_at, settled_at = excluded.settled_at, settled_tx = excluded.settled_tx,
    message_hash = excluded.message_hash`
