/**
 * The tag key store: the batches of this verifier with their keys, as they change while it runs (spec §4.4). It joins the sealed key
 * files, the batch settings that all instances share, and the ring that taps are tried against. A new batch verifies here at once
 * and on other instances when the key file is copied there.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { embeddedBatch, newBatch, publicSettings, type BatchRecord, type NewBatchOptions } from './batch.ts'
import {
  KeyFileError,
  readAppKeyFile,
  readKeyFile,
  writeAppKeyFile,
  writeKeyFile,
  type KeyFileOptions,
} from './file.ts'
import { createKeyRing, type BatchStatus, type KeyRing, type TagBatch, type TagKeyProvider } from './ring.ts'

/** The part of a batch that all instances share; it holds no key. */
export type SharedBatches = {
  readonly putBatch: (batch: { id: string; epoch: number; settings: unknown }) => Promise<boolean>
  readonly setBatchStatus: (id: string, status: BatchStatus) => Promise<boolean>
}

/** `error` is one sentence for the operator and holds no secret. */
type Created = { readonly ok: true; readonly value: BatchRecord } | { readonly ok: false; readonly error: string }

export type TagKeyStore = {
  /** Always provides the newest keys. */
  readonly keys: TagKeyProvider
  readonly batches: () => readonly TagBatch[]
  /** Returns the batch with its keys, for personalisation and software tags. */
  readonly record: (id: string) => BatchRecord | undefined
  readonly appMaster: (id: string) => Promise<Uint8Array | undefined>
  readonly create: (options: NewBatchOptions) => Promise<Created>
  /** Returns false when no batch has the id. */
  readonly setStatus: (id: string, status: BatchStatus) => Promise<boolean>
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
  let records: readonly BatchRecord[] = []
  let ring: KeyRing = createKeyRing([])

  await reload()
  for (const record of records) await share(record)

  async function use(next: readonly BatchRecord[]): Promise<void> {
    ring = createKeyRing(await Promise.all(next.map(embeddedBatch)))
    records = next
  }

  async function reload(): Promise<void> {
    if (keyFile !== null) await use(await named(path, readKeyFile(path, keyFile)))
  }

  async function write(next: readonly BatchRecord[], options: KeyFileOptions): Promise<void> {
    await writeKeyFile(path, next, options)
    await use(next)
  }

  function share(record: BatchRecord): Promise<boolean> {
    return shared.putBatch({ id: record.id, epoch: record.epoch, settings: publicSettings(record) })
  }

  /** Throws `KeyFileError`. */
  async function add({ record, appMaster }: NonNullable<ReturnType<typeof newBatch>>, options: KeyFileOptions) {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await reload()
    const masters = new Map(await named(appPath, readAppKeyFile(appPath, options))).set(record.id, appMaster)
    if (records.some(({ id }) => id === record.id)) throw new KeyFileError(`A batch named ${record.id} exists already.`)
    // The application masters are written first: the chips of a batch without them could never be changed again.
    await writeAppKeyFile(appPath, masters, options)
    await write([...records, record], options)
    await share(record)
  }

  return {
    keys: {
      candidates: (hint) => ring.candidates(hint),
      ready: () => ring.ready(),
      hit: (batch) => ring.hit(batch),
    },
    batches: () => ring.batches(),
    record: (id) => records.find((record) => record.id === id),
    appMaster: async (id) =>
      keyFile === null ? undefined : (await named(appPath, readAppKeyFile(appPath, keyFile))).get(id),
    async create(options) {
      if (keyFile === null) return { ok: false, error: noKek }
      const made = newBatch(options)
      if (made === null) return { ok: false, error: notLegal }
      try {
        await add(made, keyFile)
        return { ok: true, value: made.record }
      } catch (error) {
        if (error instanceof KeyFileError) return { ok: false, error: error.message }
        throw error
      }
    },
    async setStatus(id, status) {
      const isShared = await shared.setBatchStatus(id, status)
      await reload()
      if (keyFile === null || !records.some((record) => record.id === id)) return isShared
      const next = records.map((record) => (record.id === id ? { ...record, status } : record))
      await named(path, write(next, keyFile))
      return true
    },
    reload,
  }
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
