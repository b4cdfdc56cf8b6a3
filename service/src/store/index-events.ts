/** The events of the index (spec §2.9, §4.9): every one as the chain has it, in the table `history`. */
import type { Hex } from '@touchstone/verdict'
import type { Sql } from './database.ts'
import { bytes, hexOf, numbers, secondOf } from './index-columns.ts'

/** Codes of `kind`; the same as in chain/events.ts. */
export const kinds = {
  minted: 1,
  tagBound: 2,
  stateChanged: 3,
  resold: 4,
  flagsChanged: 5,
  metadataHashSet: 6,
  transferInitiated: 7,
  transferCancelled: 8,
  moved: 9,
} as const

/** Kinds that say something of a transfer. */
export const transferKinds: ReadonlySet<number> = new Set([
  kinds.resold,
  kinds.transferInitiated,
  kinds.transferCancelled,
])

/** `tokenId` is decimal, times are unix seconds, `null` is what an event of this kind does not have. */
export type IndexedEvent = Readonly<{
  kind: number
  tokenId: string
  fromState: number | null
  toState: number | null
  flags: number | null
  from: Hex | null
  to: Hex | null
  actor: Hex | null
  nonce: number | null
  expiry: bigint | null
  data: Hex | null
  blockNumber: bigint
  logIndex: number
  blockHash: Hex
  transactionHash: Hex
  timestamp: bigint
}>

/**
 * Adds events; one that is there already is an error, for then something was counted twice. Block and transaction are said once
 * for all events of a transaction: of a range, that is most of the text.
 */
export async function insertEvents(sql: Sql, events: readonly IndexedEvent[]): Promise<void> {
  if (events.length === 0) return
  const transactions: IndexedEvent[] = []
  const places = events.map((event) => {
    if (event.transactionHash !== transactions.at(-1)?.transactionHash) transactions.push(event)
    return transactions.length
  })
  await sql.query(insertStatement, [
    numbers(transactions.map((event) => event.blockNumber)),
    bytes(transactions.map((event) => event.blockHash)),
    bytes(transactions.map((event) => event.transactionHash)),
    numbers(transactions.map((event) => secondOf(event.timestamp))),
    numbers(places),
    numbers(events.map((event) => event.logIndex)),
    numbers(events.map((event) => event.tokenId)),
    numbers(events.map((event) => event.kind)),
    numbers(events.map((event) => event.fromState)),
    numbers(events.map((event) => event.toState)),
    numbers(events.map((event) => event.flags)),
    bytes(events.map((event) => event.from)),
    bytes(events.map((event) => event.to)),
    bytes(events.map((event) => event.actor)),
    numbers(events.map((event) => event.nonce)),
    numbers(events.map((event) => event.expiry)),
    bytes(events.map((event) => event.data)),
  ])
}

const insertStatement = `insert into history (block_number, log_index, token_id, kind, from_state, to_state, flags,
    from_addr, to_addr, actor, nonce, expiry, data, block_hash, tx_hash, ts)
  select t.block_number, e.log_index, e.token_id, e.kind, e.from_state, e.to_state, e.flags,
    e.from_addr, e.to_addr, e.actor, e.nonce, e.expiry, e.data, t.block_hash, t.tx_hash, to_timestamp(t.seconds)
  from unnest($5::bigint[], $6::int[], $7::numeric[], $8::smallint[], $9::smallint[], $10::smallint[], $11::smallint[],
    $12::bytea[], $13::bytea[], $14::bytea[], $15::bigint[], $16::numeric[], $17::bytea[])
    e (place, log_index, token_id, kind, from_state, to_state, flags, from_addr, to_addr, actor, nonce, expiry, data)
  join unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[]) with ordinality
    t (block_number, block_hash, tx_hash, seconds, place) on t.place = e.place`

export type EventRow = {
  kind: number
  token_id: string
  from_state: number | null
  to_state: number | null
  flags: number | null
  from_addr: Uint8Array | null
  to_addr: Uint8Array | null
  actor: Uint8Array | null
  nonce: bigint | null
  expiry: string | null
  data: Uint8Array | null
  block_number: bigint
  log_index: number
  block_hash: Uint8Array
  tx_hash: Uint8Array
  seconds: bigint
}

export const eventColumns = `kind, token_id, from_state, to_state, flags, from_addr, to_addr, actor, nonce, expiry, data,
  block_number, log_index, block_hash, tx_hash, extract(epoch from ts)::bigint as seconds`

export function eventOfRow(row: EventRow): IndexedEvent {
  return {
    kind: row.kind,
    tokenId: row.token_id,
    fromState: row.from_state,
    toState: row.to_state,
    flags: row.flags,
    from: row.from_addr && hexOf(row.from_addr),
    to: row.to_addr && hexOf(row.to_addr),
    actor: row.actor && hexOf(row.actor),
    nonce: row.nonce === null ? null : Number(row.nonce),
    expiry: row.expiry === null ? null : BigInt(row.expiry),
    data: row.data && hexOf(row.data),
    blockNumber: row.block_number,
    logIndex: row.log_index,
    blockHash: hexOf(row.block_hash),
    transactionHash: hexOf(row.tx_hash),
    timestamp: row.seconds,
  }
}
