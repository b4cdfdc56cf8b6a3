/**
 * The tag key store: the batches of this verifier with their keys, as they change while it runs (spec §4.4, §5). It joins the sealed key
 * files, the batch settings that all instances share, and the ring that taps are tried against. A new batch verifies here at once
 * and on other instances when the key file is copied there. The verifier's file holds the batches; a second one, for the personalisation
 * station, holds the application masters, which can rewrite chips. Both are sealed under TAG_KEK.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createQueue } from '../../lib/async/concurrency.ts'
import { parseHex } from '../../lib/bytes.ts'
import { isObject } from '../../lib/json.ts'
import { seal, type SealedKind, unseal, writePrivateFile } from '../../lib/sealed-file.ts'
import { toHex } from '../bytes.ts'
import {
  batchFromJson,
  type BatchRecord,
  batchToJson,
  embeddedBatch,
  hasSameKeys,
  newBatch,
  type NewBatchOptions,
  publicSettings,
  type BatchStatus,
  createKeyRing,
  type KeyRing,
  type TagBatch,
} from './batch.ts'
import { schemeParameters } from './derivations.ts'
import { isPublishedKey } from './published.ts'

/** The part of a batch that all instances share; it holds no key. */
export type SharedBatches = {
  readonly putBatch: (batch: { id: string; epoch: number; settings: unknown }) => Promise<boolean>
  readonly setBatchStatus: (id: string, status: BatchStatus) => Promise<boolean>
}

/** `error` is one sentence for the operator and holds no secret. */
type Created = { readonly ok: true; readonly value: BatchRecord } | { readonly ok: false; readonly error: string }

export type TagKeyStore = {
  /** Always provides the newest keys. */
  readonly keys: Omit<KeyRing, 'replace'>
  /** Returns the batch with a copy of its keys, for personalisation and software tags. */
  readonly record: (id: string) => BatchRecord | undefined
  readonly appMaster: (id: string) => Promise<Uint8Array | undefined>
  readonly create: (options: NewBatchOptions) => Promise<Created>
  /** Stores the keys of tags that another system personalised. They have no application master here. */
  readonly add: (record: BatchRecord) => Promise<Created>
  /** Replaces the keys of the batch with this id. Taps of the former keys are counterfeit from then on. */
  readonly rekey: (record: BatchRecord) => Promise<Created>
  /** Returns false when no batch has the id. */
  readonly setStatus: (id: string, status: BatchStatus) => Promise<boolean>
  /** Seals the key files under TAG_KEK that TAG_KEK_PREVIOUS opens, and returns their paths. Throws `KeyFileError`. */
  readonly reseal: () => Promise<readonly string[]>
  /** Reads the key file again, because another process may have written it. */
  readonly reload: () => Promise<void>
}

