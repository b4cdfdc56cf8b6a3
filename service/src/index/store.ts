/**
 * The database of the indexer (spec §2.9, §4.9). Events, tokens, transfers, announcements and the cursor are written in one
 * transaction, so that the index always holds at the block it names. Every leader raises the epoch, and nothing is written under an
 * earlier one. Every transaction writes the cursor's row first, so that a lock of that row waits for the whole step.
 */
import { bytes, hex, hexToBytes, numbers, texts, zeroHashSql } from '../db/columns.ts'
import type { Database, Sql } from '../db/database.ts'
import type { BlockId } from '../domain/chain.ts'
import {
  clampSeconds,
  type IndexCursor,
  type IndexStep,
  type IndexStore,
  type TransferStatus,
} from '../domain/chain-index.ts'
import { missingTokens, storeAssets, updateAssets } from './assets.ts'
import { cursorColumns, deleteEvents, deleteEventsAbove, insertEvents, readCursor, readEvents } from './history.ts'
import { type AssetChange, projectAssets, projectTransfers } from './project.ts'
import { announce, applyTransfers, noteStatus, type StatusChanges, storeTransfers } from './transfers.ts'

/** `now` is in unix milliseconds. */
export function indexStore(
  database: Pick<Database, 'query' | 'transaction'>,
  now: () => number = Date.now,
): IndexStore {
  return {
    cursor: () => readCursor(database),
    kept: (from, limit) => database.query<BlockId>(keptStatement, [from, limit]),

    async lead(contract) {
      const [row] = await database.query<IndexCursor & { epoch: bigint }>(leadStatement, [hexToBytes(contract)])
      if (row === undefined) return null
      const { epoch, ...cursor } = row
      return { epoch, cursor }
    },

    async apply(step) {
      if (step.events.length === 0 && step.rewindTo === null) return moveCursor(database, step)
      return database.transaction(async (sql) => {
        if (!(await moveCursor(sql, step))) return false
        await applyStep(sql, step, BigInt(Math.floor(now() / 1000)))
        return true
      })
    },

    prune: ({ epoch, keepFrom }) =>
      database.transaction(async (sql) => {
        if ((await sql.query('select 1 from index_cursor where epoch = $1 for share', [epoch])).length === 0)
          return false
        await pruneIndex(sql, keepFrom)
        return true
      }),

    repair: (epoch, { lost, forged, tokens }) =>
      database.transaction(async (sql) => {
        // An update, like every step's, so that the step of another leader waits.
        const held = await sql.query('update index_cursor set epoch = epoch where epoch = $1 returning 1', [epoch])
        if (held.length === 0) return false
        await deleteEvents(sql, [...lost, ...forged])
        await insertEvents(sql, lost)
        const changes: StatusChanges = new Map()
        const past = BigInt(Math.floor(now() / 1000))
        for (let at = 0; at < tokens.length; at += tokensAtOnce)
          await projectAgain(sql, tokens.slice(at, at + tokensAtOnce), past, changes, null)
        await announce(sql, changes, past - newsSeconds)
        return true
      }),

    clear: (epoch) => database.transaction((sql) => clear(sql, epoch)),
  }
}

const keptStatement = `select number, ${hex('hash')} as hash from index_block where number <= $1 order by number desc limit $2`

const leadStatement = `insert into index_cursor (contract, epoch, number, hash, block_time)
  values ($1, 1, -1, ${zeroHashSql}, to_timestamp(0))
  on conflict (one) do update set epoch = index_cursor.epoch + 1, contract = excluded.contract
  where index_cursor.contract = excluded.contract or index_cursor.number = -1
  returning epoch, ${cursorColumns}`

/** Moves the cursor and keeps the hashes of the step's blocks. Returns false, and changes nothing, when the epoch is over. */
async function moveCursor(sql: Sql, { epoch, to, blocks }: IndexStep): Promise<boolean> {
  const values = [epoch, to.number, hexToBytes(to.hash), clampSeconds(to.time)]
  const kept = [numbers(blocks.map(({ number }) => number)), bytes(blocks.map(({ hash }) => hash))]
  return (await sql.query(moveStatement, [...values, ...kept])).length > 0
}

