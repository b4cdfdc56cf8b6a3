/**
 * The tag key store: the batches of this verifier with their keys, as they change while it runs (spec §4.4, §5). It joins the sealed key
 * file, the batch settings that all instances share, and the ring that taps are tried against. A new batch verifies here at once
 * and on other instances when the key file is copied there. The database says which keys are the newest of a batch; former ones are not
 * used. File masters may be in a token instead (PKCS#11).
 */
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { createAgeClock } from '../../lib/async/age-clock.ts'
import { createQueue, type Queue } from '../../lib/async/concurrency.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { databaseUnavailable } from '../../lib/errors.ts'
import { createRefresh, singleFlight } from '../../lib/async/single-flight.ts'
import type { KeyStore } from '../../keys/key.ts'
import { makeFolder } from '../../lib/private-folder.ts'
import type { AesKeyRef } from '../sun/aes.ts'
import { batchBrands } from '../tag-registry.ts'
import {
  type BatchRecord,
  type BatchStatus,
  embeddedBatch,
  keyFingerprint,
  newBatch,
  type NewBatchOptions,
  publicSettings,
  type BatchKeyRecord,
  createKeyRing,
  type KeyRing,
  type TagBatch,
} from './batch.ts'
import { KeyFileError, type KeyFileOptions, named, readKeyFile, resealFile, writeKeyFile } from './key-file.ts'
import {
  compareBatches,
  fingerprintsOf,
  ownerOfKeys,
  type SharedBatch,
  type SharedBatches,
  sharedSettings,
} from './shared.ts'
import { formerStationFile, makeMasters, type Station, storedNames } from './station.ts'

/** `error` is one sentence for the operator and holds no secret. */
type Created = { readonly ok: true; readonly value: BatchKeyRecord } | { readonly ok: false; readonly error: string }

export type TagKeyStore = Awaited<ReturnType<typeof openTagKeyStore>>

/** Returns the path of the sealed masters of the batches. */
export function tagKeyFile(folder: string): string {
  return join(folder, 'tag-keys.json')
}

