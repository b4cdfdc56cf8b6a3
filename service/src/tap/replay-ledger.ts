/**
 * The replay ledger: every tap counts once (spec §4.4, §5). The first presentation of a counter is FRESH; the same PICC again within
 * the window is the SAME TAP; anything else at or below the last counter is a REPLAY.
 * One row of `tag` decides every race. Taps that come together share one statement and one commit, and answer after it.
 */
import { LRUCache } from 'lru-cache'
import { bytes, numbers, texts } from '../db/columns.ts'
import { startOfRetention } from '../db/cluster/moment.ts'
import type { Database, Sql } from '../db/database.ts'
import { isOfOneRow } from '../db/errors.ts'
import { createAgeClock } from '../lib/async/age-clock.ts'
import { createBatcher } from '../lib/async/batch.ts'
import { eachConcurrently } from '../lib/async/concurrency.ts'
import { ServiceError } from '../lib/errors.ts'
import { toHex } from './bytes.ts'
import { pruneLogStatements } from './log/recorder.ts'

/** A tap with a valid MAC. */
export type Tap = Readonly<{ uid: Uint8Array; epoch: number; counter: number; picc: Uint8Array; batchId: string }>

/**
 * An observation for the operator that changes no outcome: `gap` is more than 50 counts since the last tap. `unseen_lower` a counter below
 * the last that was never presented, or was pruned; `other_picc` a known counter with other bytes; `old_epoch` a superseded epoch of the
 * chip; `near_end` a counter from FF0000.
 */
export type AnomalyKind = 'gap' | 'unseen_lower' | 'other_picc' | 'old_epoch' | 'near_end'

/**
 * `lastCounter` is the counter before this tap; `null` for a chip without a row. `OTHER_BATCH`: the chip is registered in another batch, or was
 * first tapped with the keys of another. `ageSeconds` is the time since the tap was accepted, by the clock of the database; 0 for one that is
 * not known. `isAnnounced`: the tap is announced, by this call or before.
 */
export type LedgerAnswer = Readonly<{
  outcome: 'FRESH' | 'SAME_TAP' | 'REPLAY' | 'REVOKED' | 'OTHER_BATCH'
  anomalies: readonly AnomalyKind[]
  lastCounter: number | null
  ageSeconds: number
  isAnnounced: boolean
}>

/** The product of a tag. `tagHash` is the commitment by which the chain has it, the present or the former one. */
export type TappedProduct = Readonly<{ tokenId: bigint; tagHash: `0x${string}` }>

export type ReplayLedger = ReturnType<typeof createReplayLedger>

export type LedgerOptions = Readonly<{
  sql: Pick<Database, 'query' | 'dialect'>
  /** Seconds from the first acceptance, 0 to 3600, never extended; 0 accepts each tap for one request only. */
  windowSeconds?: number
  /** For tests. The default is the database's clock, so that instances need not agree on the time. */
  now?: () => Date
  /** Milliseconds for the age of taps that this process accepted itself. */
  ageClock?: () => number
  /**
   * Called once when the clock was set back. `until` the clock is there again, in unix milliseconds, a tap is good for one request, or for its
   * window at the process that accepted it.
   */
  onSetBack?: (until: number) => void
}>

/**
 * Taps of one statement, and statements at the same time. While one commits, the next fills, because a statement costs as much as sixteen
 * taps. Where the database is far away or holds a statement up, the next begins meanwhile. A larger group shares its commit with more, but
 * leaves this process idle: groups of 64 answer a tenth fewer taps a second.
 */
const grouping = {
  maxItems: 32,
  concurrency: 2,
  overlapAfterMs: 10,
  isOfOneItem: isOfOneRow,
}

/** `time` is that of a test. `consume`: the tap counts, if it was never used. A `product` is announced with it. */
type Presented = Readonly<{ tap: Tap; time: string | null; consume: boolean; product: TappedProduct | null }>

