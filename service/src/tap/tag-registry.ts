/**
 * The registry of tags and their batches (spec §4.4–4.6). A tag row says which chip in which epoch carries which token. The newest epoch
 * counts; registering it closes the former ones, so that no unused URL of theirs verifies. `items.ts` holds the item of a token: a row
 * with an item registers it there.
 */
import { type Actor, auditText } from '../db/audit.ts'
import type { Sql } from '../db/database.ts'
import { instant } from '../db/columns.ts'
import { isDeadlock } from '../db/errors.ts'
import { itemStore, itemRefusalOf } from '../assets/items.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'
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
    const [row] = await sql.query<Omit<RegisteredTag, 'tokenId' | 'gtin' | 'serial'> & { tokenId: string | null }>(
      `SELECT ${columns} FROM tag WHERE ${where} ORDER BY epoch DESC LIMIT 1`,
      values,
    )
    if (row === undefined) return undefined
    const item = row.tokenId === null ? null : await items.itemOfToken(BigInt(row.tokenId))
    const { gtin, serial } = item ?? { gtin: null, serial: null }
    return { ...row, tokenId: row.tokenId === null ? null : BigInt(row.tokenId), gtin, serial }
  }

  /** The tag names its token too, so that a row of one of the two tables alone counts for nothing. */
  async function tagOfToken(tokenId: bigint): Promise<RegisteredTag | undefined> {
    const token = tokenId.toString()
    const [at] = await sql.query<{ uid: Uint8Array; epoch: number }>(tagOfTokenStatement, [token])
    return at && one('uid = $1 AND epoch = $2 AND token_id = $3::numeric', [at.uid, at.epoch, token])
  }

  const tagOfUid = (uid: Uint8Array) => one(`uid = $1 AND ${counts}`, [uid])

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
      const { uid, epoch, batchId, baselineCounter = 0, tokenId, gtin, serial } = row
      const values = [uid, epoch, batchId, baselineCounter, tokenId?.toString() ?? null, gtin ?? null, serial ?? null]
      const note = by === undefined ? null : await entryOf(row, by)
      try {
        // Several lives of one chip that are registered and tapped at once may wait for each other.
        const [answer] = await retry(
          () => sql.query<{ newer: boolean; created: boolean | null }>(importStatement, [...values, note]),
          { pausesMs: [50, 500], isRetryable: isDeadlock },
        )
        if (answer?.newer === true) return { outcome: 'refused', because: 'newer_epoch' }
        const created = answer?.created ?? null
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
    tagOfItem: async (gtin: string, serial: string): Promise<RegisteredTag | undefined> => {
      const tokenId = await items.tokenOfItem({ gtin, serial })
      return tokenId === null ? undefined : tagOfToken(tokenId)
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

const counterStatement = `
SELECT CASE WHEN batch_id = $3 OR ${counts} THEN last_counter ELSE greatest((former_counters ->> $3)::int,
  (former_counters ->> ('*' || epoch::text))::int, CASE WHEN own_counter IS DISTINCT FROM last_counter THEN last_counter END, 0) END AS counter
FROM tag WHERE uid = $1 AND epoch = $2`

const tagOfTokenStatement = 'SELECT uid, epoch FROM tag_of_token WHERE token_id = $1::numeric'

/** The function writes the tag, its token and its item in one transaction. Each may be on another shard. */
const importStatement = `WITH done AS MATERIALIZED (SELECT newer, created FROM import_tag($1, $2, $3, $4, $5::numeric, $6, $7))
SELECT newer, created, CASE WHEN NOT newer AND created IS NOT NULL AND $8::text IS NOT NULL THEN append_audit($8) END FROM done`

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

/** `uid` has 7 bytes. */
type Binding = Readonly<{
  tokenId: bigint
  uid: Uint8Array
  batchId: string
  item: ItemKey | null
  /** Brands of the key that asks; null: it binds chips of every batch. */
  brands?: readonly string[] | null
}>

/**
 * `epoch` is the batch's, under which the tag is registered. `about` says which part of the binding was refused, and `own` that the
 * message names nothing but the asset's own values.
 */
type BindingAnswer = { readonly ok: true; readonly epoch: number } | BindingRefusal<'batch' | 'tag' | 'item'>

type BindingRefusal<About> = Readonly<{ ok: false; about: About; own: boolean; message: string }>

/** The values of a binding that the contract does not hold. A repeat under the same idempotency key has the same ones. */
export function bindingTerms({ batchId, item }: Pick<Binding, 'batchId' | 'item'>): string {
  return JSON.stringify([batchId, item?.gtin ?? null, item?.serial ?? null])
}

/**
 * Checks whether a tag may be bound to an asset. It runs before the transaction, because a binding on chain is for ever (spec §3, BOUND).
 * `formerBinding` reads the binding under a former commitment, which the contract cannot recognise as the same tag.
 */
export async function mayBind(
  tags: Pick<TagStore, 'tagOfUid' | 'tagOfToken' | 'tokenOfItem' | 'batch'>,
  formerBinding: (uid: Uint8Array) => Promise<bigint | null>,
  { tokenId, uid, batchId, item, brands = null }: Binding,
): Promise<BindingAnswer> {
  const batch = await tags.batch(batchId)
  if (batch === undefined) return refusedBinding('batch', `There is no batch named ${batchId}.`, true)
  if (batch.status === 'revoked')
    return refusedBinding('batch', `Batch ${batchId} is revoked; its tags need another batch.`, true)
  const known = await tags.tagOfUid(uid)
  const other = otherRegistration(known, { tokenId, batchId, item })
  if (other !== null) return other
  const isRepeat: boolean = isRegisteredWith(known, tokenId)
  if (brands !== null && !isRepeat) {
    if (isOfOthers(batch, brands)) return refusedBinding('batch', `Batch ${batchId} is of other brands.`, true)
    const own = known === undefined ? undefined : await tags.batch(known.batchId)
    if (own !== undefined && isOfOthers(own, brands)) return refusedBinding('tag', 'This tag is of other brands.')
  }
  const elsewhere = known === undefined ? null : registeredElsewhere(known, tokenId, batch)
  if (elsewhere !== null) return refusedBinding('tag', elsewhere)
  const itemToken = item === null ? null : await tags.tokenOfItem(item)
  const onItem = itemToken === null ? undefined : await tags.tagOfToken(itemToken)
  if (onItem !== undefined && Buffer.compare(onItem.uid, uid) !== 0)
    return refusedBinding('item', 'Another tag is registered with this gtin and serial.')
  if (itemToken !== null && itemToken !== tokenId)
    return refusedBinding('item', `Asset ${itemToken} is registered with this gtin and serial.`)
  const former = await formerBinding(uid)
  if (former !== null && former !== tokenId)
    return refusedBinding('tag', `This tag is bound to asset ${former} on chain.`)
  return { ok: true, epoch: batch.epoch }
}

/** Returns the brands of a batch from its settings; null: keys of any brand may bind its chips. */
export function batchBrands(settings: unknown): readonly string[] | null {
  return (settings as { readonly brands?: readonly string[] }).brands ?? null
}

function isOfOthers({ settings }: RegisteredBatch, brands: readonly string[]): boolean {
  return batchBrands(settings)?.every((brand) => !brands.includes(brand)) === true
}

/**
 * Registers a tag after it was bound. One that is registered with the asset stays as it is: only `tag import` and `tag write` change a
 * registration. It looks again, because the transaction took its time. `whyNot` may refuse to register.
 */
export async function registerBound(
  tags: Pick<TagStore, 'tagOfUid' | 'importTag'>,
  { tokenId, uid, batchId, item, epoch }: Binding & { readonly epoch: number },
  by: Actor,
  whyNot: () => Promise<string | null> = async () => null,
): Promise<'unchanged' | 'registered' | { readonly refusal: string }> {
  const known = await tags.tagOfUid(uid)
  const other = otherRegistration(known, { tokenId, batchId, item })
  if (other !== null) return { refusal: other.message }
  if (isRegisteredWith(known, tokenId) && (item === null || known.gtin !== null)) return 'unchanged'
  const refusal = await whyNot()
  if (refusal !== null) return { refusal }
  const registered = await tags.importTag({ uid, epoch, batchId, tokenId, ...item }, by)
  return registered.outcome === 'registered'
    ? 'registered'
    : { refusal: `The tag is bound on chain, but the registry of tags refused it (${registered.because}).` }
}

/** Returns why a tag that is registered with the asset cannot be bound with these values. An item may come later than its tag. */
function otherRegistration(
  known: RegisteredTag | undefined,
  { tokenId, batchId, item }: Omit<Binding, 'uid'>,
): BindingRefusal<'batch' | 'item'> | null {
  if (!isRegisteredWith(known, tokenId)) return null
  const { gtin, serial } = known
  if (known.batchId !== batchId)
    return refusedBinding('batch', `This tag is registered with asset ${tokenId} in batch ${known.batchId}.`, true)
  if (item === null || gtin === null || (gtin === item.gtin && serial === item.serial)) return null
  const message = `This tag is registered with asset ${tokenId} as the item ${gtin} ${serial}.`
  return refusedBinding('item', message, true)
}

function isRegisteredWith(known: RegisteredTag | undefined, tokenId: bigint): known is RegisteredTag {
  return known?.isRegistered === true && known.tokenId === tokenId
}

/** A registered tag stays in its batch. One that is known by its taps alone may be of a batch with a newer epoch. */
function registeredElsewhere(known: RegisteredTag, tokenId: bigint, batch: RegisteredBatch): string | null {
  if (known.tokenId !== null && known.tokenId !== tokenId) return `This tag is registered with asset ${known.tokenId}.`
  const isOther = known.batchId !== batch.id && (known.isRegistered || known.epoch >= batch.epoch)
  return isOther ? `This tag is registered in batch ${known.batchId}.` : null
}

function refusedBinding<About>(about: About, message: string, own = false): BindingRefusal<About> {
  return { ok: false, about, own, message }
}
