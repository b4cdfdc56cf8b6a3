/**
 * The database of the indexer (spec §2.9, §4.9). Events, tokens, transfers, announcements and the cursor are written in one
 * transaction, so that the index always holds at the block it names. Every leader raises the epoch, and nothing is written under an
 * earlier one. Every transaction writes the cursor's row first, so that a lock of that row waits for the whole step.
 */
import type { Hex } from '@touchstone/verdict'
import { bytes, hex, hexToBytes, numbers, texts, zeroHashSql } from '../db/columns.ts'
import { appendAudit, auditText } from '../db/audit.ts'
import type { Sql } from '../db/database.ts'
import { isDeadlock } from '../db/errors.ts'
import type { BlockId } from '../domain/chain.ts'
import { clampSeconds, type IndexCursor, type IndexStep, type IndexStore } from '../domain/chain-index.ts'
import { retry } from '../lib/async/retry.ts'
import { unlinkCounted, unlinkRegistrations } from './assets/registrations.ts'
import {
  deleteAssets,
  missingRegistered,
  missingTokens,
  storeAssets,
  updateAssets,
  withoutGaps,
} from './assets/rows.ts'
import { keepSums } from './assets/sums.ts'
import { dropUntaggedTaps, keepTagsOfAllTaps } from './assets/taps.ts'
import {
  type Announcement,
  announce,
  announceDifferences,
  announcementsOf,
  differingTokens,
  expiryRetractions,
  feedDifferences,
  type FeedState,
  readFeedState,
  replacedBrands,
  sortedDifferences,
  transferAnnouncement,
} from './feed.ts'
import { cursorColumns, deleteEvents, deleteEventsAbove, insertEvents, readCursor, readEvents } from './history.ts'
import { presentBrands, trimOutbox } from './outbox.ts'
import { expiredBefore, projectAssets, projectTransfers, type Transfer } from './project.ts'
import { type IndexDatabase, changeIndex } from './steps.ts'
import { applyTransfers, expireOffers, storeTransfers } from './transfers.ts'

/** `now` is in unix milliseconds; events are kept for `retentionDays`. */
export function indexStore(
  database: IndexDatabase,
  { now = Date.now, retentionDays = 30 }: Readonly<{ now?: () => number; retentionDays?: number }> = {},
): IndexStore {
  const seconds = () => BigInt(Math.floor(now() / 1000))
  let tidied = { number: -1n, at: -Infinity, brand: '' }
  return {
    cursor: () => readCursor(database),
    kept: (from, limit) => database.query<BlockId>(keptStatement, [from, limit]),

    lead: (contract) =>
      database.transaction(async (sql) => {
        const [former] = await sql.query<{ contract: Hex }>(
          `select ${hex('contract')} as contract from index_cursor for update`,
        )
        const [row] = await sql.query<IndexCursor & { epoch: bigint }>(leadStatement, [hexToBytes(contract)])
        if (row === undefined) return null
        if (former !== undefined && former.contract !== contract.toLowerCase()) await dropUntaggedTaps(sql)
        const { epoch, ...cursor } = row
        // The cursor is locked until the commit. No step is under way.
        if ((await sql.query(aboveStatement, [cursor.number])).length > 0)
          throw new Error(
            'The index has rows above its block: a standby that lagged was promoted, or a backup of a busy cluster restored. Rebuild it with "touchstone index rebuild".',
          )
        return { epoch, cursor }
      }),

    async apply(step) {
      if (step.events.length === 0 && step.rewindTo === null) return moveCursor(database, step)
      return changeIndex(database, async (sql) => {
        if (!(await moveCursor(sql, step))) return false
        await applyStep(sql, step, seconds())
        return true
      })
    },

    async arrive(epoch, isOver) {
      const write = (change: (sql: Sql) => Promise<unknown>) => changeUnder(database, epoch, change)
      if (!(await write((sql) => sql.query(sinceStatement, [seconds() - newsSeconds])))) return false
      const { isFed, since } = await readFeedState(database)
      if (isFed) return true
      // Everything is compared without a lock. Until this leader has arrived, or another one leads, nothing else changes what is compared.
      for await (const missing of missingRegistered(database)) {
        if (isOver()) return false
        if (missing.length > 0 && !(await write((sql) => unlinkRegistrations(sql, missing)))) return false
      }
      let differing = new Set<string>()
      for await (const tokens of differingTokens(database, since)) {
        if (isOver()) return false
        for (const token of tokens) differing.add(token)
        if (differing.size < announcedAtOnce) continue
        if (!(await write((sql) => announceDifferences(sql, [...differing], since)))) return false
        differing = new Set()
      }
      return write(async (sql) => {
        await sql.query('update index_cursor set fed_epoch = epoch')
        await announceDifferences(sql, [...differing], since)
      })
    },

    async prune({ epoch, keepFrom }) {
      const whileLeading = (work: (sql: Sql, cursor: { readonly number: bigint }) => Promise<void>) =>
        database.transaction(async (sql) => {
          const [cursor] = await sql.query<{ number: bigint }>(cursorOfEpochStatement, [epoch])
          if (cursor !== undefined) await work(sql, cursor)
          return cursor !== undefined
        })
      // Offers expire also where old rows cannot be deleted.
      if (!(await whileLeading((sql) => expire(sql, seconds())))) return false
      let isMoreLeft = false
      const trim = async (sql: Sql) => void (isMoreLeft = await trimOutbox(sql, retentionDays, seconds()))
      const isLeading = await whileLeading(async (sql, { number }) => {
        if (number === tidied.number && Math.abs(now() - tidied.at) < tidyMs) return
        await tidy(sql, keepFrom)
        await trim(sql)
        tidied = { number, at: now(), brand: await compactBrands(sql, tidied.brand) }
      })
      if (!isLeading) return false
      for (let trims = 1; isMoreLeft && trims < mostTrims; trims += 1) if (!(await whileLeading(trim))) return false
      if (isMoreLeft) tidied.at = -Infinity
      return true
    },

    repair: (epoch, { lost, forged, tokens }) =>
      changeUnder(database, epoch, async (sql) => {
        await keepSums(sql)
        await deleteEvents(sql, [...lost, ...forged])
        await insertEvents(sql, lost)
        await announce(sql, await projectAgain(sql, tokens, await pastOf(sql, seconds()), await readFeedState(sql)))
      }),

    noteDifferences: async (epoch, differences) =>
      void (await database.query(
        'update index_cursor set differences = $2, compared_at = clock_timestamp() where epoch = $1',
        [epoch, differences],
      )),
    async differences() {
      const [row] = await database.query<{ differences: number | null }>('select differences from index_cursor')
      return row?.differences ?? null
    },

    clear: (epoch) => clearAll(database, epoch),
  }
}