/** Creates a ledger on PostgreSQL or PGlite (READ COMMITTED). Throws a `RangeError` for a window outside 0 to 3600 seconds. */
export function createReplayLedger({
  sql,
  windowSeconds = 300,
  now,
  ageClock = createAgeClock(),
  onSetBack = () => {},
}: LedgerOptions) {
  if (!(windowSeconds >= 0 && windowSeconds <= 3600)) throw new RangeError('A tap window has 0 to 3600 seconds.')
  const groups = () => createBatcher<Presented, LedgerRow>({ ...grouping, run: presentAll })
  const present = sql.dialect === 'citus' ? groupedByShard(sql, groups) : groups()

  /** Two taps of one tag cannot share a statement: the lower counter goes first, then the other is presented again. */
  async function presentAll(items: readonly Presented[]): Promise<LedgerRow[]> {
    const rows = await (sql.dialect === 'citus'
      ? presentOnShard(sql, items)
      : ask<LedgerRow>(sql, presentStatement, [
          ...columnsOf(items),
          numbers(items.map(({ product }) => product?.tokenId ?? null)),
          bytes(items.map(({ product }) => product?.tagHash ?? null)),
        ]))
    if (rows.length !== items.length) throw new ServiceError('INTERNAL', 'The tap ledger gave no answer.')
    const lost = items.flatMap((item, at) => {
      const row = rows[at] as LedgerRow
      return item.consume && !row.fresh && isUnused(row, item) ? [at] : []
    })
    if (lost.length === 0) return rows
    const used = new Set(items.filter((_, at) => rows[at]?.fresh).map(nameOf))
    const again = lost.filter((at) => used.has(nameOf(items[at] as Presented)))
    if (again.length === 0) return rows
    // The taps of `rows` are committed. If the others fail, `answer` presents these again.
    const later = await presentAll(again.map((at) => items[at] as Presented)).catch(() => [])
    return rows.map((row, at) => later[again.indexOf(at)] ?? row)
  }

  const isUnused = (row: LedgerRow, { tap }: Presented) => judge(row, tap, windowSeconds) === 'unused'
  const past = createPast((until) => onSetBack(until * 1_000))
  const own = createOwnTaps(windowSeconds * 1_000, ageClock)

  async function answer(tap: Tap, consume: boolean, product: TappedProduct | null): Promise<LedgerAnswer> {
    let lastCounter: number | null = null
    for (let round = 0; round < 3; round++) {
      const time = now?.().toISOString() ?? null
      const latest = past.latest()
      const began = ageClock()
      const row = await present({ tap, time, consume, product })
      const clock = time === null ? row.clock : Date.parse(time) / 1_000
      lastCounter = row.last_counter
      const isAnnounced = row.announced === true
      const ageSeconds = Math.max(0, row.age ?? 0)
      const found = row.fresh ? 'unused' : judge(row, tap, windowSeconds)
      const isPast = past.isClosed(latest, clock, row.fresh ? 0 : row.age)
      if (row.fresh && isPast) own.add(tap, began)
      if (found !== 'unused') {
        const isClosed = isPast && !own.isInWindow(tap)
        const outcome = found.outcome === 'SAME_TAP' && isClosed ? 'REPLAY' : found.outcome
        return { ...found, outcome, lastCounter, ageSeconds, isAnnounced }
      }
      if (row.fresh || !consume)
        return { outcome: 'FRESH', anomalies: anomaliesOf(tap, lastCounter), lastCounter, ageSeconds, isAnnounced }
      // Another process advanced the counter. Unless it is read again, a concurrent duplicate looks replayed.
    }
    return { outcome: 'REPLAY', anomalies: [], lastCounter, ageSeconds: 0, isAnnounced: false }
  }
  return {
    /**
     * Accepts a tap. One that becomes FRESH is announced for its `product` in the same commit; on a cluster, whose commits are of one shard,
     * it is not. Throws `INTERNAL` when the database does not answer. Then nothing is consumed, or the retry is the SAME TAP.
     */
    consume: (tap: Tap, product: TappedProduct | null = null) => answer(tap, true, product),
    /** Returns what `consume` would, and writes nothing. */
    judge: (tap: Tap) => answer(tap, false, null),
  }
}

/** Seconds by which clocks of databases may differ. A clock that is further behind was set back, or is that of another database. */
const clockTolerance = 5

/**
 * Creates the memory of a clock that may be set back, in seconds. Every tap that was known by then is closed, and so is one that may have
 * been: its time is one that the clock has shown before.
 */
function createPast(onSetBack: (until: number) => void) {
  let latest = -Infinity
  let closedTo = -Infinity
  return {
    latest: () => latest,
    /** Returns whether a tap of this age is closed. `before` is the latest reading when the statement began, which read `clock`. */
    isClosed: (before: number, clock: number | undefined, age: number | null): boolean => {
      if (clock === undefined) return false
      if (clock < before - clockTolerance && closedTo < before) {
        closedTo = before
        onSetBack(before)
      }
      latest = Math.max(latest, clock)
      return age !== null && clock - age <= closedTo
    },
  }
}

/** The oldest of more own taps are forgotten, and are good for one request. */
const mostOwnTaps = 10_000

/**
 * Creates the memory of the taps that this process accepted while the clock of the database was behind. They come after the moment when it was
 * set back, and the clock of the process says for how long they are known. The clock of the database must agree.
 */
