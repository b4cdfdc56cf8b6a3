/**
 * The replay ledger: every tap counts once (spec §4.4, §5). The first presentation of a counter is FRESH; the same PICC again within
 * the window is the SAME TAP; anything else at or below the last counter is a REPLAY.
 * It uses two autocommit statements without transaction or lock: one row of `tag` decides every race.
 */
import { ServiceError } from '../lib/errors.ts'
import { parseHex } from '../lib/bytes.ts'
import type { Sql } from '../db/database.ts'

/** A tap with a valid MAC. */
export type Tap = Readonly<{ uid: Uint8Array; epoch: number; counter: number; picc: Uint8Array; batchId: string }>

/**
 * An observation for the operator that changes no outcome: `gap` is more than 50 counts since the last tap; `unseen_lower` a counter
 * below the last that was never presented, or was pruned; `other_picc` a known counter with other bytes; `old_epoch` a superseded epoch of the chip;
 * `near_end` a counter from FF0000.
 */
export type AnomalyKind = 'gap' | 'unseen_lower' | 'other_picc' | 'old_epoch' | 'near_end'

/** `lastCounter` is the counter before this tap; `null` for a chip without a row. */
type LedgerAnswer = Readonly<{
  outcome: 'FRESH' | 'SAME_TAP' | 'REPLAY' | 'REVOKED'
  anomalies: readonly AnomalyKind[]
  lastCounter: number | null
}>

export type Ledger = Readonly<{
  /** Throws `INTERNAL` when the database does not answer. Then nothing is consumed, or the retry is the SAME TAP. */
  consume: (tap: Tap) => Promise<LedgerAnswer>
  /** Returns what `consume` would, and writes nothing. */
  judge: (tap: Tap) => Promise<LedgerAnswer>
}>

export type LedgerOptions = Readonly<{
  sql: Sql
  /** Seconds from the first acceptance, 0 to 3600, never extended; 0 accepts each tap for one request only. */
  windowSeconds?: number
  /** For tests. The default is the database's clock, so that instances need not agree on the time. */
  now?: () => Date
}>

/** Creates a ledger on PostgreSQL or PGlite (READ COMMITTED). Throws a `RangeError` for a window outside 0 to 3600 seconds. */
export function createLedger({ sql, windowSeconds = 300, now }: LedgerOptions): Ledger {
  if (!(windowSeconds >= 0 && windowSeconds <= 3600)) throw new RangeError('A tap window has 0 to 3600 seconds.')

  async function present(tap: Tap, use: (tap: Tap, time: string | null) => Promise<boolean>): Promise<LedgerAnswer> {
    let lastCounter: number | null = null
    for (let round = 0; round < 3; round++) {
      const time = now?.().toISOString() ?? null
      const row = await read(sql, tap, time)
      lastCounter = row.last_counter
      const answer = judge(row, tap, windowSeconds)
      if (answer !== 'unused') return { ...answer, lastCounter }
      if (await use(tap, time)) return { outcome: 'FRESH', anomalies: anomaliesOf(tap, lastCounter), lastCounter }
      // Another request advanced the counter. Unless it is read again, a concurrent duplicate looks replayed.
    }
    return { outcome: 'REPLAY', anomalies: [], lastCounter }
  }
  return {
    consume: (tap) => present(tap, (it, time) => accept(sql, it, time)),
    judge: (tap) => present(tap, async () => true),
  }
}

/**
 * Returns true for the first call per accepted tap: `productVerified` is sent when a tap is first answered as resolved, which may be
 * the retry after a 502. The same transaction records that the item was tapped.
 */
export async function announceVerified(
  sql: Sql,
  { uid, epoch, tapCounter, tokenId }: Readonly<{ uid: string; epoch: number; tapCounter: number; tokenId: bigint }>,
): Promise<boolean> {
  const values = [parseHex(uid), epoch, tapCounter, String(tokenId)]
  const [row] = await ask<{ first: boolean }>(sql, 'SELECT announce_tap($1, $2, $3, $4) AS first', values)
  return row?.first === true
}

/** Rows of one statement, and statements of one call: a backlog goes in steps between which other work has its turn. */
const [pruneRows, pruneSteps] = [1_000, 5]
const prunedPauseMs = 60_000

/**
 * Creates the pruning that the leader calls again and again: it deletes taps that were first seen more than `days` ago, and rests for a
 * minute when none is left. No deleted tap verifies again, because the last counter of its tag stays.
 */
