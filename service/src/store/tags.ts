/**
 * The registry of tags (spec §4.4–4.6): which chip, in which life (epoch), carries which token. The newest life alone names it;
 * registering a new life closes the former ones, so that no address of theirs verifies any more. What item a token is, stands in
 * `items.ts` alone: a row that names an item registers it there.
 */
import type { Sql } from './database.ts'
import { refusalOf } from './items.ts'

/**
 * `uid` has 7 bytes; `baselineCounter` is the counter read when the tag was made. `gtin` and `serial` go together and need a token:
 * they are its item from now on, whatever it was before.
 */
export type TagRow = Readonly<{
  uid: Uint8Array
  epoch: number
  batchId: string
  baselineCounter?: number
  tokenId?: bigint
  gtin?: string
  serial?: string
}>

/** A refused row changed nothing. `token_taken`: another chip has the token; `item_taken`: another token is the item. */
export type ImportOutcome =
  | { readonly outcome: 'registered'; readonly created: boolean }
  | {
      readonly outcome: 'refused'
      readonly because: 'newer_epoch' | 'other_batch' | 'token_taken' | 'item_taken' | 'not_legal'
    }

export type RegisteredTag = Readonly<{
  uid: Uint8Array
  epoch: number
  batchId: string
  lastCounter: number
  baselineCounter: number | null
  tokenId: bigint | null
  gtin: string | null
  serial: string | null
}>

export type TagStore = ReturnType<typeof tagStore>

export function tagStore(sql: Sql) {
  async function one(where: string, values: readonly unknown[]): Promise<RegisteredTag | undefined> {
    const [row] = await sql.query<TagColumns>(
      `SELECT ${columns} FROM tag t LEFT JOIN item i ON i.token_id = t.token_id WHERE ${where} ORDER BY t.epoch DESC LIMIT 1`,
      values,
    )
    return row && tagOf(row)
  }
  return {
    /** Registers one tag, all or nothing; the same row again changes nothing. It never lowers a counter. */
    importTag: async (row: TagRow): Promise<ImportOutcome> => {
      if (!isLegal(row)) return { outcome: 'refused', because: 'not_legal' }
      const { uid, epoch, batchId, baselineCounter = 0, tokenId, gtin, serial } = row
      const values = [uid, epoch, batchId, baselineCounter, tokenId?.toString() ?? null, gtin ?? null, serial ?? null]
      try {
        const [answer] = await sql.query<{ newer: boolean; created: boolean | null }>(importStatement, values)
        if (answer?.newer === true) return { outcome: 'refused', because: 'newer_epoch' }
        const created = answer?.created ?? null
        return created === null ? { outcome: 'refused', because: 'other_batch' } : { outcome: 'registered', created }
      } catch (error) {
        const { code, constraint } = error as { code?: string; constraint?: string }
        if (code === '23505' && constraint === 'tag_token') return { outcome: 'refused', because: 'token_taken' }
        const refusal = refusalOf(error)
        if (refusal === undefined) throw error
        return { outcome: 'refused', because: refusal === 'item_taken' ? refusal : 'not_legal' }
      }
    },
    /** The newest life of a chip. */
    tagOfUid: (uid: Uint8Array) => one('t.uid = $1', [uid]),
    tagOfToken: (tokenId: bigint) => one('t.token_id = $1::numeric', [tokenId.toString()]),
    tagOfItem: (gtin: string, serial: string) => one('i.gtin = $1 AND i.serial = $2', [gtin, serial]),
  }
}

type TagColumns = {
  uid: Uint8Array
  epoch: number
  batch_id: string
  last_counter: number
  baseline_counter: number | null
  token_id: string | null
  gtin: string | null
  serial: string | null
}

function tagOf(row: TagColumns): RegisteredTag {
  return {
    uid: row.uid,
    epoch: row.epoch,
    batchId: row.batch_id,
    lastCounter: row.last_counter,
    baselineCounter: row.baseline_counter,
    tokenId: row.token_id === null ? null : BigInt(row.token_id),
    gtin: row.gtin,
    serial: row.serial,
  }
}

function isLegal({ uid, epoch, batchId, baselineCounter = 0, tokenId, gtin, serial }: TagRow): boolean {
  return (
    uid.length === 7 &&
    isWhole(epoch, 0x7fffffff) &&
    /^[A-Za-z0-9._-]{1,64}$/.test(batchId) &&
    isWhole(baselineCounter, 0xffffff) &&
    (tokenId === undefined || (tokenId >= 0n && tokenId < 2n ** 256n)) &&
    (gtin === undefined) === (serial === undefined) &&
    (gtin === undefined || tokenId !== undefined)
  )
}

function isWhole(value: number, to: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= to
}

const columns = 't.uid, t.epoch, t.batch_id, t.last_counter, t.baseline_counter, t.token_id, i.gtin, i.serial'

// The former lives end first (their counter is used up, their token is free), then the new one may take it; the count makes
// the order certain. `created` is null when the same life is known under another batch.
const importStatement = `
WITH newer AS (SELECT count(*) > 0 AS is_so FROM tag WHERE uid = $1 AND epoch > $2),
closed AS (
  UPDATE tag SET last_counter = 16777215, token_id = NULL
  WHERE uid = $1 AND epoch < $2 AND NOT (SELECT is_so FROM newer)
    AND NOT EXISTS (SELECT FROM tag same WHERE same.uid = $1 AND same.epoch = $2 AND same.batch_id <> $3)
  RETURNING 1),
kept AS (
  INSERT INTO tag AS t (uid, epoch, batch_id, last_counter, baseline_counter, token_id, registered_at)
  SELECT $1, $2, $3, $4, $4, $5::numeric, clock_timestamp() FROM (SELECT count(*) FROM closed) ended, newer WHERE NOT is_so
  ON CONFLICT (uid, epoch) DO UPDATE SET
    last_counter = greatest(t.last_counter, EXCLUDED.last_counter),
    baseline_counter = coalesce(t.baseline_counter, EXCLUDED.baseline_counter),
    token_id = coalesce(EXCLUDED.token_id, t.token_id),
    registered_at = coalesce(t.registered_at, EXCLUDED.registered_at)
  WHERE t.batch_id = EXCLUDED.batch_id
  RETURNING xmax = 0 AS created),
named AS (
  INSERT INTO item (token_id, gtin, serial) SELECT $5::numeric, $6::text, $7::text FROM kept WHERE $6::text IS NOT NULL
  ON CONFLICT (token_id) DO UPDATE SET gtin = EXCLUDED.gtin, serial = EXCLUDED.serial)
SELECT (SELECT is_so FROM newer) AS newer, (SELECT created FROM kept) AS created`
