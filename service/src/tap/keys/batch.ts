/**
 * A batch as the key file stores it (spec §4.4): its settings and the two secrets that the verifier holds. The application master,
 * which can rewrite chips, is made with the batch and stored apart. The ring holds the batches that a verifier tries.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { parseHex } from '../../lib/bytes.ts'
import { isObject } from '../../lib/json.ts'
import { join, toHex } from '../bytes.ts'
import {
  type Derivation,
  derivations,
  deriveFileKey,
  deriveMetaKey,
  hasOwnMetaKey,
  type Scheme,
  systemIdBytes,
} from './derivations.ts'
import { type AesKeyRef, embeddedKey } from '../sun/aes.ts'
import { type MacInput, macInputs } from '../sun/sun.ts'

export const batchIdPattern = /^[A-Za-z0-9._-]{1,64}$/

const batchStatuses = ['active', 'retired', 'revoked'] as const
/** Tags of `active` and `retired` batches verify; tags of a `revoked` batch are counterfeit. */
export type BatchStatus = (typeof batchStatuses)[number]

/**
 * Tags that were personalised under one set of keys. The slots of a chip are 0 application master, 1 metaRead and 2 fileRead; the verifier
 * never holds the application master.
 */
export type TagBatch = Readonly<{
  id: string
  /** Version of the file keys. A chip that is personalised again needs a higher one. */
  epoch: number
  status: BatchStatus
  demo?: boolean
  systemId: string
  /** Chip slot of the fileRead key, part of its diversification. */
  fileKeyNo: number
  macInput: MacInput
  derivation: Derivation
  /** Version byte of the `boltcard` scheme. */
  derivationVersion?: number
  meta: AesKeyRef
  fileMaster: AesKeyRef
}>

/** The keys that a verifier tries, in their order (spec §4.4, §5). */
export type KeyRing = ReturnType<typeof createKeyRing>

export type BatchRecord<Master extends Uint8Array | null = Uint8Array> = Readonly<
  Omit<TagBatch, 'meta' | 'fileMaster' | 'demo'> & {
    demo: boolean
    /** Brands of its chips; left out: any. The database decides, and a new one takes these. */
    brands?: readonly string[]
    /** Absent where the scheme derives metaRead from its master. */
    metaKey?: Uint8Array
    fileMaster: Master
  }
>

/** A file master of null is in a token (PKCS#11). The metaRead key is never there: forged taps would occupy the token. */
export type BatchKeyRecord = BatchRecord<Uint8Array | null>

export type NewBatchOptions = Readonly<{
  id: string
  epoch?: number
  systemId?: string
  macInput?: MacInput
  demo?: boolean
}>

const defaults = { epoch: 0, status: 'active', demo: false, systemId: 'touchstone', macInput: 'empty' } as const

/** Makes a batch under random keys, and the application master of its chips (slots 0, 3, 4). Returns `null` when an option is not legal. */
export function newBatch(options: NewBatchOptions): { record: BatchRecord; appMaster: Uint8Array } | null {
  const newKey = () => Uint8Array.from(randomBytes(16))
  const record: BatchRecord = {
    ...defaults,
    ...options,
    fileKeyNo: 2,
    derivation: 'an10922',
    metaKey: newKey(),
    fileMaster: newKey(),
  }
  return batchFromJson(batchToJson(record)) === null ? null : { record, appMaster: newKey() }
}

/** Keys of tags that another system personalised. `metaKey` belongs to the schemes that do not derive it (`hasOwnMetaKey`). */
export type ImportedBatchOptions = NewBatchOptions &
  Readonly<{ scheme: Scheme; fileKeyNo?: number; master: Uint8Array; metaKey?: Uint8Array }>

/** Makes a batch of existing keys. Returns `null` when an option or the length of a key is not legal. */
export function importedBatch({ scheme, master, metaKey, ...options }: ImportedBatchOptions): BatchRecord | null {
  if ((metaKey !== undefined) !== hasOwnMetaKey(scheme.derivation)) return null
  const record: BatchRecord = {
    ...defaults,
    fileKeyNo: 2,
    ...options,
    ...scheme,
    fileMaster: master,
    ...(metaKey && { metaKey }),
  }
  return batchFromJson(batchToJson(record)) === null ? null : record
}

