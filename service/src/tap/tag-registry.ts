/**
 * The registry of tags and their batches (spec §4.4–4.6). A tag row says which chip in which epoch carries which token. The newest epoch
 * counts; registering it closes the former ones, so that no unused URL of theirs verifies. `items.ts` holds the item of a token: a row
 * with an item registers it there.
 */
import { type Actor, auditText } from '../db/audit.ts'
import type { Sql } from '../db/database.ts'
import { bytes, bytesToHex, instant, numbers, texts } from '../db/columns.ts'
import { isDeadlock, isOfOneRow } from '../db/errors.ts'
import { itemStore, itemRefusalOf } from '../assets/items.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'
import { createBatcher } from '../lib/async/batch.ts'
import { retry } from '../lib/async/retry.ts'
import { type BatchStatus, batchIdPattern } from './keys/batch.ts'

/**
 * A tag to register. `uid` has 7 bytes; `baselineCounter` is the counter read when the tag was made. `gtin` and `serial` go together
 * and need a token: they replace its item.
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

/** A refused row changes nothing. `token_taken`: another chip has the token; `item_taken`: another token is the item. */
export type ImportOutcome =
  | { readonly outcome: 'registered'; readonly created: boolean }
  | {
      readonly outcome: 'refused'
      readonly because: 'newer_epoch' | 'other_batch' | 'token_taken' | 'item_taken' | 'not_legal'
    }

/** `newer`: the chip has a higher epoch. `created` is null where another batch has this epoch of the chip. */
type ImportAnswer = { readonly newer: boolean; readonly created: boolean | null }

export type RegisteredTag = Readonly<{
  uid: Uint8Array
  epoch: number
  batchId: string
  lastCounter: number
  /** Null: no counter was read when the tag was registered. */
  baselineCounter: number | null
  /** False: the tag is known by its taps alone. */
  isRegistered: boolean
  tokenId: bigint | null
  gtin: string | null
  serial: string | null
}>

/** The part of a batch that all instances share: epoch, settings and status, never a key. */
export type RegisteredBatch = Readonly<{
  id: string
  epoch: number
  status: BatchStatus
  settings: unknown
  createdAt: string
}>

export type TagStore = ReturnType<typeof tagStore>

