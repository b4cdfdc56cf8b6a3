/**
 * The tag keys of this verifier as they change while it runs (spec §4.4): the sealed key file, the batches that every instance
 * knows, and the ring that taps are tried against. A new batch verifies at once here, and elsewhere when its key file is copied.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { embeddedBatch, newBatch, publicSettings, type BatchRecord, type NewBatchOptions } from './batch.ts'
import {
  readAppKeyFile,
  readKeyFile,
  writeAppKeyFile,
  writeKeyFile,
  type KeyFileOptions,
  type Opened,
} from './key-file.ts'
import { createKeyRing, type BatchStatus, type KeyRing, type TagBatch, type TagKeyProvider } from './keys.ts'

/** What all instances share of a batch; never a key. */
export type SharedBatches = {
  readonly putBatch: (batch: { id: string; epoch: number; settings: unknown }) => Promise<boolean>
  readonly setBatchStatus: (id: string, status: BatchStatus) => Promise<boolean>
}

export type Fleet = {
  /** For the tap flow: always the newest keys. */
  readonly keys: TagKeyProvider
  readonly batches: () => readonly TagBatch[]
  /** The batch with its keys, for personalisation and software tags. */
  readonly record: (id: string) => BatchRecord | undefined
  readonly appMaster: (id: string) => Promise<Uint8Array | undefined>
  readonly create: (options: NewBatchOptions) => Promise<Opened<BatchRecord>>
  /** False when no batch has the id. */
  readonly setStatus: (id: string, status: BatchStatus) => Promise<boolean>
  /** Reads the key file again: another process may have written it. */
  readonly reload: () => Promise<void>
}

/** `keyFile` null: the verifier holds no keys and is not configured. An unreadable key file throws one sentence. */
export async function openFleet({
  folder,
  keyFile,
  shared,
}: {
  readonly folder: string
  readonly keyFile: KeyFileOptions | null
  readonly shared: SharedBatches
}): Promise<Fleet> {
  const path = join(folder, 'tag-keys.json')
  const appPath = join(folder, 'tag-app-keys.json')
  let records: readonly BatchRecord[] = []
  let ring: KeyRing = createKeyRing([])

  async function use(next: readonly BatchRecord[]): Promise<void> {
    ring = createKeyRing(await Promise.all(next.map(embeddedBatch)))
    records = next
  }

  async function reload(): Promise<void> {
    if (keyFile !== null) await use(valueOf(await readKeyFile(path, keyFile), path))
  }

  await reload()
  for (const record of records)
    await shared.putBatch({ id: record.id, epoch: record.epoch, settings: publicSettings(record) })

  async function keep(next: readonly BatchRecord[], options: KeyFileOptions): Promise<Opened<null>> {
    const written = await writeKeyFile(path, next, options)
    if (!written.ok) return written
    await use(next)
    return written
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
      keyFile === null ? undefined : valueOf(await readAppKeyFile(appPath, keyFile), appPath).get(id),
    async create(options) {
      if (keyFile === null)
        return {
          ok: false,
          error: 'TAG_KEK is not set, so that no key file can be sealed. Make one: openssl rand -hex 32',
        }
      const made = newBatch(options)
      if (made === null)
        return {
          ok: false,
          error:
            'A batch id has 1 to 64 of A-Z a-z 0-9 . _ -; an epoch is a whole number; a system id has 1 to 16 ASCII characters.',
        }
      const { record, appMaster } = made
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await reload()
      // The application masters first: a batch whose chips could never be changed again must not come to be.
      const masters = new Map(valueOf(await readAppKeyFile(appPath, keyFile), appPath)).set(record.id, appMaster)
      if (records.some(({ id }) => id === record.id))
        return { ok: false, error: `A batch named ${record.id} exists already.` }
      const kept = await writeAppKeyFile(appPath, masters, keyFile)
      if (!kept.ok) return kept
      const written = await keep([...records, record], keyFile)
      if (!written.ok) return written
      await shared.putBatch({ id: record.id, epoch: record.epoch, settings: publicSettings(record) })
      return { ok: true, value: record }
    },
    async setStatus(id, status) {
      const known = await shared.setBatchStatus(id, status)
      await reload()
      const record = records.find((one) => one.id === id)
      if (record === undefined || keyFile === null) return known
      const next = records.map((one) => (one.id === id ? { ...one, status } : one))
      valueOf(await keep(next, keyFile), path)
      return true
    },
    reload,
  }
}

function valueOf<T>(opened: Opened<T>, path: string): T {
  if (!opened.ok) throw new Error(`${opened.error} (${path})`)
  return opened.value
}