export function createTapPruning({ sql, days }: { readonly sql: Sql; readonly days: number }): () => Promise<void> {
  if (!(days >= 1)) throw new RangeError('Taps are kept for at least one day.')
  let restsUntil = 0
  return async () => {
    if (performance.now() < restsUntil) return
    for (let steps = 0; steps < pruneSteps; steps += 1) {
      if ((await sql.query(pruneStatement, [days, pruneRows])).length === pruneRows) continue
      restsUntil = performance.now() + prunedPauseMs
      return
    }
  }
}

type LedgerRow = {
  last_counter: number | null
  picc: Uint8Array | null
  age: number | null
  status: string | null
  newer: boolean
}

async function read(sql: Sql, tap: Tap, time: string | null): Promise<LedgerRow> {
  const [row] = await ask<LedgerRow>(sql, readStatement, [tap.uid, tap.epoch, tap.counter, tap.batchId, time])
  if (row === undefined) throw new ServiceError('INTERNAL', 'The tap ledger gave no answer.')
  return row
}

/** Decides what the row already decides: everything but a counter that was never used. */
function judge(row: LedgerRow, tap: Tap, windowSeconds: number): Omit<LedgerAnswer, 'lastCounter'> | 'unused' {
  if (row.status === 'revoked') return { outcome: 'REVOKED', anomalies: [] }
  if (row.picc !== null && row.age !== null) {
    if (Buffer.compare(row.picc, tap.picc) !== 0) return { outcome: 'REPLAY', anomalies: ['other_picc'] }
    const isInside = windowSeconds > 0 && row.age < windowSeconds
    return { outcome: isInside ? 'SAME_TAP' : 'REPLAY', anomalies: [] }
  }
  if (row.newer) return { outcome: 'REPLAY', anomalies: ['old_epoch'] }
  if (tap.counter <= (row.last_counter ?? 0)) return { outcome: 'REPLAY', anomalies: ['unseen_lower'] }
  return 'unused'
}

async function accept(sql: Sql, tap: Tap, time: string | null): Promise<boolean> {
  const values = [tap.uid, tap.epoch, tap.counter, tap.picc, tap.batchId, time]
  return (await ask(sql, acceptStatement, values)).length > 0
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
  } catch (error) {
    throw new ServiceError('INTERNAL', 'The tap ledger cannot be reached.', { cause: error })
  }
}

// $1 uid, $2 epoch, $3 counter, $4 batch, $5 time of a test. The batch status is read here, so that a revocation takes effect on
// every instance at once; `newer` closes a former epoch that has no row.
const readStatement = `
SELECT t.last_counter, p.picc, extract(epoch from coalesce($5::timestamptz, clock_timestamp()) - p.first_seen)::float8 AS age,
  b.status, EXISTS (SELECT FROM tag n WHERE n.uid = $1 AND n.epoch > $2) AS newer
FROM (SELECT 1) one
LEFT JOIN tag t ON t.uid = $1 AND t.epoch = $2
LEFT JOIN tap p ON p.uid = $1 AND p.epoch = $2 AND p.counter = $3
LEFT JOIN tag_batch b ON b.id = $4`

// $4 picc, $5 batch, $6 time of a test. One row means FRESH; no row means that another request advanced the counter first.
const acceptStatement = `
WITH adv AS (INSERT INTO tag AS t (uid, epoch, batch_id, last_counter) VALUES ($1, $2, $5, $3)
  ON CONFLICT (uid, epoch) DO UPDATE SET last_counter = EXCLUDED.last_counter
  WHERE t.last_counter < EXCLUDED.last_counter RETURNING uid, epoch)
INSERT INTO tap (uid, epoch, counter, picc, first_seen)
SELECT uid, epoch, $3, $4, coalesce($6::timestamptz, clock_timestamp()) FROM adv RETURNING first_seen`

// A tap goes only where its tag holds that counter or a higher one, which alone makes it a replay from then on.
const pruneStatement = `
DELETE FROM tap WHERE (uid, epoch, counter) IN (
  SELECT p.uid, p.epoch, p.counter FROM tap p JOIN tag t ON t.uid = p.uid AND t.epoch = p.epoch AND t.last_counter >= p.counter
  WHERE p.first_seen < clock_timestamp() - make_interval(secs => $1::float8 * 86400) LIMIT $2)
RETURNING counter`
