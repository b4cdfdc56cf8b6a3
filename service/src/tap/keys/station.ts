/**
 * The personalisation station: the application masters of batches (slots 0, 3 and 4), which can rewrite chips (spec §4.4). A verifier needs
 * none of them. They are in a file of their own, sealed under STATION_KEK, or never leave a token.
 */
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { KeyStore } from '../../keys/key.ts'
import { parseHex } from '../../lib/bytes.ts'
import { makeFolder, readOwnFile } from '../../lib/private-folder.ts'
import { seal, writePrivateFile } from '../../lib/sealed/file.ts'
import { toHex } from '../bytes.ts'
import { type AesKeyRef, embeddedKey } from '../sun/aes.ts'
import { assertKek, KeyFileError, type KeyFileOptions, named, openSealed, resealFile } from './key-file.ts'

export type Station = ReturnType<typeof createStation>

type StationOptions = Readonly<{
  path: string
  /** STATION_KEK, 32 bytes; null on a verifier. */
  kek: Uint8Array | null
  /** STATION_KEK_PREVIOUS, which only opens the file. */
  previousKek?: Uint8Array | null
  /** File of earlier versions, sealed under TAG_KEK. */
  former: Readonly<{ path: string; keks: KeyFileOptions }> | null
}>

/** Returns the path of the file of the station. Its folder is one that a verifier and a backup can go without. */
export function stationFile(dataDir: string): string {
  return join(dataDir, 'station', 'station.keys')
}

/** Returns the path of the file in which earlier versions kept the masters, beside the tag keys. */
export function formerStationFile(folder: string): string {
  return join(folder, 'tag-app-keys.json')
}

/** Opens the file of the station. `add` and `adopt` replace it: their caller holds the lock of the key files. */
export function createStation({ path, kek, previousKek = null, former }: StationOptions) {
  const own = async () =>
    kek === null ? new Map<string, Uint8Array>() : named(path, readMasters(path, { kek, previousKek }, 'STATION_KEK'))
  const earlier = async () =>
    former === null
      ? new Map<string, Uint8Array>()
      : named(former.path, readMasters(former.path, former.keks, 'TAG_KEK'))

  async function write(masters: ReadonlyMap<string, Uint8Array>, key: Uint8Array): Promise<void> {
    const value = Object.fromEntries([...masters].map(([id, master]) => [id, toHex(master)]))
    await makeFolder(dirname(path))
    await writePrivateFile(path, seal('tag-app-keys', value, key))
  }

  return {
    /** Whether masters can be made here: the file has its key. */
    isOpen: kek !== null,
    /** Returns undefined where the master is elsewhere. Throws `KeyFileError` for a file that cannot be opened. */
    async appMaster(batchId: string): Promise<AesKeyRef | undefined> {
      const master = (await own()).get(batchId) ?? (await earlier()).get(batchId)
      return master && embeddedKey(master)
    },
    /**
     * Stores the master of a new batch. One of this name stays, because chips of an earlier batch have it. Throws `KeyFileError` without
     * STATION_KEK.
     */
    async add(batchId: string, master: Uint8Array): Promise<void> {
      if (kek === null) throw new KeyFileError(noStationKek)
      const masters = await own()
      if (!masters.has(batchId)) await write(new Map(masters).set(batchId, master), kek)
    },
    /** Seals the file under STATION_KEK that STATION_KEK_PREVIOUS opens, and returns its path. Throws `KeyFileError`. */
    async reseal(): Promise<readonly string[]> {
      if (kek === null) return []
      return (await named(path, resealFile(path, 'tag-app-keys', { kek, previousKek }, 'STATION_KEK'))) ? [path] : []
    },
    /** Moves masters that an earlier version sealed beside the tag keys. Returns their number. */
    async adopt(): Promise<number> {
      const masters = kek === null ? null : await earlier()
      if (kek === null || former === null || masters === null || masters.size === 0) return 0
      await write(new Map([...masters, ...(await own())]), kek)
      await rm(former.path)
      return masters.size
    },
  }
}

/** The sentence for a batch that is made without STATION_KEK. */
export const noStationKek =
  'STATION_KEK is not set, so that the application keys of a batch cannot be sealed. Make batches where chips are written, with a DATA_DIR of that machine and STATION_KEK (openssl rand -hex 32); verifiers need neither.'

async function readMasters(
  path: string,
  keks: KeyFileOptions,
  variable: string,
): Promise<ReadonlyMap<string, Uint8Array>> {
  assertKek(keks.kek, variable)
  const text = await readOwnFile(path)
  const masters = new Map<string, Uint8Array>()
  for (const [id, hex] of Object.entries(text === null ? {} : openSealed('tag-app-keys', text, keks, variable))) {
    const key = parseHex(String(hex))
    if (key?.length !== 16) throw new KeyFileError('The application key file holds a key that is not legal.')
    masters.set(id, key)
  }
  return masters
}

/** Returns the names of a batch's masters in a token. */
export const storedNames = (batchId: string) => ({ file: `tag/${batchId}/file`, app: `tag/${batchId}/app` })

/**
 * Makes the masters of a new batch in the token. Throws `KeyFileError` for a name that is taken: the bytes of that key may be known, or
 * another service may use it. A demo batch takes the key over.
 */
export async function makeMasters(
  store: KeyStore,
  { id, demo = false }: { id: string; demo?: boolean },
): Promise<void> {
  const { app, file } = storedNames(id)
  const missing: string[] = []
  for (const name of [app, file]) {
    if ((await store.aesKey(name)) === null) missing.push(name)
    else if (!demo)
      throw new KeyFileError(
        `The PKCS#11 token has a key named ${name} already: choose another batch id, or remove the key if no batch uses it.`,
      )
  }
  for (const name of missing) await store.generateAesKey(name)
}
