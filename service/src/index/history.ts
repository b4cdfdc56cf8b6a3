/** The events of the chain as the index keeps them (spec §2.9, §3, §4.9): the table `history`. */
import type { Hex } from '@touchstone/verdict'
import { bytes, hex, type KeysetPage, numbers, seconds } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import type { BlockId } from '../domain/chain.ts'
import { clampSeconds, type IndexCursor } from '../domain/chain-index.ts'
import { type AssetEvent, eventKinds } from '../domain/registry-event.ts'
import { createBatcher } from '../lib/async/batch.ts'
import { type IndexDatabase, wholeReads } from './steps.ts'

/**
 * `rows` are in the order of the chain, and complete up to the block `cursor`. `hashAt` is the index's hash of the block asked for; null where
 * none is kept, as of blocks that the chain does not replace any more.
 */
type IndexedHistory = Readonly<{ cursor: IndexCursor; hashAt: BlockId['hash'] | null; rows: readonly AssetEvent[] }>

/** Asks for a page of a token's events, backward the newest first. An event has its block and the index of its log as key. */
export type HistoryQuestion = KeysetPage &
  Readonly<{
    tokenId: bigint
    /** Events of later blocks do not count; left out for the present. */
    upTo?: bigint
  }>
/** `total` counts all events of the token, with `upTo` those up to it. */
type HistoryPage = { readonly rows: readonly AssetEvent[]; readonly total: number }

export type HistoryStore = ReturnType<typeof historyStore>

export function historyStore(database: IndexDatabase) {
  const whole = wholeReads(database)

  /** A cluster does not join the questions with their events, but routes each to the shard of its token. */
  async function pageOnShard(sql: Sql, question: HistoryQuestion): Promise<HistoryPage> {
    const [token, block, log, most, upTo] = valuesOf([question]).map(([value]) => value)
    const rows = await sql.query<EventRow>(shardPageStatement(question.backward), [token, block, log, most, upTo])
    const [count] = await sql.query<{ total: bigint }>(shardCountStatement, [token, upTo])
    return { rows: rows.map(parseEvent), total: Number(count?.total ?? 0n) }
  }

  const readOne = ({ tokenId, limit, at }: HistoryRead): Promise<IndexedHistory | null> =>
    whole(async (sql) => historyIn(await sql.query<HistoryRow>(historyStatement, [tokenId.toString(), limit, at])))

  async function readMany(asked: readonly HistoryRead[]): Promise<(IndexedHistory | null)[]> {
    const rows = await database.query<HistoryRow & { readonly place: number }>(historiesStatement, [
      numbers(asked.map(({ tokenId }) => tokenId)),
      numbers(asked.map(({ limit }) => limit)),
      numbers(asked.map(({ at }) => at)),
    ])
    const byPlace = Map.groupBy(rows, ({ place }) => place)
    return asked.map((_one, index) => historyIn((byPlace.get(index + 1) ?? []).map(({ place: _place, ...row }) => row)))
  }

  /** Histories that are asked for at one time are read together. A cluster routes each to the shard of its token. */
  const readHistory =
    database.dialect === 'citus'
      ? readOne
      : createBatcher({ run: readMany, maxItems: mostHistories, concurrency: batchesAtOnce })

  return {
    /** Returns `null` before the first leader of the index. */
    cursor: () => whole(readCursor),
    /** Returns the first `limit` events of a token; `null` before the first leader. Cursor and the hash of block `at` are of the same snapshot. */
    of: (tokenId: bigint, limit = 1_000, at = -1n): Promise<IndexedHistory | null> =>
      readHistory({ tokenId, limit, at }),
    /** Returns the newest `limit` changes of state up to block `at`, the oldest first. Older ones also lack where the token has very many events. */
    changes: (tokenId: bigint, limit: number, at: bigint): Promise<IndexedHistory | null> =>
      whole(async (sql) => historyIn(await sql.query<HistoryRow>(changesStatement, [tokenId.toString(), limit, at]))),
    /** Returns the account that minted each token up to a block: one of `accounts`, or null for any other. Tokens without a mint are left out. */
    async mintersOf(
      tokenIds: readonly bigint[],
      accounts: readonly Hex[],
      upTo: bigint,
    ): Promise<ReadonlyMap<bigint, Hex | null>> {
      const values = [numbers(tokenIds), bytes(accounts), upTo]
      const rows = await whole((sql) => sql.query<{ tokenId: string; account: Hex | null }>(mintersStatement, values))
      return new Map(rows.map(({ tokenId, account }) => [BigInt(tokenId), account]))
    },
    /** Returns pages of events in the order of the questions, by one statement for each direction. */
    async pages(questions: readonly HistoryQuestion[]): Promise<HistoryPage[]> {
      if (database.dialect === 'citus')
        return whole((sql) => Promise.all(questions.map((question) => pageOnShard(sql, question))))
      const pages = new Map(questions.map((question) => [question, { rows: [] as AssetEvent[], total: 0 }]))
      for (const backward of [false, true]) {
        const asked = questions.filter((question) => question.backward === backward)
        const found =
          asked.length === 0 ? [] : await database.query<PlacedRow>(pagesStatement(backward), valuesOf(asked))
        for (const { place, total, ...row } of found) {
          const question = asked[place - 1]
          const page = question && pages.get(question)
          if (page === undefined) continue
          page.total = Number(total)
          if (row.kind !== null) page.rows.push(parseEvent(row))
        }
      }
      return [...pages.values()]
    },
  }
}

