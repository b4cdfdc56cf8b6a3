/**
 * The registry of tags (spec §4.4–4.6): which chip, in which life (epoch), carries which token and item. The newest life alone
 * names them; registering a new life closes the former ones, so that no address of theirs verifies any more.
 */
import type { Sql } from './database.ts'

/** `uid` has 7 bytes, `gtin` 14 digits; `baselineCounter` is the counter read when the tag was made. */
export type TagRow = Readonly<{
  uid: Uint8Array
  epoch: number
  batchId: string
  baselineCounter?: number
  tokenId?: bigint
  gtin?: string
  serial?: string
}>

/** A refused row changed nothing. `taken`: another chip has the token or the item. */
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
      `SELECT ${columns} FROM tag WHERE ${where} ORDER BY epoch DESC LIMIT 1`,
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
        if (code === '23505' && constraint === 'tag_item') return { outcome: 'refused', because: 'item_taken' }
        throw error
      }
    },
    /** The newest life of a chip. */
    tagOfUid: (uid: Uint8Array) => one('uid = $1', [uid]),
    tagOfToken: (tokenId: bigint) => one('token_id = $1::numeric', [tokenId.toString()]),
    tagOfItem: (gtin: string, serial: string) => one('gtin = $1 AND serial = $2', [gtin, serial]),
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
    (gtin === undefined || /^\d{14}$/.test(gtin)) &&
    (serial === undefined || /^[\x21-\x7e]{1,20}$/.test(serial))
  )
}

function isWhole(value: number, to: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= to
}

const columns = 'uid, epoch, batch_id, last_counter, baseline_counter, token_id, gtin, serial'

// The former lives end first (their counter is used up, token and item are free), then the new one may take them; the count makes
// the order certain. `created` is null when the same life is known under another batch.
const importStatement = `
WITH newer AS (SELECT count(*) > 0 AS is_so FROM tag WHERE uid = $1 AND epoch > $2),
closed AS (
  UPDATE tag SET last_counter = 16777215, token_id = NULL, gtin = NULL, serial = NULL
  WHERE uid = $1 AND epoch < $2 AND NOT (SELECT is_so FROM newer)
    AND NOT EXISTS (SELECT FROM tag same WHERE same.uid = $1 AND same.epoch = $2 AND same.batch_id <> $3)
  RETURNING 1),
kept AS (
  INSERT INTO tag AS t (uid, epoch, batch_id, last_counter, baseline_counter, token_id, gtin, serial, registered_at)
  SELECT $1, $2, $3, $4, $4, $5::numeric, $6, $7, clock_timestamp() FROM (SELECT count(*) FROM closed) ended, newer WHERE NOT is_so
  ON CONFLICT (uid, epoch) DO UPDATE SET
    last_counter = greatest(t.last_counter, EXCLUDED.last_counter),
    baseline_counter = coalesce(t.baseline_counter, EXCLUDED.baseline_counter),
    token_id = coalesce(EXCLUDED.token_id, t.token_id),
    gtin = coalesce(EXCLUDED.gtin, t.gtin),
    serial = coalesce(EXCLUDED.serial, t.serial),
    registered_at = coalesce(t.registered_at, EXCLUDED.registered_at)
  WHERE t.batch_id = EXCLUDED.batch_id
  RETURNING xmax = 0 AS created)
SELECT (SELECT is_so FROM newer) AS newer, (SELECT created FROM kept) AS created`