function createOwnTaps(windowMs: number, now: () => number) {
  const accepted = new LRUCache<string, number>({ max: mostOwnTaps })
  const idOf = ({ uid, epoch, counter, picc }: Tap) => `${toHex(uid)}/${epoch}/${counter}/${toHex(picc)}`
  return {
    /** `at` is the time of the process before the statement that accepted the tap. */
    add: (tap: Tap, at: number): void => void accepted.set(idOf(tap), at),
    isInWindow: (tap: Tap): boolean => now() - (accepted.get(idOf(tap)) ?? -Infinity) < windowMs,
  }
}

const nameOf = ({ tap: { uid, epoch } }: Presented) => `${toHex(uid)}/${epoch}`
const hexOf = (value: Uint8Array) => `0x${toHex(value)}` as const

function columnsOf(items: readonly Presented[]): string[] {
  const column = <T>(of: (item: Presented) => T) => items.map(of)
  return [
    bytes(column(({ tap }) => hexOf(tap.uid))),
    numbers(column(({ tap }) => tap.epoch)),
    numbers(column(({ tap }) => tap.counter)),
    bytes(column(({ tap }) => hexOf(tap.picc))),
    texts(column(({ tap }) => tap.batchId)),
    texts(column(({ time }) => time)),
    texts(column(({ consume }) => String(consume))),
  ]
}

/** Taps of one shard make a group, so that a group that fails has consumed nothing. Citus determines the shard. */
function groupedByShard(sql: Sql, groups: () => (item: Presented) => Promise<LedgerRow>) {
  const ofShards = new Map<bigint, (item: Presented) => Promise<LedgerRow>>()
  const shardOf = createBatcher<Presented, bigint>({
    maxItems: 1_000,
    async run(items) {
      const uids = bytes(items.map(({ tap }) => hexOf(tap.uid)))
      return (await ask<{ shard: bigint }>(sql, shardsStatement, [uids])).map(({ shard }) => shard)
    },
  })
  return async (item: Presented): Promise<LedgerRow> => {
    const shard = await shardOf(item)
    const known = ofShards.get(shard) ?? groups()
    ofShards.set(shard, known)
    return known(item)
  }
}

/** Presents taps by a function that runs on their shard, in one commit. Tags are in the order of their keys, as everywhere. */
async function presentOnShard(sql: Sql, items: readonly Presented[]): Promise<LedgerRow[]> {
  const inOrder = items.map((item, at) => ({ item, at, name: nameOf(item) })).toSorted(inOrderOfKeys)
  const values = [inOrder[0]?.item.tap.uid, ...columnsOf(inOrder.map(({ item }) => item))]
  const rows: LedgerRow[] = []
  for (const { place, ...row } of await ask<LedgerRow & { place: number }>(sql, presentOnShardStatement, values))
    rows[inOrder[place - 1]?.at ?? -1] = row
  return rows
}

type Named = Readonly<{ item: Presented; name: string }>

function inOrderOfKeys(a: Named, b: Named): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1
  return a.item.tap.counter - b.item.tap.counter
}

const shardsStatement = `select get_shard_id_for_distribution_column('tag', uid) as shard
  from unnest($1::bytea[]) with ordinality t (uid, n) order by n`

const presentOnShardStatement = `select place, last_counter, picc, age, status, newer, fresh
  from present_taps($1, $2::bytea[], $3::int[], $4::int[], $5::bytea[], $6::text[], $7::text[], $8::boolean[])`

/** A tap that was answered as resolved; `uid` is hex. */
type Resolved = Readonly<{ uid: string; epoch: number; tapCounter: number }> & TappedProduct

/**
 * Creates the announcement of taps whose product was not known when they were accepted. It returns true for the first call per tap:
 * `productVerified` is sent when a tap is first resolved, which may be the retry after a 502. The same transaction records that the item
 * was tapped.
 */
export function createTapAnnouncement(sql: Pick<Database, 'query' | 'dialect'>): (tap: Resolved) => Promise<boolean> {
  const statement = sql.dialect === 'citus' ? announceOnClusterStatement : announceStatement
  return createBatcher<Resolved, boolean>({
    ...grouping,
    async run(taps) {
      const rows = await ask<{ first: boolean }>(sql, statement, [
        bytes(taps.map(({ uid }) => `0x${uid}` as const)),
        numbers(taps.map(({ epoch }) => epoch)),
        numbers(taps.map(({ tapCounter }) => tapCounter)),
        numbers(taps.map(({ tokenId }) => tokenId)),
        bytes(taps.map(({ tagHash }) => tagHash)),
      ])
      return rows.map(({ first }) => first)
    },
  })
}

/** Rows of one statement, and statements of one call. A backlog goes in steps between which other work has its turn. */
const [pruneRows, pruneSteps] = [1_000, 5]
const prunedPauseMs = 60_000

/**
 * Creates the pruning that the leader calls again and again. It deletes taps that were first seen more than `days` ago, and what is
 * recorded of them. It rests for a minute when none is left, and after a failure. No deleted tap verifies again, because the last counter
 * of its tag stays.
 */
