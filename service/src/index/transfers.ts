/** Transfers of the index (spec §3, §6) and their announcements to subscribers: one outbox row for every status that changed. */
import { bytes, hex, numbers, seconds, texts, zeroHashSql } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import type { AssetEvent } from '../domain/registry-event.ts'
import { clampSeconds, type TransferStatus } from '../domain/chain-index.ts'
import { projectTransfers, type Transfer, transferKinds } from './project.ts'

/** A change of status in one transaction; `null` where there was or is no transfer. `at` is its time, in unix seconds. */
type StatusChange = {
  readonly tokenId: string
  readonly before: TransferStatus | null
  after: TransferStatus | null
  at: bigint
  /** The last values of a transfer that a reorganisation deleted. */
  readonly was?: object
}

/** By the id of the transfer. */
export type StatusChanges = Map<string, StatusChange>

/** Applies events to the transfers; `past` is now, in unix seconds. What changes is noted in `changes`. */
export async function applyTransfers(
  sql: Sql,
  events: readonly AssetEvent[],
  past: bigint,
  changes: StatusChanges,
): Promise<void> {
  const tokens = new Set<string>()
  for (const event of events) if (transferKinds.has(event.kind)) tokens.add(event.tokenId)
  if (tokens.size === 0) return
  const open = await sql.query<Transfer>(openStatement, [numbers([...tokens])])
  const changed = projectTransfers(events, new Map(open.map((transfer) => [transfer.tokenId, transfer])), past)
  await storeTransfers(sql, [...changed.values()], new Map(open.map(({ id, status }) => [id, status])), changes)
}

/** Stores transfers whose statuses were `before`. `at` is the time of their changes where it is not the chain's. */
export async function storeTransfers(
  sql: Sql,
  transfers: readonly Transfer[],
  before: ReadonlyMap<string, TransferStatus>,
  changes: StatusChanges,
  at?: bigint,
): Promise<void> {
  if (transfers.length === 0) return
  for (const { id, tokenId, status, initiatedAt, settledAt } of transfers)
    noteStatus(changes, id, {
      tokenId,
      before: before.get(id) ?? null,
      after: status,
      at: at ?? settledAt ?? initiatedAt,
    })
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

/** Notes a change; the first status before and the last one after count. */
export function noteStatus(changes: StatusChanges, id: string, change: StatusChange): void {
  const known = changes.get(id)
  const { after, at } = change
  if (known === undefined) changes.set(id, change)
  else Object.assign(known, { after, at: at > known.at ? at : known.at })
}

/**
 * Writes the changes since a moment to the outbox. A transfer that a reorganisation deleted has failed. Call it last in a transaction:
 * the lock of the outbox is held from here to its end.
 */
export async function announce(sql: Sql, changes: StatusChanges, since: bigint): Promise<void> {
  const announced = [...changes]
    .map(([id, change]) => ({ id, ...change, status: change.after ?? 'FAILED' }))
    .filter(({ before, status, after, at }) => at >= since && before !== status && (before ?? after) !== null)
  if (announced.length === 0) return
  await sql.query(announceStatement, [
    numbers(announced.map(({ tokenId }) => tokenId)),
    texts(announced.map(({ id }) => id)),
    texts(announced.map(({ status }) => status)),
    texts(announced.map(({ after, was }) => JSON.stringify(after === null ? (was ?? {}) : {}))),
  ])
}

const announceStatement = `insert into outbox (topic, token_id, payload)
  select 'transfer', token_id, was::jsonb || jsonb_build_object('id', id, 'status', status)
  from unnest($1::numeric[], $2::text[], $3::text[], $4::text[]) t (token_id, id, status, was)`

/** Reads all transfers of these tokens. */
export function readTransfers(sql: Sql, tokenIds: readonly (bigint | string)[]): Promise<Transfer[]> {
  return sql.query<Transfer>(allStatement, [numbers(tokenIds)])
}

const transferColumns = `a.token_id as "tokenId", t.id, ${hex('t.from_addr')} as "from", ${hex('t.to_addr')} as "to", t.status,
    ${hex('t.initiated_tx')} as "initiatedTransaction", ${hex('t.settled_tx')} as "settledTransaction",
    ${hex('t.message_hash')} as "messageHash", ${seconds('t.initiated_at')} as "initiatedAt",
    ${seconds('t.expires_at')} as "expiresAt", ${seconds('t.settled_at')} as "settledAt"`

const allStatement = `select ${transferColumns} from asset a join transfer t on t.asset_pk = a.pk
  where a.token_id in (select unnest($1::numeric[]))`

/** The newest transfer of each token, where no transaction has ended it. */
const openStatement = `select ${transferColumns} from unnest($1::numeric[]) k (token_id) join asset a on a.token_id = k.token_id
  cross join lateral (select * from transfer where asset_pk = a.pk order by initiated_at desc, pk desc limit 1) t
  where t.settled_tx is null`

const upsertStatement = `insert into transfer (id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx,
    expires_at, settled_at, settled_tx, message_hash)
  select t.id, a.pk, t.from_addr, t.to_addr, t.status, to_timestamp(t.initiated), t.initiated_tx,
    to_timestamp(t.expires), to_timestamp(t.settled), t.settled_tx, nullif(t.message_hash, ${zeroHashSql})
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
