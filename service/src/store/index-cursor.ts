/**
 * Up to which block the index is complete, and who may write it: every leader raises the epoch, and nothing is written under
 * an earlier one. The cursor's row is written first in every transaction, so that whoever locks it waits for the whole step.
 */
import type { Hex } from '@touchstone/verdict'
import type { Sql } from './database.ts'
import { bytes, bytesOf, hexOf, numbers, secondOf } from './index-columns.ts'

export type Place = Readonly<{ number: bigint; hash: Hex }>
/** `time` is the block's, in unix seconds; number −1 is before the first block. */
export type Cursor = Place & Readonly<{ time: bigint }>

/** `null` before the first leader. */
export async function readCursor(sql: Sql): Promise<Cursor | null> {
  const [row] = await sql.query<CursorRow>(`select ${columns} from index_cursor`)
  return row === undefined ? null : cursorOf(row)
}

/** Raises the epoch. `null`: the index is another contract's. */
export async function takeLead(sql: Sql, contract: Hex): Promise<{ epoch: bigint; cursor: Cursor } | null> {
  const [row] = await sql.query<CursorRow & { epoch: bigint }>(leadStatement, [bytesOf(contract)])
  return row === undefined ? null : { epoch: row.epoch, cursor: cursorOf(row) }
}

/** False when the epoch is over; then nothing has changed. `blocks` are kept. */
export async function moveCursor(sql: Sql, epoch: bigint, to: Cursor, blocks: readonly Place[]): Promise<boolean> {
  const values = [epoch, to.number, bytesOf(to.hash), secondOf(to.time)]
  const kept = [numbers(blocks.map(({ number }) => number)), bytes(blocks.map(({ hash }) => hash))]
  const moved = await sql.query(moveStatement, [...values, ...kept])
  return moved.length > 0
}

/** Kept blocks from this number down, at most `limit`. */
export async function keptBlocks(sql: Sql, from: bigint, limit: number): Promise<Place[]> {
  const rows = await sql.query<{ number: bigint; hash: Uint8Array }>(
    'select number, hash from index_block where number <= $1 order by number desc limit $2',
    [from, limit],
  )
  return rows.map(({ number, hash }) => ({ number, hash: hexOf(hash) }))
}

/** Whether the epoch still lasts; it does until the transaction ends. */
export async function holdEpoch(sql: Sql, epoch: bigint): Promise<boolean> {
  return (await sql.query('select 1 from index_cursor where epoch = $1 for share', [epoch])).length > 0
}

/** Waits for the step that is being written: what is read after it has seen that step, what is written before it is seen by the next. */
export async function waitForStep(sql: Sql): Promise<void> {
  await sql.query('select 1 from index_cursor for share')
}

/** Before the first block again, under a new epoch. `epoch` is the present one, `null` for whichever it is. */
export async function resetCursor(sql: Sql, epoch: bigint | null): Promise<boolean> {
  return (await sql.query(resetStatement, [epoch])).length > 0
}

type CursorRow = { number: bigint; hash: Uint8Array; seconds: bigint }

const columns = 'number, hash, extract(epoch from block_time)::bigint as seconds'
const nowhere = `'\\x${'00'.repeat(32)}'::bytea`

function cursorOf(row: CursorRow): Cursor {
  return { number: row.number, hash: hexOf(row.hash), time: row.seconds }
}

const leadStatement = `insert into index_cursor (contract, epoch, number, hash, block_time)
  values ($1, 1, -1, ${nowhere}, to_timestamp(0))
  on conflict (one) do update set epoch = index_cursor.epoch + 1, contract = excluded.contract
  where index_cursor.contract = excluded.contract or index_cursor.number = -1
  returning epoch, ${columns}`

const moveStatement = `with moved as (
    update index_cursor set number = $2, hash = $3, block_time = to_timestamp($4::bigint) where epoch = $1 returning 1),
  kept as (
    insert into index_block (number, hash)
    select b.number, b.hash from unnest($5::bigint[], $6::bytea[]) b (number, hash), moved
    on conflict (number) do update set hash = excluded.hash)
  select 1 from moved`

const resetStatement = `update index_cursor
  set epoch = epoch + 1, number = -1, hash = ${nowhere}, block_time = to_timestamp(0)
  where $1::bigint is null or epoch = $1 returning 1`