/** Opens the registry. A batch status takes effect on all instances from the next tap, because the ledger reads it with every tap. */
export function tagStore(sql: Sql) {
  const items = itemStore(sql)

  async function one(where: string, values: readonly unknown[]): Promise<RegisteredTag | undefined> {
    const statement = `SELECT ${columns} FROM tag WHERE ${where} ORDER BY epoch DESC LIMIT 1`
    const [row] = await sql.query<StoredTag>(statement, values)
    return row && toTag(row, row.tokenId === null ? null : await items.itemOfToken(BigInt(row.tokenId)))
  }

  /** Reads tags with their items, by `nameOf`. */
  async function many(
    nameOf: (tag: RegisteredTag) => string,
    statement: string,
    values: readonly unknown[],
  ): Promise<ReadonlyMap<string, RegisteredTag>> {
    const rows = await sql.query<StoredTag>(statement, values)
    const found = await items.itemsOfTokens(rows.flatMap(({ tokenId }) => (tokenId === null ? [] : [BigInt(tokenId)])))
    const tags = rows.map((row) => toTag(row, found.get(BigInt(row.tokenId ?? -1)) ?? null))
    return new Map(tags.map((tag) => [nameOf(tag), tag]))
  }

  /** The tag names its token too, so that a row of one of the two tables alone counts for nothing. */
  async function tagOfToken(tokenId: bigint): Promise<RegisteredTag | undefined> {
    const token = tokenId.toString()
    const [at] = await sql.query<{ uid: Uint8Array; epoch: number }>(tagOfTokenStatement, [token])
    return at && one('uid = $1 AND epoch = $2 AND token_id = $3::numeric', [at.uid, at.epoch, token])
  }

  const tagOfUid = (uid: Uint8Array) => one(`uid = $1 AND ${counts}`, [uid])

  async function tagsOfTokens(
    tokenIds: readonly (bigint | null | undefined)[],
  ): Promise<readonly (RegisteredTag | undefined)[]> {
    const tokens = numbers(tokenIds.filter((tokenId) => tokenId !== null && tokenId !== undefined))
    const places = await sql.query<{ tokenId: string; uid: Uint8Array; epoch: number }>(tagsOfTokensStatement, [tokens])
    const nameOf = ({ tokenId, uid, epoch }: { tokenId: bigint | string | null; uid: Uint8Array; epoch: number }) =>
      `${tokenId}-${bytesToHex(uid)}-${epoch}`
    const tags = await many(nameOf, tagsAtStatement, [bytes(places.map(({ uid }) => bytesToHex(uid))), tokens])
    const found = new Map(places.map((place) => [place.tokenId, tags.get(nameOf(place))]))
    return tokenIds.map((tokenId) => found.get(String(tokenId)))
  }

  /** Registrations that come together share a statement and its commit. Where one fails, each is tried alone. */
  const register = createBatcher<TagRow & { readonly note: string | null }, ImportAnswer>({
    maxItems: 32,
    concurrency: 4,
    isOfOneItem: isOfOneRow,
    run: (rows) =>
      sql.query<ImportAnswer>(importStatement, [
        bytes(rows.map(({ uid }) => bytesToHex(uid))),
        numbers(rows.map(({ epoch }) => epoch)),
        texts(rows.map(({ batchId }) => batchId)),
        numbers(rows.map(({ baselineCounter = 0 }) => baselineCounter)),
        numbers(rows.map(({ tokenId = null }) => tokenId)),
        texts(rows.map(({ gtin = null }) => gtin)),
        texts(rows.map(({ serial = null }) => serial)),
        texts(rows.map(({ note }) => note)),
      ]),
  })

  /** Returns the audit entry of a registration, with what it replaces. A UID is in no entry: they are kept for ever. */
  async function entryOf({ uid, epoch, batchId, tokenId, gtin, serial }: TagRow, by: Actor): Promise<string> {
    const known = await tagOfUid(uid)
    const item = tokenId === undefined ? null : await items.itemOfToken(tokenId)
    const before = {
      ...(known?.isRegistered === true && { batch: known.batchId, epoch: known.epoch }),
      ...(item !== null && { gtin: item.gtin, serial: item.serial }),
    }
    const after = { ...before, batch: batchId, epoch, ...(gtin !== undefined && { gtin, serial }) }
    return auditText(by, { act: 'tag.register', subject: String(tokenId ?? ''), outcome: 'DONE', before, after })
  }

  return {
    /** Registers one tag atomically. It is idempotent and never lowers a counter. With `by` it is noted in the audit trail. */
    importTag: async (row: TagRow, by?: Actor): Promise<ImportOutcome> => {
      if (!isLegal(row)) return { outcome: 'refused', because: 'not_legal' }
      const { uid, epoch, baselineCounter = 0 } = row
      const note = by === undefined ? null : await entryOf(row, by)
      try {
        // Several lives of one chip that are registered and tapped at once may wait for each other.
        const answer = await retry(() => register({ ...row, note }), { pausesMs: [50, 500], isRetryable: isDeadlock })
        if (answer.newer) return { outcome: 'refused', because: 'newer_epoch' }
        const { created } = answer
        if (created === null) return { outcome: 'refused', because: 'other_batch' }
        if (!created && baselineCounter > 0) await sql.query(baselineStatement, [uid, epoch, baselineCounter])
        return { outcome: 'registered', created }
      } catch (error) {
        const { code, constraint } = error as { code?: string; constraint?: string }
        if (code === '23505' && constraint === 'tag_token') return { outcome: 'refused', because: 'token_taken' }
        const refusal = itemRefusalOf(error)
        if (refusal === undefined) throw error
        return { outcome: 'refused', because: refusal === 'item_taken' ? refusal : 'not_legal' }
      }
    },
    /** Returns the token that is registered as an item, with a tag or without; null for none. */
    tokenOfItem: (item: ItemKey) => items.tokenOfItem(item),
    /** Returns the chip's newest epoch. A row that a revoked batch made by taps counts for nothing, as in `import_tag`. */
    tagOfUid,
    /** Returns the counter above which taps with keys of this batch count, as in the ledger. */
    lastCounterOf: async (uid: Uint8Array, { id, epoch }: Pick<RegisteredBatch, 'id' | 'epoch'>): Promise<number> =>
      (await sql.query<{ counter: number }>(counterStatement, [uid, epoch, id]))[0]?.counter ?? 0,
    tagOfToken,
    /** Returns what `tagOfUid` does for each of many chips, in their order. */
    tagsOfUids: async (uids: readonly Uint8Array[]): Promise<readonly (RegisteredTag | undefined)[]> => {
      const names = uids.map(bytesToHex)
      const tags = await many(({ uid }) => bytesToHex(uid), tagsOfUidsStatement, [bytes(names)])
      return names.map((name) => tags.get(name))
    },
    /** Returns what `tagOfToken` does for each of many tokens, in their order. */
    tagsOfTokens,
    /** Returns the tags of the tokens that are registered as these items, in their order. */
    tagsOfItems: async (keys: readonly (ItemKey | undefined)[]): Promise<readonly (RegisteredTag | undefined)[]> => {
      return tagsOfTokens(await items.tokensOfItems(keys))
    },
    /** Returns the UIDs of known tags behind `uid`, in order and at most `limit`; null is the beginning. */
    uidsAfter: async (uid: Uint8Array | null, limit: number): Promise<readonly Uint8Array[]> => {
      const statement = 'SELECT DISTINCT uid FROM tag WHERE uid > $1 ORDER BY uid LIMIT $2'
      const rows = await sql.query<{ uid: Uint8Array }>(statement, [uid ?? new Uint8Array(), limit])
      return rows.map((row) => row.uid)
    },
    /** Returns when a counter was first presented, by the clock of the database, and with which PICC block. */
    useOf: async ({ uid, epoch, counter }: { uid: Uint8Array; epoch: number; counter: number }) => {
      const [row] = await sql.query<{ picc: Uint8Array; at: number; age: number }>(useStatement, [uid, epoch, counter])
      return row && { picc: row.picc, firstSeen: new Date(row.at * 1_000), ageSeconds: row.age }
    },
    /** Returns whether a tag of this batch was ever registered or tapped. */
    hasTags: async (batchId: string): Promise<boolean> =>
      (await sql.query('SELECT 1 FROM tag WHERE batch_id = $1 LIMIT 1', [batchId])).length > 0,
    /**
     * Adds a batch, or updates its settings but not its status and brands. Settings without a fingerprint of keys (`keys/shared.ts`) replace none that
     * have one. Returns false where the id has another epoch.
     */
    putBatch: async (
      batch: Omit<RegisteredBatch, 'status' | 'createdAt'> & { status?: BatchStatus },
    ): Promise<boolean> => {
      const values = [batch.id, batch.epoch, batch.status ?? 'active', JSON.stringify(batch.settings)]
      return (await sql.query(putStatement, values)).length > 0
    },
    /** Sets the brands of a batch's chips; null: any. Returns false when no batch has the id. */
    setBatchBrands: async (id: string, brands: readonly string[] | null): Promise<boolean> =>
      (await sql.query(brandsStatement, [id, JSON.stringify(brands)])).length > 0,
    /** Returns false when no batch has the id, or when the batch has not the status `from` any more. */
    setBatchStatus: async (id: string, status: BatchStatus, from: BatchStatus | null = null): Promise<boolean> => {
      const [times] = await sql.query<{ moment: string; passed: string | null }>(statusTimesStatement, [id])
      if (times === undefined) return false
      const changed = await sql.query(statusStatement, [id, status, times.moment, from, times.passed])
      return changed.length > 0 || from === null
    },
    /** Returns the ids of batches whose tags are counterfeit. */
    revokedBatches: async (): Promise<readonly string[]> =>
      (await sql.query<{ id: string }>("SELECT id FROM tag_batch WHERE status = 'revoked'")).map(({ id }) => id),
    /** Returns all batches, the oldest first. */
    batches: async (): Promise<readonly RegisteredBatch[]> =>
      (await sql.query<StoredRow>(`${batchStatement} ORDER BY created_at, id`)).map(parseBatch),
    batch: async (id: string): Promise<RegisteredBatch | undefined> =>
      (await sql.query<StoredRow>(`${batchStatement} WHERE id = $1`, [id])).map(parseBatch)[0],
  }
}