/** Opens the store. A `keyFile` of null means no keys: the verifier is not configured. Throws one sentence for an unreadable key file. */
export async function openTagKeyStore({
  folder,
  keyFile,
  shared,
  station = null,
  keyStore = null,
  alone = createQueue(),
  readingMs = 1_000,
  waitMs = 1_000,
  now = createAgeClock(),
  onLifted = () => {},
}: {
  readonly folder: string
  readonly keyFile: KeyFileOptions | null
  readonly shared: SharedBatches
  /** The place of application masters; null: batches are made for software tags only. */
  readonly station?: Station | null
  /** The place of the masters of new batches; null: the key file and the station. */
  readonly keyStore?: KeyStore | null
  /** Keeps every process that shares the folder from changing its files meanwhile. Default: within this store only. */
  readonly alone?: Queue
  /** Milliseconds for which a reading of the database is good. */
  readonly readingMs?: number
  /** Milliseconds that a tap waits for a reading. */
  readonly waitMs?: number
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
  /** Called at the start for batches that the file has as revoked and the database as active. A restore leaves them so. */
  readonly onLifted?: (ids: readonly string[]) => void
}) {
  const path = tagKeyFile(folder)
  let loaded: ReadonlyMap<string, LoadedBatch> = new Map()
  const records = () => [...loaded.values()].map(({ record }) => record)
  const inTurn = createQueue()
  const ring = createKeyRing([])
  /** The batches of the database, as they were read last. */
  let rows: readonly SharedBatch[] = []
  let lacking: readonly string[] = []
  let goodUntil = -Infinity
  /** The failure of the last reading. */
  let failure: Error | null = null
  const readRows = singleFlight(async () => {
    const began = now()
    rows = await shared.batches()
    ;[goodUntil, failure] = [began + readingMs, null]
    compare()
  })
  const refresh = createRefresh(readRows, () => goodUntil - readingMs, now)
  /** Reads what was written until now. A reading that is under way may have begun before. */
  async function readAgain(): Promise<void> {
    await readRows.inFlight()?.catch(() => {})
    await readRows()
  }

  await inTurn(readFile)
  for (const record of records()) await note(record)
  await readRows()
  const active = new Set(rows.filter(({ status }) => status === 'active').map(({ id }) => id))
  const lifted = records().filter(({ id, status }) => status === 'revoked' && active.has(id))
  if (lifted.length > 0) onLifted(lifted.map(({ id }) => id))

  /** Keys that stay are the same objects afterwards, with what was derived from them. All others are destroyed. */
  async function use(next: readonly BatchKeyRecord[]): Promise<void> {
    const before = loaded
    loaded = await Promise.all(next.map((record) => load(record, before.get(record.id), keyStore))).then(
      (all) => new Map(all.map((one) => [one.record.id, one])),
    )
    compare()
    const kept = new Set([...loaded.values()].map(({ batch }) => batch.fileMaster))
    for (const { batch } of before.values()) {
      if (kept.has(batch.fileMaster)) continue
      batch.meta.destroy?.()
      batch.fileMaster.destroy?.()
    }
  }

  /** Leaves batches out of the ring whose keys are not those of the database. */
  function compare(): void {
    if (keyFile === null) return
    const { missing, isUsable } = compareBatches([...loaded.values()], rows, keyFile)
    lacking = missing
    const usable = [...loaded.values()].filter(isUsable).map(({ batch }) => batch)
    const inRing = new Set(ring.candidates())
    if (usable.length !== inRing.size || usable.some((batch) => !inRing.has(batch))) ring.replace(usable)
  }

  /**
   * Returns the ids of batches whose tags verify by the database, but not by the keys here. `keys` leaves out those that are others here. What
   * is read is good for a second. Throws DATABASE_UNAVAILABLE while the database does not answer within one.
   */
  async function missing(): Promise<readonly string[]> {
    if (keyFile === null) return lacking
    await withDeadline(refresh(readingMs), waitMs).catch((fault: unknown) => {
      // Other taps must not wait for it each time.
      ;[goodUntil, failure] = [now() + readingMs, databaseUnavailable(fault)]
    })
    if (failure !== null) throw failure
    return lacking
  }

  async function readFile(): Promise<void> {
    if (keyFile !== null) await use(await named(path, readKeyFile(path, keyFile)))
  }

  /**
   * Reads the key file again, because another process may have written it. Adds its batches that the database lacks: it may not have
   * answered when they were made.
   */
  function reload(): Promise<void> {
    return inTurn(async () => {
      await readFile()
      await readAgain()
      const known = new Set(rows.map(({ id }) => id))
      for (const record of records()) if (!known.has(record.id)) await note(record)
    })
  }

  function write(next: readonly BatchKeyRecord[], options: KeyFileOptions): Promise<void> {
    return inTurn(async () => {
      await writeKeyFile(path, next, options)
      await use(next)
    })
  }

  /** Adds a batch without a fingerprint: the file of this instance may not be the newest. */
  async function note(record: BatchKeyRecord): Promise<void> {
    const { id, epoch, status } = record
    await shared.putBatch({ id, epoch, status, settings: publicSettings(record) })
  }

  /** Makes the keys here those of the batch, on every instance. */
  async function share(record: BatchKeyRecord, former?: readonly (string | undefined)[]): Promise<void> {
    const { id, epoch, status } = record
    const { fingerprint } = loaded.get(id) as LoadedBatch
    await shared.putBatch({ id, epoch, status, settings: sharedSettings(record, fingerprint, former) })
    goodUntil = -Infinity // where it cannot be read now, the next tap does
    await readAgain().catch(() => {})
  }

  /** Keys of a batch stay its own on all instances, also once it has others. */
  async function assertOwn(record: BatchKeyRecord): Promise<void> {
    if (record.fileMaster === null) return // it was made here, in the token
    const owner = ownerOfKeys(await keyFingerprint(record), record.id, rows)
    if (owner !== undefined)
      throw new KeyFileError(`Batch ${owner} has these keys, or had them: a tap would count in both batches.`)
  }

  /** Makes the masters of a new batch in their place. A demo batch goes without an application master where there is no station. */
  async function place({ record, appMaster }: NonNullable<ReturnType<typeof newBatch>>): Promise<BatchKeyRecord> {
    if (keyStore !== null) {
      await makeMasters(keyStore, record)
      return { ...record, fileMaster: null }
    }
    if (record.demo && station?.isOpen !== true) return record
    if (station === null) throw new KeyFileError('The application keys of a batch have no place here.')
    await station.add(record.id, appMaster)
    return record
  }

  /** Runs a change of the key file. Returns the sentence of a `KeyFileError`. */
  async function changed(change: (options: KeyFileOptions) => Promise<BatchKeyRecord>): Promise<Created> {
    try {
      if (keyFile === null) throw new KeyFileError(noKek)
      return { ok: true, value: await change(keyFile) }
    } catch (error) {
      if (error instanceof KeyFileError) return { ok: false, error: error.message }
      throw error
    }
  }

  const add = (id: string, make: () => Promise<BatchKeyRecord>, brands?: readonly string[]) =>
    changed(async (options) => {
      await makeFolder(folder)
      await reload()
      if (loaded.has(id)) throw new KeyFileError(`A batch named ${id} exists already: choose another name.`)
      // The application masters are written first: the chips of a batch without them could never be changed again.
      const record = { ...(await make()), ...(brands && { brands }) }
      await assertOwn(record)
      await write([...records(), record], options)
      await share(record)
      return record
    })

  const rekey = (given: BatchRecord) =>
    changed(async (options) => {
      const { id } = given
      await reload()
      const former = loaded.get(id)
      if (former === undefined) throw new KeyFileError(`The keys of batch ${id} are not here.`)
      if (former.record.fileMaster === null)
        throw new KeyFileError(`The keys of batch ${id} are in a token: make another batch instead.`)
      // The batch may have been revoked while its new keys were proved.
      const { status, brands } = former.record
      const record = { ...given, status, ...(brands && { brands }) }
      const row = rows.find((one) => one.id === id)
      if (row !== undefined && row.epoch !== record.epoch)
        throw new KeyFileError(`Batch ${id} has epoch ${row.epoch} in the database, and ${record.epoch} here.`)
      await assertOwn(record)
      const next = records().map((known) => (known.id === id ? record : known))
      await write(next, options)
      await share(record, [...fingerprintsOf(row), former.fingerprint])
      return record
    })

  /** Status and brands are read under the lock of the files. The last writer has the last of them. */
  async function repeatInFile(id: string, failureOf: (status: BatchStatus) => string): Promise<void> {
    const row = (await shared.batches()).find((one) => one.id === id)
    if (row === undefined) return
    const { status } = row
    const brands = batchBrands(row.settings)
    try {
      await reload()
      const known = loaded.get(id)?.record
      if (keyFile === null || known === undefined) return
      if (known.status === status && isDeepStrictEqual(known.brands ?? null, brands)) return
      const changed = { ...withoutShared(known), status, ...(brands && { brands }) }
      const next = records().map((record) => (record === known ? changed : record))
      await named(path, write(next, keyFile))
    } catch (cause) {
      throw new KeyFileError(failureOf(status), { cause })
    }
  }

  const repeated = (id: string, failureOf: (status: BatchStatus) => string): Promise<void> =>
    alone(() => repeatInFile(id, failureOf)).catch((cause: unknown) => {
      if (cause instanceof KeyFileError) throw cause
      throw new KeyFileError(`The change of batch ${id} was not repeated in the key file. ${repeat}`, { cause })
    })

  return {
    /** Always provides the newest keys. */
    keys: ring as Omit<KeyRing, 'replace'>,
    missing,
    /** Returns the batch with a copy of its keys, for personalisation and software tags. */
    record: (id: string): BatchKeyRecord | undefined => {
      const record = loaded.get(id)?.record
      return record && structuredClone(record)
    },
    /** Returns the file master of the batch, in this process or in a token. It is destroyed when it is replaced. */
    fileMaster: (id: string): AesKeyRef | undefined => loaded.get(id)?.batch.fileMaster,
    /** Returns the application master; undefined where it is elsewhere. */
    appMaster: async (id: string): Promise<AesKeyRef | undefined> =>
      (await keyStore?.aesKey(storedNames(id).app)) ?? (await station?.appMaster(id)),
    /** `brands` are those of its chips, which the database gets with the batch. Left out: any. */
    async create(options: NewBatchOptions, brands?: readonly string[]): Promise<Created> {
      const made = newBatch(options)
      return made === null ? { ok: false, error: notLegal } : alone(() => add(options.id, () => place(made), brands))
    },
    /** Stores the keys of tags that another system personalised. They have no application master here. */
    add: (record: BatchRecord, brands?: readonly string[]): Promise<Created> =>
      alone(() => add(record.id, async () => record, brands)),
    /**
     * Replaces the keys and settings of the batch with this id, which keeps its status. Taps of the former keys verify on no instance from then
     * on; those of the new ones verify where the key file is. The keys that are here may be given too: then they are the newest.
     */
    rekey: (record: BatchRecord): Promise<Created> => alone(() => rekey(record)),
    /**
     * Repeats the present status of a batch in the key file, where the batch is. The database decides about taps; a new database takes the
     * status from the file. Throws `KeyFileError` with what to do.
     */
    writeStatus: (id: string): Promise<void> =>
      repeated(id, (status) => `Batch ${id} is ${status}, but not in the key file${notInFile[status]}`),
    /** Repeats the present brands in the key file, as `writeStatus` does the status. */
    writeBrands: (id: string): Promise<void> =>
      repeated(
        id,
        () => `The brands of batch ${id} are not in the key file, where a new database reads them. ${repeat}`,
      ),
    /** Seals the files again that former keys open, under the new ones. Returns their paths. Throws `KeyFileError`. */
    reseal: (): Promise<readonly string[]> =>
      alone(async () => {
        const files = [
          [path, 'tag-keys'],
          [formerStationFile(folder), 'tag-app-keys'],
        ] as const
        const sealed = [...((await station?.reseal()) ?? [])]
        if (keyFile === null) return sealed
        for (const [file, kind] of files) if (await named(file, resealFile(file, kind, keyFile))) sealed.push(file)
        return sealed
      }),
    reload,
  }
}

