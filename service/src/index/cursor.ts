/**
 * The block up to which the index is complete, and the epoch of its writer: every leader raises the epoch, and nothing is written under
 * an earlier one. Every transaction writes the cursor's row first, so that a lock of that row waits for the whole step.
 */
import type { Hex } from '@touchstone/verdict'
import { bytes, hex, hexToBytes, numbers, seconds, zeroHashSql } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import type { BlockId } from '../domain/chain.ts'
import { clampSeconds, type IndexCursor } from '../domain/chain-index.ts'

/** Returns `null` before the first leader. */
export async function readCursor(sql: Sql): Promise<IndexCursor | null> {
  const [cursor] = await sql.query<IndexCursor>(`select ${columns} from index_cursor`)
  return cursor ?? null
}

/** Raises the epoch. Returns `null` when the index belongs to another contract. */
export async function takeLead(sql: Sql, contract: Hex): Promise<{ epoch: bigint; cursor: IndexCursor } | null> {
  const [row] = await sql.query<IndexCursor & { epoch: bigint }>(leadStatement, [hexToBytes(contract)])
  if (row === undefined) return null
  const { epoch, ...cursor } = row
  return { epoch, cursor }
}

/** Moves the cursor and keeps the hashes of `blocks`. Returns false, and changes nothing, when the epoch is over. */
export async function moveCursor(
  sql: Sql,
  epoch: bigint,
  to: IndexCursor,
  blocks: readonly BlockId[],
): Promise<boolean> {
  const values = [epoch, to.number, hexToBytes(to.hash), clampSeconds(to.time)]
  const kept = [numbers(blocks.map(({ number }) => number)), bytes(blocks.map(({ hash }) => hash))]
  return (await sql.query(moveStatement, [...values, ...kept])).length > 0
}

/** Returns at most `limit` kept blocks from this number down. */
export function keptBlocks(sql: Sql, from: bigint, limit: number): Promise<BlockId[]> {
  return sql.query<BlockId>(
    `select number, ${hex('hash')} as hash from index_block where number <= $1 order by number desc limit $2`,
    [from, limit],
  )
}

/** Returns whether the epoch lasts; if so, it lasts until the transaction ends. */
export async function holdEpoch(sql: Sql, epoch: bigint): Promise<boolean> {
  return (await sql.query('select 1 from index_cursor where epoch = $1 for share', [epoch])).length > 0
}

/** Waits for a step that is being written: later reads see it, and the next step sees earlier writes. */
export async function waitForStep(sql: Sql): Promise<void> {
  await sql.query('select 1 from index_cursor for share')
}

/** Moves the cursor before the first block, under a new epoch. `epoch` is the present one, or `null` for any. */
export async function resetCursor(sql: Sql, epoch: bigint | null): Promise<boolean> {
  return (await sql.query(resetStatement, [epoch])).length > 0
}

const columns = `number, ${hex('hash')} as hash, ${seconds('block_time')} as time`

const leadStatement = `insert into index_cursor (contract, epoch, number, hash, block_time)
  values ($1, 1, -1, ${zeroHashSql}, to_timestamp(0))
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
  set epoch = epoch + 1, number = -1, hash = ${zeroHashSql}, block_time = to_timestamp(0)
  where $1::bigint is null or epoch = $1 returning 1`