const cursorOfEpochStatement = 'select number from index_cursor where epoch = $1 for share'

const keptStatement = `select number, ${hex('hash')} as hash from index_block where number <= $1 order by number desc limit $2`

const leadStatement = `insert into index_cursor (contract, epoch, number, hash, block_time)
  values ($1, 1, -1, ${zeroHashSql}, to_timestamp(0))
  on conflict (one) do update set epoch = index_cursor.epoch + 1, contract = excluded.contract,
    fed_epoch = case when index_cursor.fed_epoch = index_cursor.epoch then index_cursor.epoch + 1 end
  where index_cursor.contract = excluded.contract or index_cursor.number = -1
  returning epoch, ${cursorColumns}`

const aboveStatement = 'select 1 from history where block_number > $1 limit 1'

/**
 * Moves the cursor and keeps the hashes and times of the step's blocks. Returns false, and changes nothing, when the epoch is over or the cursor is
 * elsewhere.
 */
async function moveCursor(sql: Sql, { epoch, from, to, blocks }: IndexStep): Promise<boolean> {
  const values = [epoch, from.number, hexToBytes(from.hash), to.number, hexToBytes(to.hash), clampSeconds(to.time)]
  const kept = [
    numbers(blocks.map(({ number }) => number)),
    bytes(blocks.map(({ hash }) => hash)),
    numbers(blocks.map(({ time }) => clampSeconds(time))),
  ]
  return (await sql.query(moveStatement, [...values, ...kept])).length > 0
}

const moveStatement = `with moved as (
    update index_cursor set number = $4, hash = $5, block_time = to_timestamp($6::bigint)
    where epoch = $1 and number = $2 and hash = $3 returning 1),
  kept as (
    insert into index_block (number, hash, time)
    select b.number, b.hash, to_timestamp(b.time) from unnest($7::bigint[], $8::bytea[], $9::bigint[]) b (number, hash, time), moved
    on conflict (number) do update set hash = excluded.hash, time = excluded.time)
  select 1 from moved`

/** Changes the index in one transaction, while the steps of others wait. Returns false, and changes nothing, when the epoch is over. */
function changeUnder(database: IndexDatabase, epoch: bigint, change: (sql: Sql) => Promise<unknown>): Promise<boolean> {
  return changeIndex(database, async (sql) => {
    if ((await sql.query(holdStatement, [epoch])).length === 0) return false
    await change(sql)
    return true
  })
}