function isLegal({ uid, epoch, batchId, baselineCounter = 0, tokenId, gtin, serial }: TagRow): boolean {
  return (
    uid.length === 7 &&
    isWhole(epoch, 0x7fffffff) &&
    batchIdPattern.test(batchId) &&
    isWhole(baselineCounter, 0xffffff) &&
    (tokenId === undefined || (tokenId >= 0n && tokenId < 2n ** 256n)) &&
    (gtin === undefined) === (serial === undefined) &&
    (gtin === undefined || tokenId !== undefined)
  )
}

function isWhole(value: number, to: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= to
}

const columns = `uid, epoch, batch_id AS "batchId", last_counter AS "lastCounter", nullif(baseline_counter, 0) AS "baselineCounter",
  registered_at IS NOT NULL AS "isRegistered", token_id AS "tokenId"`

const counts = `(registered_at IS NOT NULL
  OR NOT EXISTS (SELECT FROM tag_batch b WHERE b.id = tag.batch_id AND b.status = 'revoked'))`

const tagsOfUidsStatement = `SELECT DISTINCT ON (uid) ${columns} FROM tag WHERE uid = ANY($1::bytea[]) AND ${counts} ORDER BY uid, epoch DESC`

const counterStatement = `
SELECT CASE WHEN batch_id = $3 OR ${counts} THEN last_counter ELSE greatest((former_counters ->> $3)::int,
  (former_counters ->> ('*' || epoch::text))::int, CASE WHEN own_counter IS DISTINCT FROM last_counter THEN last_counter END, 0) END AS counter
FROM tag WHERE uid = $1 AND epoch = $2`