const moveStatement = `with moved as (
    update index_cursor set number = $2, hash = $3, block_time = to_timestamp($4::bigint) where epoch = $1 returning 1),
  kept as (
    insert into index_block (number, hash)
    select b.number, b.hash from unnest($5::bigint[], $6::bytea[]) b (number, hash), moved
    on conflict (number) do update set hash = excluded.hash)
  select 1 from moved`

async function applyStep(sql: Sql, { events, to, rewindTo: rewind, announceSince }: IndexStep, now: bigint) {
  const past = now > to.time ? now : to.time
  const changes: StatusChanges = new Map()
  if (rewind !== null) {
    await sql.query('delete from index_block where number > $1', [to.number])
    await rewindTo(sql, rewind, past, changes)
  }
  await insertEvents(sql, events)
  await storeAssets(sql, projectAssets(events))
  await applyTransfers(sql, events, past, changes)
  await announce(sql, changes, announceSince)
}

const tokensAtOnce = 500
/** A repair announces no older changes, in seconds. */
const newsSeconds = 600n
const zeroHash = `0x${'0'.repeat(64)}` as const

/**
 * Takes the index back to an earlier block (a reorganisation): events above it are deleted, and what they had changed is projected again
 * from the events that stay. Tokens that were minted above it are deleted, and their registrations wait for another mint. `past` is now,
 * in unix seconds.
 */
async function rewindTo(sql: Sql, number: bigint, past: bigint, changes: StatusChanges): Promise<void> {
  const tokens = await deleteEventsAbove(sql, number)
  for (let at = 0; at < tokens.length; at += tokensAtOnce)
    await projectAgain(sql, tokens.slice(at, at + tokensAtOnce), past, changes)
}

/** `changedAt` is the time of the changes of transfers; `null` is the time of their own events. */
async function projectAgain(
  sql: Sql,
  tokens: readonly string[],
  past: bigint,
  changes: StatusChanges,
  changedAt: bigint | null = past,
): Promise<void> {
  const stored = await sql.query<StoredTransfer>(transfersStatement, [numbers(tokens)])
  const events = await readEvents(sql, tokens)

  const assets = projectAssets(events).filter(({ minted }) => minted !== null)
  const minted = new Set(assets.map(({ tokenId }) => tokenId))
  const unminted = numbers(tokens.filter((tokenId) => !minted.has(tokenId)))
  for (const statement of deleteStatements) await sql.query(statement, [unminted])
  const lostRows = new Set(await missingTokens(sql, [...minted]))
  await storeAssets(sql, assets.filter(({ tokenId }) => lostRows.has(tokenId)).map(withoutGaps))
  await updateAssets(sql, assets.map(withoutGaps))

  const transfers = projectTransfers(events, new Map(), past)
  const lost = stored.filter(({ id }) => !transfers.has(id))
  await sql.query('delete from transfer where id in (select unnest($1::text[]))', [texts(lost.map(({ id }) => id))])
  for (const { id, tokenId, status, was } of lost)
    noteStatus(changes, id, { tokenId, before: status, after: null, at: past, was })
  const before = new Map(stored.map(({ id, status }) => [id, status]))
  await storeTransfers(sql, [...transfers.values()], before, changes, changedAt ?? undefined)
}

type StoredTransfer = { id: string; tokenId: string; status: TransferStatus; was: object }

const transfersStatement = `select t.id, a.token_id as "tokenId", t.status, jsonb_build_object(
    'from', ${hex('t.from_addr')}, 'to', ${hex('t.to_addr')},
    'initiatedAt', to_char(t.initiated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'initiatedTx', ${hex('t.initiated_tx')}) as was
  from transfer t join asset a on a.pk = t.asset_pk
  where a.token_id in (select unnest($1::numeric[]))`