/** Opens the store. A `keyFile` of null means no keys: the verifier is not configured. Throws one sentence for an unreadable key file. */
export async function openTagKeyStore({
  folder,
  keyFile,
  shared,
}: {
  readonly folder: string
  readonly keyFile: KeyFileOptions | null
  readonly shared: SharedBatches
}): Promise<TagKeyStore> {
  const path = join(folder, 'tag-keys.json')
  const appPath = join(folder, 'tag-app-keys.json')
  let loaded: ReadonlyMap<string, LoadedBatch> = new Map()
  const records = () => [...loaded.values()].map(({ record }) => record)
  const inTurn = createQueue()
  const ring = createKeyRing([])

  await reload()
  for (const record of records()) await share(record)

  /** Keys that stay are the same objects afterwards, with what was derived from them. All others are destroyed. */
  async function use(next: readonly BatchRecord[]): Promise<void> {
    const before = loaded
    loaded = await Promise.all(next.map((record) => load(record, before.get(record.id)))).then(
      (all) => new Map(all.map((one) => [one.record.id, one])),
    )
    ring.replace([...loaded.values()].map(({ batch }) => batch))
    const kept = new Set([...loaded.values()].map(({ batch }) => batch.fileMaster))
    for (const { batch } of before.values()) {
      if (kept.has(batch.fileMaster)) continue
      batch.meta.destroy?.()
      batch.fileMaster.destroy?.()
    }
  }

  function reload(): Promise<void> {
    return inTurn(async () => {
      if (keyFile !== null) await use(await named(path, readKeyFile(path, keyFile)))
    })
  }

  function write(next: readonly BatchRecord[], options: KeyFileOptions): Promise<void> {
    return inTurn(async () => {
      await writeKeyFile(path, next, options)
      await use(next)
    })
  }

  function share(record: BatchRecord): Promise<boolean> {
    return shared.putBatch({ id: record.id, epoch: record.epoch, settings: publicSettings(record) })
  }

  async function add(record: BatchRecord, appMaster: Uint8Array | null): Promise<Created> {
    if (keyFile === null) return { ok: false, error: noKek }
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await reload()
      if (loaded.has(record.id)) throw new KeyFileError(`A batch named ${record.id} exists already.`)
      // The application masters are written first: the chips of a batch without them could never be changed again.
      if (appMaster !== null) {
        const masters = new Map(await named(appPath, readAppKeyFile(appPath, keyFile))).set(record.id, appMaster)
        await writeAppKeyFile(appPath, masters, keyFile)
      }
      await write([...records(), record], keyFile)
      await share(record)
      return { ok: true, value: record }
    } catch (error) {
      if (error instanceof KeyFileError) return { ok: false, error: error.message }
      throw error
    }
  }

  return {
    keys: ring,
    record: (id) => {
      const record = loaded.get(id)?.record
      return record && { ...record, ...copyOfKeys(record) }
    },
    appMaster: async (id) =>
      keyFile === null ? undefined : (await named(appPath, readAppKeyFile(appPath, keyFile))).get(id),
    async create(options) {
      const made = newBatch(options)
      return made === null ? { ok: false, error: notLegal } : add(made.record, made.appMaster)
    },
    add: (record) => add(record, null),
    async rekey(record) {
      if (keyFile === null) return { ok: false, error: noKek }
      try {
        await reload()
        if (!loaded.has(record.id)) return { ok: false, error: `The keys of batch ${record.id} are not here.` }
        const next = records().map((known) => (known.id === record.id ? record : known))
        await write(next, keyFile)
        await share(record)
        return { ok: true, value: record }
      } catch (error) {
        if (error instanceof KeyFileError) return { ok: false, error: error.message }
        throw error
      }
    },
    async setStatus(id, status) {
      const isShared = await shared.setBatchStatus(id, status)
      await reload()
      if (keyFile === null || !loaded.has(id)) return isShared
      const next = records().map((record) => (record.id === id ? { ...record, status } : record))
      await named(path, write(next, keyFile))
      return true
    },
    reseal: () =>
      inTurn(async () => {
        const files = [
          [path, 'tag-keys'],
          [appPath, 'tag-app-keys'],
        ] as const
        const sealed: string[] = []
        if (keyFile === null) return sealed
        for (const [file, kind] of files) if (await named(file, resealFile(file, kind, keyFile))) sealed.push(file)
        return sealed
      }),
    reload,
  }
}

type LoadedBatch = Readonly<{ record: BatchRecord; batch: TagBatch }>

/** Makes a batch usable, with the key objects of `known` where its keys are the same. */
async function load(record: BatchRecord, known: LoadedBatch | undefined): Promise<LoadedBatch> {
  if (known === undefined || !hasSameKeys(known.record, record)) return { record, batch: await embeddedBatch(record) }
  const { metaKey: _, fileMaster: __, ...settings } = record
  const { metaKey, fileMaster } = known.record
  for (const twin of [record.fileMaster, record.metaKey]) if (twin !== fileMaster && twin !== metaKey) twin?.fill(0)
  return {
    record: { ...settings, fileMaster, ...(metaKey && { metaKey }) },
    batch: { ...settings, meta: known.batch.meta, fileMaster: known.batch.fileMaster },
  }
}

function copyOfKeys({ fileMaster, metaKey }: BatchRecord): Pick<BatchRecord, 'fileMaster' | 'metaKey'> {
  return { fileMaster: fileMaster.slice(), ...(metaKey && { metaKey: metaKey.slice() }) }
}

/** Adds the path to the sentence of a `KeyFileError`. */
async function named<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw error instanceof KeyFileError ? new KeyFileError(`${error.message} (${path})`) : error
  }
}

const noKek = 'TAG_KEK is not set, so that no key file can be sealed. Make one: openssl rand -hex 32'
const notLegal =
  'A batch id has 1 to 64 of A-Z a-z 0-9 . _ -; an epoch is a whole number; a system id has 1 to 16 ASCII characters.'

/**
 * `kek` has 32 bytes; `previousKek` only opens files. `demo` admits demo batches and published keys; never set it in production.
 */
type KeyFileOptions = Readonly<{ kek: Uint8Array; previousKek?: Uint8Array | null; demo?: boolean }>

/** A key file cannot be used. The message is one sentence for the operator and holds no secret. */
export class KeyFileError extends Error {}

/** Reads the verifier's batches. A missing file holds no batches. Throws `KeyFileError`. */
export async function readKeyFile(path: string, options: KeyFileOptions): Promise<readonly BatchRecord[]> {
  const text = await readIfExists(path)
  return text === null ? [] : openKeys(text, options)
}