/** The first `limit` events of a token, with the index's hash of the block `at`. */
type HistoryRead = Readonly<{ tokenId: bigint; limit: number; at: bigint }>

/** Each may have a thousand events. */
const mostHistories = 20
const batchesAtOnce = 4

/** A token without events still has one row, of the cursor alone. */
function historyIn(rows: readonly HistoryRow[]): IndexedHistory | null {
  const [first] = rows
  if (first === undefined) return null
  const cursor = { number: first.cursorNumber, hash: first.cursorHash, time: first.cursorTime }
  const found = rows.flatMap(
    ({ cursorNumber: _number, cursorHash: _hash, cursorTime: _time, hashAt: _hashAt, ...row }) =>
      row.kind === null ? [] : [parseEvent(row)],
  )
  return { cursor, hashAt: first.hashAt, rows: found }
}

function valuesOf(questions: readonly HistoryQuestion[]) {
  const start = ({ backward }: HistoryQuestion) => (backward ? String(2n ** 62n) : '-1')
  return [
    questions.map(({ tokenId }) => tokenId.toString()),
    questions.map((question) => question.after?.[0] ?? start(question)),
    questions.map(({ after }) => after?.[1] ?? '0'),
    questions.map(({ limit }) => String(limit)),
    questions.map(({ upTo = 2n ** 62n }) => String(upTo)),
  ]
}

/** Returns `null` before the first leader. */
export async function readCursor(sql: Sql): Promise<IndexCursor | null> {
  const [cursor] = await sql.query<IndexCursor>(`select ${cursorColumns} from index_cursor`)
  return cursor ?? null
}

export const cursorColumns = `number, ${hex('hash')} as hash, ${seconds('block_time')} as time`

/**
 * Adds events; one that is already stored is an error, because it would be counted twice. The values of a transaction are sent once
 * for all its events: they are most of the text.
 */