/** Completes a projection of all events of a token: what no event set is not there. */
function withoutGaps(change: AssetChange): AssetChange {
  const { state, flags, metadataHash, tagHash } = change
  return {
    ...change,
    state: state ?? 0,
    flags: flags ?? 0,
    metadataHash: metadataHash ?? zeroHash,
    tagHash: tagHash ?? zeroHash,
  }
}

const deleteStatements = [
  `delete from item i using registration r where r.token_id = i.token_id and r.gtin = i.gtin and r.serial = i.serial
    and i.token_id in (select unnest($1::numeric[]))`,
  'update registration set token_id = null where token_id in (select unnest($1::numeric[]))',
  'delete from asset where token_id in (select unnest($1::numeric[]))',
]

/**
 * Writes what time changes and no block: offers expire, sums are compacted, old rows are deleted. Of the blocks below `keepFrom`, one
 * in 4096 and the first of every run are kept.
 */
async function pruneIndex(sql: Sql, keepFrom: bigint): Promise<void> {
  await sql.query(deleteBlocksStatement, [keepFrom])
  for (const statement of compactStatements) await sql.query(statement)
  await sql.query(`delete from outbox where created_at < clock_timestamp() - interval '1 hour'`)
  const expired = await sql.query<{ id: string; token_id: string }>(expireStatement)
  const changes: StatusChanges = new Map(
    expired.map(({ id, token_id }) => [id, { tokenId: token_id, before: 'PENDING', after: 'FAILED', at: 0n }]),
  )
  await announce(sql, changes, 0n)
}

/** The end of a range has no block before it and is kept: a deep reorganisation can be followed back to it. */
const deleteBlocksStatement = `delete from index_block b where number < $1 and number % 4096 <> 0
  and exists (select from index_block p where p.number = b.number - 1)`

/** Rows that were added several times become one row with their sum, so readers and other writers notice nothing. */
const compactStatements = [
  `with many as (select array_agg(ctid) as places from product_count group by brand, verified having count(*) > 4),
    deleted as (delete from product_count where ctid in (select unnest(places) from many) returning brand, verified, n)
  insert into product_count (brand, verified, n)
  select brand, verified, sum(n) from deleted group by brand, verified having sum(n) <> 0`,
  `with deleted as (
    delete from product_total where (select count(*) from product_total) > 100 returning verified, n)
  insert into product_total (verified, n)
  select verified, sum(n) from deleted group by verified having sum(n) <> 0`,
]

/** An offer that expired failed at that time, as in the projection of events. */
const expireStatement = `update transfer t set status = 'FAILED', settled_at = t.expires_at from asset a
  where a.pk = t.asset_pk and t.pk in (
    select pk from transfer where status = 'PENDING'
      and expires_at < greatest(clock_timestamp(), (select block_time from index_cursor))
    order by expires_at limit 1000)
  returning t.id, a.token_id`

/** Deletes everything that came from the chain; the next leader begins anew. Registrations, taps, messages and keys stay. */
export async function rebuildIndex(database: Pick<Database, 'transaction'>): Promise<void> {
  await database.transaction((sql) => clear(sql, null))
}

async function clear(sql: Sql, epoch: bigint | null): Promise<boolean> {
  if ((await sql.query(resetStatement, [epoch])).length === 0 && epoch !== null) return false
  await sql.query('truncate history, transfer, asset, product_count, product_total, index_block')
  await sql.query(
    'delete from item i using registration r where r.token_id = i.token_id and r.gtin = i.gtin and r.serial = i.serial',
  )
  await sql.query('update registration set token_id = null where token_id is not null')
  return true
}

/** Moves the cursor before the first block, under a new epoch. The epoch given is the present one, or `null` for any. */
const resetStatement = `update index_cursor
  set epoch = epoch + 1, number = -1, hash = ${zeroHashSql}, block_time = to_timestamp(0)
  where $1::bigint is null or epoch = $1 returning 1`
