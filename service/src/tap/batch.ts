/**
 * A batch as it is kept (spec §4.4): its settings and the two secrets that the verifier holds. The application master, which can
 * rewrite chips, is made beside it and kept apart: the verifier never holds it.
 */
import { randomBytes } from 'node:crypto'
import { embeddedKey } from './aes.ts'
import { bytesOf, hexOf } from './bytes.ts'
import { derivations, metaKeyOf, type Derivation } from './derivations.ts'
import { batchStatuses, type BatchStatus, type TagBatch } from './keys.ts'
import { macInputs, type MacInput } from './sun.ts'

export type BatchRecord = Readonly<{
  id: string
  epoch: number
  status: BatchStatus
  demo: boolean
  systemId: string
  fileKeyNo: number
  macInput: MacInput
  derivation: Derivation
  derivationVersion?: number
  hints?: readonly string[]
  /** Absent where the scheme derives metaRead from its master. */
  metaKey?: Uint8Array
  fileMaster: Uint8Array
}>

export type NewBatchOptions = Readonly<{
  id: string
  epoch?: number
  systemId?: string
  macInput?: MacInput
  demo?: boolean
  hints?: readonly string[]
}>

/** A new batch under random keys, with the application master of its chips (slots 0, 3, 4) apart. `null` when an option is not legal. */
export function newBatch(options: NewBatchOptions): { record: BatchRecord; appMaster: Uint8Array } | null {
  const record: BatchRecord = {
    epoch: 0,
    status: 'active',
    demo: false,
    systemId: 'touchstone',
    macInput: 'empty',
    ...options,
    fileKeyNo: 2,
    derivation: 'an10922',
    metaKey: Uint8Array.from(randomBytes(16)),
    fileMaster: Uint8Array.from(randomBytes(16)),
  }
  if (batchFromJson(batchToJson(record)) === null) return null
  return { record, appMaster: Uint8Array.from(randomBytes(16)) }
}

/** Makes a batch usable by the verifier, with its keys in this process. */
export async function embeddedBatch({ metaKey, fileMaster, ...settings }: BatchRecord): Promise<TagBatch> {
  const meta = metaKey ?? (await metaKeyOf(settings.derivation, fileMaster))
  if (meta === null) throw new RangeError(`The batch ${settings.id} has no metaRead key.`)
  return { ...settings, meta: embeddedKey(meta), fileMaster: embeddedKey(fileMaster) }
}

/** The JSON form, keys as hex: only ever inside a sealed file. */
export function batchToJson({ metaKey, fileMaster, ...settings }: BatchRecord): Record<string, unknown> {
  return {
    ...settings,
    ...(metaKey === undefined ? {} : { metaKey: hexOf(metaKey) }),
    fileMaster: hexOf(fileMaster),
  }
}

/** Reads the JSON form; `null` for anything that is not a legal batch. */
export function batchFromJson(json: unknown): BatchRecord | null {
  if (typeof json !== 'object' || json === null) return null
  const { metaKey, fileMaster, ...settings } = json as Record<string, unknown>
  for (const [name, isLegal] of Object.entries(legal)) if (!isLegal(settings[name])) return null
  if (Object.keys(settings).some((name) => !Object.hasOwn(legal, name))) return null
  const master = typeof fileMaster === 'string' ? bytesOf(fileMaster) : null
  const meta = typeof metaKey === 'string' ? bytesOf(metaKey) : undefined
  const { derivation } = settings as { derivation: Derivation }
  const hasOwnMeta = derivation === 'an10922' || derivation === 'direct'
  if (master === null || meta === null || (hasOwnMeta && meta === undefined)) return null
  const masterBytes = derivation.startsWith('sdm-backend') ? [16, 32] : [16]
  if (!masterBytes.includes(master.length) || (meta !== undefined && meta.length !== 16)) return null
  return {
    ...(settings as Omit<BatchRecord, 'metaKey' | 'fileMaster'>),
    fileMaster: master,
    ...(meta && { metaKey: meta }),
  }
}

/** The settings without any key: for the database, `tag batch list` and logs. */
export function publicSettings({ metaKey: _meta, fileMaster: _master, ...settings }: BatchRecord) {
  return settings
}

const isWhole = (from: number, to: number) => (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to
const isText = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value)
const isOneOf = (values: readonly string[]) => (value: unknown) => typeof value === 'string' && values.includes(value)
const optional = (isLegal: (value: unknown) => boolean) => (value: unknown) => value === undefined || isLegal(value)

const legal: Readonly<Record<string, (value: unknown) => boolean>> = {
  id: isText(/^[A-Za-z0-9._-]{1,64}$/),
  epoch: isWhole(0, 0x7fffffff),
  status: isOneOf(batchStatuses),
  demo: (value) => typeof value === 'boolean',
  systemId: isText(/^[\x20-\x7e]{1,16}$/),
  fileKeyNo: isWhole(0, 4),
  macInput: isOneOf(macInputs),
  derivation: isOneOf(derivations),
  derivationVersion: optional(isWhole(0, 0xffffffff)),
  hints: optional((value) => Array.isArray(value) && value.length <= 32 && value.every(isText(/^[\x21-\x7e]{1,253}$/))),
}