/**
 * Makes a batch usable by the verifier. `master` is a file master that is in a token; all other keys are in this process. Throws a
 * `RangeError` without a metaRead key or a file master.
 */
export async function embeddedBatch(record: BatchKeyRecord, master?: AesKeyRef): Promise<TagBatch> {
  const fileMaster = masterOf(record, master)
  return { ...publicSettings(record), meta: embeddedKey(await metaKeyOf(record)), fileMaster }
}

function masterOf({ id, fileMaster }: BatchKeyRecord, stored?: AesKeyRef): AesKeyRef {
  if (fileMaster !== null) return embeddedKey(fileMaster)
  if (stored === undefined) throw new RangeError(`The file master of batch ${id} is in a token.`)
  return stored
}

/**
 * Returns the two keys on one chip of the batch that a verifier needs. `master` is a file master that is in a token. Throws a `RangeError`
 * without a metaRead key or a file master.
 */
export async function chipKeys(
  batch: BatchKeyRecord,
  uid: Uint8Array,
  master?: AesKeyRef,
): Promise<{ metaKey: Uint8Array; fileKey: Uint8Array }> {
  const fileKey = (await deriveFileKey({ ...batch, fileMaster: masterOf(batch, master) }, uid)) ?? batch.fileMaster
  if (fileKey === null)
    throw new RangeError(`The scheme ${batch.derivation} of batch ${batch.id} cannot be in a token.`)
  return { metaKey: await metaKeyOf(batch), fileKey }
}

/**
 * Returns a fingerprint of what the keys of a batch derive, which is the same however they are written. It needs no secret beside these keys:
 * no two instances can differ in one, and a reader of the fingerprint would have to guess 128 random bits.
 */
export async function keyFingerprint(batch: BatchKeyRecord, master?: AesKeyRef): Promise<string> {
  const { metaKey, fileKey } = await chipKeys(batch, fingerprintUid, master)
  return createHmac('sha256', join(metaKey, fileKey)).update('touchstone batch keys').digest('hex')
}

/** No chip has this UID. */
const fingerprintUid = Uint8Array.of(0x04, 0, 0, 0, 0, 0, 0)

async function metaKeyOf({ id, metaKey, derivation, fileMaster }: BatchKeyRecord): Promise<Uint8Array> {
  const key = metaKey ?? (fileMaster && (await deriveMetaKey(derivation, fileMaster)))
  if (key === null) throw new RangeError(`The batch ${id} has no metaRead key.`)
  return key
}

/** Converts a batch to JSON with its keys as hex, without its brands. The result belongs inside a sealed file only. */
export function batchToJson({
  metaKey,
  fileMaster,
  brands: _brands,
  ...settings
}: BatchKeyRecord): Record<string, unknown> {
  return { ...settings, ...(metaKey && { metaKey: toHex(metaKey) }), fileMaster: fileMaster && toHex(fileMaster) }
}

/** Parses the JSON form, or returns `null` when it is not a legal batch. */
export function batchFromJson(json: unknown): BatchKeyRecord | null {
  if (!isObject(json)) return null
  const { metaKey, fileMaster, ...settings } = json
  for (const [name, isLegal] of Object.entries(legal)) if (!isLegal(settings[name])) return null
  if (Object.keys(settings).some((name) => !Object.hasOwn(legal, name))) return null
  const master = typeof fileMaster === 'string' ? parseHex(fileMaster) : null
  const meta = typeof metaKey === 'string' ? parseHex(metaKey) : undefined
  const { derivation, systemId } = settings as { derivation: Derivation; systemId: string }
  const isStored = fileMaster === null && derivation === 'an10922'
  if ((master === null && !isStored) || meta === null || (hasOwnMetaKey(derivation) && meta === undefined)) return null
  if (derivation === 'an10922-systemid' ? systemIdBytes(systemId) === null : systemId.length > 16) return null
  const masterBytes = derivation.startsWith('sdm-backend') ? [16, 32] : [16]
  if ((master !== null && !masterBytes.includes(master.length)) || (meta !== undefined && meta.length !== 16))
    return null
  return { ...(settings as BatchKeyRecord), fileMaster: master, ...(meta && { metaKey: meta }) }
}