export async function insertEvents(sql: Sql, events: readonly AssetEvent[]): Promise<void> {
  if (events.length === 0) return
  const transactions: AssetEvent[] = []
  const places = events.map((event) => {
    if (event.transactionHash !== transactions.at(-1)?.transactionHash) transactions.push(event)
    return transactions.length
  })
  await sql.query(insertStatement, [
    numbers(transactions.map((event) => event.blockNumber)),
    bytes(transactions.map((event) => event.blockHash)),
    bytes(transactions.map((event) => event.transactionHash)),
    numbers(transactions.map((event) => clampSeconds(event.timestamp))),
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

const eventsAtOnce = 10_000

/** Reads all events of these tokens, each token's in the order of the chain. It may stop when it has more than `most`. */
export async function readEvents(
  sql: Sql,
  tokenIds: readonly string[],
  most = Number.POSITIVE_INFINITY,
): Promise<AssetEvent[]> {
  const events: AssetEvent[] = []
  let after: readonly [string, bigint, number] = ['-1', -1n, -1]
  for (;;) {
    const rows = await sql.query<EventRow>(eventsStatement, [numbers(tokenIds), ...after, eventsAtOnce])
    for (const row of rows) events.push(parseEvent(row))
    const last = rows.at(-1)
    if (last === undefined || rows.length < eventsAtOnce || events.length > most) return events
    after = [last.tokenId, last.blockNumber, last.logIndex]
  }
}

/** Reads all events of a range of blocks, both included, in the order of the chain. */
export async function readEventsBetween(sql: Sql, from: bigint, to: bigint): Promise<AssetEvent[]> {
  return (await sql.query<EventRow>(betweenStatement, [from, to])).map(parseEvent)
}

/** Yields the tokens of events after a moment, in unix seconds, in pages of the newest events first. A token may come again in another page. */
export async function* tokensSince(sql: Sql, since: bigint): AsyncGenerator<string[]> {
  for (let before: readonly [bigint, number] | undefined = [2n ** 62n, 0]; before !== undefined;) {
    const rows: Place[] = await sql.query<Place>(newestStatement, [...before, eventsAtOnce])
    const recent = rows.filter(({ time }) => time > since)
    yield [...new Set(recent.map(({ tokenId }) => tokenId))]
    const last = recent.length < eventsAtOnce ? undefined : recent.at(-1)
    before = last && [last.blockNumber, last.logIndex]
  }
}

type Place = Readonly<{ tokenId: string; blockNumber: bigint; logIndex: number; time: bigint }>

const newestStatement = `select token_id as "tokenId", block_number as "blockNumber", log_index as "logIndex", ${seconds('ts')} as time
  from history where (block_number, log_index) < ($1, $2) order by block_number desc, log_index desc limit $3`

/** Deletes what is stored at the places of these events. */
export async function deleteEvents(sql: Sql, events: readonly AssetEvent[]): Promise<void> {
  const places = [numbers(events.map((event) => event.blockNumber)), numbers(events.map((event) => event.logIndex))]
  if (events.length > 0) await sql.query(deletePlacesStatement, places)
}

const deletePlacesStatement = `delete from history h using unnest($1::bigint[], $2::int[]) p (block_number, log_index)
  where h.block_number = p.block_number and h.log_index = p.log_index`

/** Deletes all events above a block and returns the tokens that they named. */
export async function deleteEventsAbove(sql: Sql, number: bigint): Promise<string[]> {
  const tokens = new Set<string>()
  for (;;) {
    const deleted = await sql.query<{ token_id: string }>(deleteStatement, [number, eventsAtOnce])
    if (deleted.length === 0) return [...tokens]
    for (const { token_id } of deleted) tokens.add(token_id)
  }
}

type EventRow = Omit<AssetEvent, 'expiry'> & { readonly expiry: string | null }
type HistoryRow = Readonly<{
  cursorNumber: bigint
  cursorHash: BlockId['hash']
  cursorTime: bigint
  hashAt: BlockId['hash'] | null
}> &
  (EventRow | { readonly kind: null })
type PlacedRow = Readonly<{ place: number; total: bigint }> & (EventRow | { readonly kind: null })

function parseEvent({ expiry, ...row }: EventRow): AssetEvent {
  return { ...row, expiry: expiry === null ? null : BigInt(expiry) }
}

const eventColumns = `kind, token_id as "tokenId", from_state as "fromState", to_state as "toState", flags,
  ${hex('from_addr')} as "from", ${hex('to_addr')} as "to", ${hex('actor')} as actor, nonce::float8 as nonce, expiry,
  ${hex('data')} as data, block_number as "blockNumber", log_index as "logIndex", ${hex('block_hash')} as "blockHash",
  ${hex('tx_hash')} as "transactionHash", ${seconds('ts')} as timestamp`

const placeColumns = `c.number as "cursorNumber", ${hex('c.hash')} as "cursorHash",
  ${seconds('c.block_time')} as "cursorTime", ${hex('b.hash')} as "hashAt"`

const historyStatement = `select ${placeColumns}, h.*
  from index_cursor c left join index_block b on b.number = $3 left join lateral (
    select ${eventColumns} from history where token_id = $1::numeric order by block_number, log_index limit $2) h on true
  order by h."blockNumber", h."logIndex"`

/** An owner can make any number of other events: only the newest are looked at. */
const mostLookedAt = 10_000

export const changesStatement = `select ${placeColumns}, h.*
  from index_cursor c left join index_block b on b.number = $3 left join lateral (
    select ${eventColumns} from (
      select * from history where token_id = $1::numeric and block_number <= $3
      order by block_number desc, log_index desc limit ${mostLookedAt}) newest
    where kind = ${eventKinds.StateChanged} order by block_number desc, log_index desc limit $2) h on true
  order by h."blockNumber", h."logIndex"`

export const historiesStatement = `select k.place::int as place, ${placeColumns}, h.*
  from unnest($1::numeric[], $2::int[], $3::bigint[]) with ordinality k(token, most, at, place) cross join index_cursor c
  left join index_block b on b.number = k.at left join lateral (
    select ${eventColumns} from history where token_id = k.token order by block_number, log_index limit k.most) h on true
  order by k.place, h."blockNumber", h."logIndex"`

/** The mint is among the first events of a token. The second comparison leads a cluster to the shards of these tokens. */
export const mintersStatement = `select a.token_id::text as "tokenId",
    case when m.actor = any($2::bytea[]) then ${hex('m.actor')} end as account
  from asset a cross join lateral (
    select actor from history where token_id = a.token_id and token_id = any($1::numeric[])
      and kind = ${eventKinds.StateChanged} and from_state = 0 and block_number <= $3
    order by block_number, log_index limit 1) m
  where a.token_id = any($1::numeric[])`

/** Backward pages come nearest first. */
export function pagesStatement(backward: boolean): string {
  const direction = backward ? 'desc' : 'asc'
  return `select k.place::int as place, c.total, h.*
  from unnest($1::text[]::numeric[], $2::text[]::bigint[], $3::text[]::int[], $4::text[]::int[],
    $5::text[]::bigint[]) with ordinality k(token, block, log, most, up_to, place)
  cross join lateral (select count(*) as total from history where token_id = k.token and block_number <= k.up_to) c
  left join lateral (
    select ${eventColumns} from history where token_id = k.token and (block_number, log_index) ${backward ? '<' : '>'} (k.block, k.log)
      and block_number <= k.up_to
    order by block_number ${direction}, log_index ${direction} limit k.most) h on true
  order by k.place, h."blockNumber" ${direction}, h."logIndex" ${direction}`
}

function shardPageStatement(backward: boolean): string {
  const direction = backward ? 'desc' : 'asc'
  return `select ${eventColumns} from history where token_id = $1::text::numeric
      and (block_number, log_index) ${backward ? '<' : '>'} ($2::text::bigint, $3::text::int) and block_number <= $5::text::bigint
    order by block_number ${direction}, log_index ${direction} limit $4::text::int`
}

const shardCountStatement = `select count(*) as total from history
  where token_id = $1::text::numeric and block_number <= $2::text::bigint`

const eventsStatement = `select ${eventColumns} from history
  where token_id = any($1::numeric[]) and (token_id, block_number, log_index) > ($2::numeric, $3, $4)
  order by token_id, block_number, log_index limit $5`

const betweenStatement = `select ${eventColumns} from history where block_number between $1 and $2
  order by block_number, log_index`

const insertStatement = `insert into history (block_number, log_index, token_id, kind, from_state, to_state, flags,
    from_addr, to_addr, actor, nonce, expiry, data, block_hash, tx_hash, ts)
  select t.block_number, e.log_index, e.token_id, e.kind, e.from_state, e.to_state, e.flags,
    e.from_addr, e.to_addr, e.actor, e.nonce, e.expiry, e.data, t.block_hash, t.tx_hash, to_timestamp(t.seconds)
  from unnest($5::bigint[], $6::int[], $7::numeric[], $8::smallint[], $9::smallint[], $10::smallint[], $11::smallint[],
    $12::bytea[], $13::bytea[], $14::bytea[], $15::bigint[], $16::numeric[], $17::bytea[])
    e (place, log_index, token_id, kind, from_state, to_state, flags, from_addr, to_addr, actor, nonce, expiry, data)
  join unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[]) with ordinality
    t (block_number, block_hash, tx_hash, seconds, place) on t.place = e.place`

const deleteStatement = `with deleted as (
    delete from history where (block_number, log_index) in (
      select block_number, log_index from history where block_number > $1
      order by block_number desc, log_index desc limit $2)
    returning token_id)
  select distinct token_id from deleted`