const tagsOfTokensStatement =
  'SELECT token_id AS "tokenId", uid, epoch FROM tag_of_token WHERE token_id = ANY($1::numeric[])'

const tagsAtStatement = `SELECT ${columns} FROM tag WHERE uid = ANY($1::bytea[]) AND token_id = ANY($2::numeric[])`

const tagOfTokenStatement = 'SELECT uid, epoch FROM tag_of_token WHERE token_id = $1::numeric'

/** The function writes the tag, its token and its item in one transaction. Each may be on another shard. */
const importStatement = `
WITH done AS MATERIALIZED (SELECT n, note, d.newer, d.created
  FROM (SELECT * FROM unnest($1::bytea[], $2::int[], $3::text[], $4::int[], $5::numeric[], $6::text[], $7::text[], $8::text[])
      WITH ORDINALITY AS g (uid, epoch, batch_id, counter, token, gtin, serial, note, n)
    ORDER BY uid, epoch) ordered, import_tag(uid, epoch, batch_id, counter, token, gtin, serial) AS d)
SELECT newer, created, CASE WHEN NOT newer AND created IS NOT NULL AND note IS NOT NULL THEN append_audit(note) END FROM done ORDER BY n`

/** `import_tag` keeps the 0 of a tag that was registered before it was written. */
const baselineStatement = 'UPDATE tag SET baseline_counter = $3 WHERE uid = $1 AND epoch = $2 AND baseline_counter = 0'