/** Returns the settings without any key: for the database, `tag batch list` and logs. */
export function publicSettings({ metaKey: _meta, fileMaster: _master, ...settings }: BatchKeyRecord) {
  return settings
}

const isWhole = (from: number, to: number) => (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to
const isText = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value)
const isOneOf = (values: readonly string[]) => (value: unknown) => typeof value === 'string' && values.includes(value)
const optional = (isLegal: (value: unknown) => boolean) => (value: unknown) => value === undefined || isLegal(value)

const legal: Readonly<Record<string, (value: unknown) => boolean>> = {
  id: isText(batchIdPattern),
  epoch: isWhole(0, 0x7fffffff),
  status: isOneOf(batchStatuses),
  demo: (value) => typeof value === 'boolean',
  systemId: isText(/^[\x20-\x7e]{1,50}$/),
  fileKeyNo: isWhole(0, 4),
  macInput: isOneOf(macInputs),
  derivation: isOneOf(derivations),
  derivationVersion: optional(isWhole(0, 0xffffffff)),
}

/** Most batches of `likely` that the last genuine taps name. */
const maxRecent = 16
/** Most batches of one hint, which two ids share by chance. */
const maxHinted = 4

/** Creates a ring that tries the batch of the last hit first. Throws a `RangeError` when two batches have one id. */
export function createKeyRing(batches: readonly TagBatch[]) {
  let all: ReadonlyMap<string, TagBatch>
  let hinted: ReadonlyMap<string, readonly TagBatch[]>
  // The lists are replaced as a whole on every change, so that a search in progress keeps its own.
  let recent: readonly TagBatch[]
  let order: readonly TagBatch[] | null
  /** Tries these batches from the next tap on. */
  function replace(next: readonly TagBatch[]): void {
    const byId = new Map(next.map((batch) => [batch.id, batch]))
    if (byId.size < next.length) throw new RangeError('Two tag batches have one id.')
    all = byId
    hinted = Map.groupBy(next, ({ id }) => batchHint(id))
    recent = next.slice(0, maxRecent)
    order = next
  }
  replace(batches)
  return {
    /** Returns every batch once, the likeliest first. */
    candidates: (): readonly TagBatch[] => (order ??= [...new Set([...recent, ...all.values()])]),
    /**
     * Returns the few batches to try first. They are those that the link names by `hint`, then those of the last genuine taps. The number
     * does not grow with the ring. None means that the verifier is not configured (503).
     */
    likely: (hint?: string): readonly TagBatch[] => {
      const named = hint === undefined ? undefined : hinted.get(hint)
      return named === undefined ? recent : [...new Set([...named.slice(0, maxHinted), ...recent])]
    },
    /** Reports a genuine tap of this batch. */
    hit: (batch: TagBatch): void => {
      const known = all.get(batch.id)
      if (known === undefined || known === recent[0]) return
      recent = [known, ...recent.filter((other) => other !== known)].slice(0, maxRecent)
      order = null
    },
    replace,
  }
}

/**
 * Returns the hint of a batch: 5 characters of base 32, which its chips' links carry as the parameter `b`. It is public, names a batch
 * among thousands in one step, and proves nothing: the MAC decides.
 */
export function batchHint(id: string): string {
  const hash = createHash('sha256').update(`touchstone batch hint ${id}`).digest()
  return Array.from(hash.subarray(0, 5), (byte) => hintAlphabet[byte & 31]).join('')
}

/** Crockford's alphabet, without letters that look like digits. */
const hintAlphabet = '0123456789abcdefghjkmnpqrstvwxyz'