const holdStatement = 'update index_cursor set epoch = epoch where epoch = $1 returning 1'

/** Returns now, in unix seconds, by the clock of this machine or of the indexed block, whichever is ahead. Offers expire by it. */
async function pastOf(sql: Sql, now: bigint): Promise<bigint> {
  const time = (await readCursor(sql))?.time ?? now
  return now > time ? now : time
}

async function applyStep(sql: Sql, { events, to, rewindTo: rewind }: IndexStep, now: bigint) {
  const latest = now > to.time ? now : to.time
  await keepSums(sql)
  const feed = await readFeedState(sql)
  // Later blocks may end an offer in time. What expires by a clock is announced at the head, not on the way to it.
  const past = feed.isFed ? to.time : latest
  const announcements: Announcement[] = []
  if (rewind !== null) {
    await sql.query('delete from index_block where number > $1', [to.number])
    announcements.push(...(await projectAgain(sql, await deleteEventsAbove(sql, rewind), latest, feed)))
  }
  const replaced = feed.isFed ? await replacedBrands(sql, events) : undefined
  await insertEvents(sql, events)
  await storeAssets(sql, projectAssets(events))
  const { steps, reopened } = await applyTransfers(sql, events, past)
  if (feed.isFed) {
    announcements.push(...(await expiryRetractions(sql, reopened)), ...announcementsOf(events, steps, replaced))
    await announce(sql, announcements)
  }
  if (rewind !== null) {
    const after = { rewoundTo: rewind.toString(), indexedTo: to.number.toString(), blockHash: to.hash }
    await appendAudit(sql, auditText({ who: 'indexer' }, { act: 'index.rewind', subject: '', outcome: 'DONE', after }))
  }
}

const tokensAtOnce = 500

/**
 * Projects tokens again from the events that are stored, after some were deleted or added. Tokens without a mint are deleted, and their
 * registrations wait for another. `past` is now, in unix seconds: offers that expired before stay so, where it is later still. Returns what
 * has to be announced.
 */
async function projectAgain(sql: Sql, tokens: readonly string[], past: bigint, feed: FeedState) {
  const differences: Announcement[] = []
  for (let at = 0; at < tokens.length; at += tokensAtOnce)
    differences.push(...(await projectSomeAgain(sql, tokens.slice(at, at + tokensAtOnce), past, feed)))
  return sortedDifferences(differences)
}

async function projectSomeAgain(sql: Sql, tokens: readonly string[], past: bigint, { isFed, since }: FeedState) {
  const stored = await sql.query<{ id: string; isExpired: boolean }>(transfersStatement, [numbers(tokens)])
  const events = await readEvents(sql, tokens)
  const formerBrands = isFed ? await presentBrands(sql, tokens) : new Map<string, string>()

  const assets = projectAssets(events).filter(({ minted }) => minted !== null)
  const minted = new Set(assets.map(({ tokenId }) => tokenId))
  await deleteAssets(
    sql,
    tokens.filter((tokenId) => !minted.has(tokenId)),
  )
  const lostRows = new Set(await missingTokens(sql, [...minted]))
  await storeAssets(sql, assets.filter(({ tokenId }) => lostRows.has(tokenId)).map(withoutGaps))
  await updateAssets(sql, assets.map(withoutGaps))

  const isPast = expiredBefore(past)
  const known = new Set(stored.flatMap(({ id, isExpired }) => (isExpired ? [id] : [])))
  const hasExpired = (offer: Transfer) => isPast(offer) && (known.has(offer.id) || !isFed)
  const { transfers } = projectTransfers(events, new Map(), hasExpired)
  const lost = stored.filter(({ id }) => !transfers.has(id))
  await sql.query(deleteTransfersStatement, [numbers(tokens), texts(lost.map(({ id }) => id))])
  await storeTransfers(sql, [...transfers.values()])
  return isFed ? feedDifferences(sql, tokens, events, { since }, formerBrands) : []
}

/** Changes older than this, in seconds, are not announced when the head is reached for the first time. */
const newsSeconds = 600n
const sinceStatement = 'update index_cursor set fed_since = to_timestamp($1::bigint) where fed_since is null'

/** Tokens whose differences are announced in one transaction: first taps and registrations wait for it. */
const announcedAtOnce = 500

const transfersStatement = `select id, status = 'FAILED' and settled_tx is null as "isExpired" from transfer
  where token_id = any($1::numeric[])`
const deleteTransfersStatement = 'delete from transfer where token_id = any($1::numeric[]) and id = any($2::text[])'