/** A version without fingerprints of keys overwrites `settings` alone. Where they have no fingerprint, those of `kept_settings` count. */
const knownSettings = `CASE WHEN b.settings ? 'keys' THEN b.settings
  WHEN b.kept_settings ? 'keys' THEN b.kept_settings || ${brandsOf('b.settings')}
  ELSE ${brandsOf('b.kept_settings')} || b.settings END`

const nextSettings = `CASE WHEN EXCLUDED.settings ? 'keys' OR NOT (${knownSettings}) ? 'keys'
  THEN (EXCLUDED.settings - 'brands') || ${brandsOf(`(${knownSettings})`)} ELSE ${knownSettings} END`

const putStatement = `
INSERT INTO tag_batch AS b (id, epoch, status, settings, kept_settings) VALUES ($1, $2, $3, $4::jsonb, $4::jsonb)
ON CONFLICT (id) DO UPDATE SET settings = ${nextSettings}, kept_settings = ${nextSettings} WHERE b.epoch = EXCLUDED.epoch RETURNING id`

const branded = `jsonb_strip_nulls(jsonb_set(${knownSettings}, '{brands}', $2::jsonb))`

const brandsStatement = `UPDATE tag_batch AS b SET settings = ${branded}, kept_settings = ${branded} WHERE id = $1 RETURNING id`

/** Reads the times of a change of status. A clock that was set back must not date a revocation before the last pass over the taps. */
const statusTimesStatement = `
SELECT statement_timestamp()::text AS moment,
  CASE WHEN taps_taken_back_at IS NOT NULL THEN statement_timestamp() - interval '1 microsecond' END::text AS passed
FROM tag_batch WHERE id = $1`

/** `least` ignores NULL: a batch whose taps were never taken back stays without that time. */
const statusStatement = `
UPDATE tag_batch SET status = $2, status_at = $3::text::timestamptz,
  taps_taken_back_at = least(taps_taken_back_at, $5::text::timestamptz)
WHERE id = $1 AND status <> $2 AND status = coalesce($4, status) RETURNING id`

const useStatement = `
SELECT picc, extract(epoch from first_seen)::float8 AS at, extract(epoch from clock_timestamp() - first_seen)::float8 AS age
FROM tap WHERE uid = $1 AND epoch = $2 AND counter = $3`

const batchStatement = `SELECT id, epoch, status, (${knownSettings})::text AS settings, ${instant('created_at')} AS "createdAt" FROM tag_batch b`

type StoredTag = Omit<RegisteredTag, 'tokenId' | 'gtin' | 'serial'> & { readonly tokenId: string | null }

function toTag({ tokenId, ...row }: StoredTag, item: ItemKey | null): RegisteredTag {
  return {
    ...row,
    tokenId: tokenId === null ? null : BigInt(tokenId),
    gtin: item?.gtin ?? null,
    serial: item?.serial ?? null,
  }
}

type StoredRow = Omit<RegisteredBatch, 'settings'> & { readonly settings: string }

/** The functions are immutable: Citus takes no others in ON CONFLICT. */
function brandsOf(settings: string): string {
  return `coalesce(jsonb_set('{}', '{brands}', ${settings} -> 'brands'), '{}')`
}

function parseBatch(row: StoredRow): RegisteredBatch {
  return { ...row, settings: JSON.parse(row.settings) as unknown }
}

/** Returns why `importTag` refuses a chip with this newest life (`tagOfUid`) in a batch; null: it does not. */
export function registrationRefusal(
  known: Pick<RegisteredTag, 'epoch' | 'batchId'> | undefined,
  { epoch, batchId }: Pick<TagRow, 'epoch' | 'batchId'>,
): 'newer_epoch' | 'other_batch' | null {
  if (known === undefined || known.epoch < epoch) return null
  if (known.epoch > epoch) return 'newer_epoch'
  return known.batchId === batchId ? null : 'other_batch'
}

/** Returns the brands of a batch from its settings; null: keys of any brand may bind its chips. */
export function batchBrands(settings: unknown): readonly string[] | null {
  return (settings as { readonly brands?: readonly string[] }).brands ?? null
}