export function createTapPruning({
  sql,
  days,
  now = Date.now,
}: {
  readonly sql: Sql
  readonly days: number
  /** Milliseconds since 1970. */
  readonly now?: () => number
}): () => Promise<void> {
  if (!(days >= 1)) throw new RangeError('Taps are kept for at least one day.')
  let restsUntil = 0
  const statements = [pruneTapsStatement, ...pruneLogStatements]
  return async () => {
    if (performance.now() < restsUntil) return
    restsUntil = performance.now() + prunedPauseMs
    const before = await startOfRetention(sql, days, now())
    let isMoreLeft = false
    // One that fails, as at the statement limit, keeps no other from its rows.
    const failures = await eachConcurrently(statements, 1, async (statement) => {
      for (let steps = 0; steps < pruneSteps; steps += 1)
        if ((await sql.query(statement, [before, pruneRows])).length < pruneRows) return
      isMoreLeft = true
    })
    if (failures.length > 0) throw failures[0]
    if (isMoreLeft) restsUntil = 0
  }
}

type LedgerRow = {
  last_counter: number | null
  picc: Uint8Array | null
  age: number | null
  status: string | null
  newer: boolean
  /** This statement used the counter. */
  fresh: boolean
  /** The tap is announced, by this statement or before. Missing on a cluster. */
  announced?: boolean
  /** The clock of the database in seconds. Missing on a cluster, whose workers have clocks of their own. */
  clock?: number
}

/** Decides what the row already decides: everything but a counter that was never used. */
function judge(
  row: LedgerRow,
  tap: Tap,
  windowSeconds: number,
): Pick<LedgerAnswer, 'outcome' | 'anomalies'> | 'unused' {
  if (row.status === 'revoked') return { outcome: 'REVOKED', anomalies: [] }
  if (row.status === 'elsewhere') return { outcome: 'OTHER_BATCH', anomalies: [] }
  if (row.picc !== null && row.age !== null) {
    if (Buffer.compare(row.picc, tap.picc) !== 0) return { outcome: 'REPLAY', anomalies: ['other_picc'] }
    // The clock of another database may be behind. A tap is from the future then.
    const isInside = row.age < windowSeconds && row.age > -Math.min(clockTolerance, windowSeconds)
    return { outcome: isInside ? 'SAME_TAP' : 'REPLAY', anomalies: [] }
  }
  if (row.newer) return { outcome: 'REPLAY', anomalies: ['old_epoch'] }
  if (tap.counter <= (row.last_counter ?? 0)) return { outcome: 'REPLAY', anomalies: ['unseen_lower'] }
  return 'unused'
}

function anomaliesOf({ counter }: Tap, lastCounter: number | null): AnomalyKind[] {
  const kinds: AnomalyKind[] = []
  if (lastCounter !== null && counter - lastCounter > 50) kinds.push('gap')
  if (counter >= 0xff0000) kinds.push('near_end')
  return kinds
}

async function ask<Row>(sql: Sql, text: string, values: readonly unknown[]): Promise<Row[]> {
  try {
    return await sql.query<Row>(text, values)
  } catch (cause) {
    throw new ServiceError('INTERNAL', 'The tap ledger cannot be reached.', { cause })
  }
}

const presentStatement = `select last_counter, picc, age, status, newer, fresh, announced, extract(epoch from now())::float8 as clock
  from accept_taps($1::bytea[], $2::int[], $3::int[], $4::bytea[], $5::text[], $6::text[], $7::boolean[], $8::numeric[], $9::bytea[])`

const announceStatement = `select unnest(announce_taps($1::bytea[], $2::int[], $3::int[], $4::numeric[], $5::bytea[])) as first`

const announceOnClusterStatement = `
WITH a AS (SELECT n, announce_tap(uid, epoch, counter, token, tag_hash) AS first
  FROM (SELECT * FROM unnest($1::bytea[], $2::int[], $3::int[], $4::numeric[], $5::bytea[])
      WITH ORDINALITY AS g (uid, epoch, counter, token, tag_hash, n)
    ORDER BY uid, epoch, counter) ordered)
SELECT first FROM a ORDER BY n`

// A tap is deleted only if its tag holds that counter or a higher one. That alone makes it a replay from then on.
export const pruneTapsStatement = `
DELETE FROM tap WHERE (uid, epoch, counter) IN (
  SELECT p.uid, p.epoch, p.counter FROM tap p JOIN tag t ON t.uid = p.uid AND t.epoch = p.epoch AND t.last_counter >= p.counter
  WHERE p.first_seen < $1::text::timestamptz ORDER BY p.first_seen LIMIT $2)
RETURNING counter`