type LoadedBatch = Readonly<{ record: BatchKeyRecord; batch: TagBatch; fingerprint: string }>

/** Returns the part of a batch that the database does not decide. */
function withoutShared({ status: _status, brands: _brands, ...own }: BatchKeyRecord) {
  return own
}

/** Makes a batch usable, with the key objects of `known` where nothing but its status and brands is another. */
async function load(
  record: BatchKeyRecord,
  known: LoadedBatch | undefined,
  keyStore: KeyStore | null,
): Promise<LoadedBatch> {
  const { status, brands } = record
  if (known === undefined || !isDeepStrictEqual(withoutShared(known.record), withoutShared(record))) {
    const stored = record.fileMaster === null ? await storedMaster(record, keyStore) : undefined
    return { record, batch: await embeddedBatch(record, stored), fingerprint: await keyFingerprint(record, stored) }
  }
  const { metaKey, fileMaster } = known.record
  for (const copy of [record.fileMaster, record.metaKey]) if (copy !== fileMaster && copy !== metaKey) copy?.fill(0)
  const shared = { status, ...(brands && { brands }) }
  return { ...known, record: { ...withoutShared(known.record), ...shared }, batch: { ...known.batch, status } }
}

/** Throws `KeyFileError` when the master is not where the settings place it. */
async function storedMaster({ id }: BatchKeyRecord, keyStore: KeyStore | null): Promise<AesKeyRef> {
  const name = storedNames(id).file
  if (keyStore === null)
    throw new KeyFileError(`The keys of batch ${id} are in a PKCS#11 token: name it in KEYS, with tags among its keys.`)
  const key = await keyStore.aesKey(name)
  if (key === null) throw new KeyFileError(`The PKCS#11 token has no key named ${name}, the file master of a batch.`)
  return key
}

const repeat = 'Repeat the command where the file can be written.'
const notInFile = {
  active: `. Where that says revoked, its tags stay counterfeit. ${repeat}`,
  revoked: `, from which a new database takes the status. ${repeat}`,
  retired: `. Where that says revoked, its tags stay counterfeit. ${repeat}`,
} as const
const noKek = 'TAG_KEK is not set, so no key file can be sealed. Make one: openssl rand -hex 32'
const notLegal =
  'A batch id has 1 to 64 of A-Z a-z 0-9 . _ -. An epoch is a whole number. A system id has 1 to 16 ASCII characters.'