/** Replaces the verifier's batches. Throws `KeyFileError` for batches that `readKeyFile` would reject. */
export async function writeKeyFile(
  path: string,
  batches: readonly BatchRecord[],
  { kek, demo = false }: KeyFileOptions,
): Promise<void> {
  assertKek(kek)
  assertUsable(batches, demo)
  await writePrivateFile(path, sealKeys(batches, kek))
}

/** Seals batches into the text of a key file. */
export function sealKeys(batches: readonly BatchRecord[], kek: Uint8Array): string {
  return seal('tag-keys', { batches: batches.map(batchToJson) }, kek)
}

/** Opens the text of a key file. Throws `KeyFileError`. */
export function openKeys(text: string, { demo = false, ...keks }: KeyFileOptions): readonly BatchRecord[] {
  const { batches } = open('tag-keys', text, keks)
  const records = Array.isArray(batches) ? batches.map(batchFromJson) : [null]
  const legal = records.filter((record) => record !== null)
  if (legal.length < records.length) throw new KeyFileError('The key file holds a batch that is not legal.')
  assertUsable(legal, demo)
  return legal
}

/** Reads the application masters (slots 0, 3 and 4) by batch id. Throws `KeyFileError`. */
export async function readAppKeyFile(path: string, keks: KeyFileOptions): Promise<ReadonlyMap<string, Uint8Array>> {
  assertKek(keks.kek)
  const text = await readIfExists(path)
  const masters = new Map<string, Uint8Array>()
  for (const [id, hex] of Object.entries(text === null ? {} : open('tag-app-keys', text, keks))) {
    const key = parseHex(String(hex))
    if (key?.length !== 16) throw new KeyFileError('The application key file holds a key that is not legal.')
    masters.set(id, key)
  }
  return masters
}

/** Replaces the application masters. Throws `KeyFileError`. */
export async function writeAppKeyFile(
  path: string,
  masters: ReadonlyMap<string, Uint8Array>,
  { kek }: KeyFileOptions,
): Promise<void> {
  assertKek(kek)
  const value = Object.fromEntries([...masters].map(([id, key]) => [id, toHex(key)]))
  await writePrivateFile(path, seal('tag-app-keys', value, kek))
}

/** Seals a file under the present key that is still sealed under the previous one. Returns whether it was. Throws `KeyFileError`. */
async function resealFile(path: string, kind: SealedKind, options: KeyFileOptions): Promise<boolean> {
  const text = await readIfExists(path)
  if (text === null || unseal(kind, text, options.kek) !== null) return false
  await writePrivateFile(path, seal(kind, open(kind, text, options), options.kek))
  return true
}

async function readIfExists(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function open(
  kind: SealedKind,
  text: string,
  { kek, previousKek = null }: KeyFileOptions,
): Readonly<Record<string, unknown>> {
  assertKek(kek)
  const opened = unseal(kind, text, kek) ?? (previousKek === null ? null : unseal(kind, text, previousKek))
  if (opened === null)
    throw new KeyFileError('The key file cannot be opened: it was sealed under another TAG_KEK, or it is damaged.')
  return isObject(opened.value) ? opened.value : {}
}

function assertKek(kek: Uint8Array): void {
  if (kek.length !== 32) throw new KeyFileError('TAG_KEK must be a key of 32 bytes.')
  if (isPublishedKey(kek)) throw new KeyFileError('TAG_KEK must be a random key.')
}

/** Rejects published keys, and keys under which one tap would count in two batches. */
function assertUsable(batches: readonly BatchRecord[], demo: boolean): void {
  const ids = new Set<string>()
  const idOfKeys = new Map<string, string>()
  for (const batch of batches) {
    const { id, fileMaster, metaKey, derivation } = batch
    if (ids.has(id)) throw new KeyFileError(`Two batches have the id ${id}.`)
    ids.add(id)
    if (batch.demo && !demo) throw new KeyFileError(`The batch ${id} is for demos and cannot be used here.`)
    if (!demo && (isPublishedKey(fileMaster) || (metaKey !== undefined && isPublishedKey(metaKey))))
      throw new KeyFileError(`The batch ${id} has a factory key or a published example key.`)
    // A tap that verifies in two batches of different epochs could be used twice.
    const secrets = [toHex(fileMaster), metaKey && toHex(metaKey)]
    const keys = [derivation, ...schemeParameters[derivation].map((name) => batch[name] ?? 0), ...secrets].join(' ')
    const other = idOfKeys.get(keys)
    if (other !== undefined) throw new KeyFileError(`The batches ${other} and ${id} have the same keys.`)
    idOfKeys.set(keys, id)
  }
}