/** Offers expire by the clock, also when no block comes. */
async function expire(sql: Sql, now: bigint): Promise<void> {
  const announcements = (await expireOffers(sql, now)).map((transfer) =>
    transferAnnouncement({ transfer, cause: null }),
  )
  if (announcements.length > 0 && (await readFeedState(sql)).isFed) await announce(sql, announcements)
}

/** The tables are tidied so often when no block comes, in milliseconds: taps and registrations write rows too. */
const tidyMs = 10_000

/** Parts of the old events that one turn deletes. The next block waits for them; the next turn deletes the rest. */
const mostTrims = 10

/** Deletes old blocks and compacts sums. Of the blocks below `keepFrom`, the first of every 4096 is kept. */
async function tidy(sql: Sql, keepFrom: bigint): Promise<void> {
  await sql.query(deleteBlocksStatement, [keepFrom, blocksAtOnce])
  for (const statement of compactStatements) await sql.query(statement)
}

/** More come only after a long backfill; the next turns delete the rest. */
const blocksAtOnce = 50_000

/** A deep reorganisation can be followed back to the blocks that are left. */
const deleteBlocksStatement = `delete from index_block where number in (
  select number from index_block b where number < $1
    and exists (select from index_block p where p.number >= b.number - b.number % 4096 and p.number < b.number)
  limit $2)`

/** Rows of brands that one turn looks at; the next turns look at the others. */
const brandsAtOnce = 20_000

/** Compacts sums of brands from `from` on, in the order of their names. Returns the brand at which the next turn begins. */
async function compactBrands(sql: Sql, from: string): Promise<string> {
  const [looked] = await sql.query<{ last: string | null; n: number }>(compactBrandsStatement, [from, brandsAtOnce])
  return looked === undefined || looked.n < brandsAtOnce ? '' : (looked.last ?? '')
}

const brandKey = `(coalesce(brand, '') collate "C")`

/** Catalogues have up to millions of brands, so that a turn looks at some of them only. */
export const compactBrandsStatement = `with looked as (
    select ctid as place, ${brandKey} as name, brand, verified from product_count
    where ${brandKey} >= $1::text collate "C" order by ${brandKey} limit $2),
  many as (select array_agg(place) as places from looked group by brand, verified having count(*) > 4),
  deleted as (
    delete from product_count where ctid = any(array(select unnest(places) from many)) returning brand, verified, n),
  summed as (
    insert into product_count (brand, verified, n)
    select brand, verified, sum(n) from deleted group by brand, verified having sum(n) <> 0)
  select max(name) as last, count(*)::int as n from looked`

/** Rows that were added several times become one row with their sum, so readers and other writers notice nothing. */
const compactStatements = [
  `with many as (select array_agg(ctid) as places from product_group group by dimension, key having count(*) > 4),
    deleted as (delete from product_group where ctid in (select unnest(places) from many) returning dimension, key, n)
  insert into product_group (dimension, key, n)
  select dimension, key, sum(n) from deleted group by dimension, key having sum(n) <> 0`,
  `with deleted as (
    delete from product_total where (select count(*) from product_total) > 100 returning verified, n)
  insert into product_total (verified, n)
  select verified, sum(n) from deleted group by verified having sum(n) <> 0`,
]

/** Deletes everything that came from the chain; the next leader begins anew. Registrations, taps, messages and keys stay. */
export async function rebuildIndex(database: IndexDatabase): Promise<void> {
  // A reader that holds one of the tables may wait for another one.
  await retry(() => clearAll(database, null), { pausesMs: [100, 500, 2_000], isRetryable: isDeadlock })
}

async function clearAll(database: IndexDatabase, epoch: bigint | null) {
  await keepTagsOfAllTaps(database)
  return changeIndex(database, (sql) => clear(sql, epoch))
}

async function clear(sql: Sql, epoch: bigint | null): Promise<boolean> {
  if ((await sql.query(resetStatement, [epoch])).length === 0 && epoch !== null) return false
  // Readers of an earlier block hold that table first: none sees it whole and others empty.
  await sql.query(
    'truncate index_block, history, transfer, asset, product_count, product_total, product_group, product_name',
  )
  await unlinkCounted(sql)
  return true
}

/** Moves the cursor before the first block, under a new epoch. The epoch given is the present one, or `null` for any. */
const resetStatement = `update index_cursor
  set epoch = epoch + 1, number = -1, hash = ${zeroHashSql}, block_time = to_timestamp(0), differences = null, compared_at = null
  where $1::bigint is null or epoch = $1 returning 1`
