/**
 * Key files of tags: sealed under a key encryption key (spec §4.4, §5). The verifier's file holds the batches with their keys; the
 * personalisation station has one of its own (`station.ts`).
 */
import { isObject } from '../../lib/json.ts'
import { readOwnFile } from '../../lib/private-folder.ts'
import { seal, type SealedKind, unseal, writePrivateFile } from '../../lib/sealed/file.ts'
import { toHex } from '../bytes.ts'
import { batchFromJson, batchToJson, type BatchKeyRecord, keyFingerprint } from './batch.ts'
import { isPublishedKey } from './published.ts'

/**
 * `kek` has 32 bytes; `previousKek` only opens files. `demo` admits demo batches and published keys; never set it in production.
 */
export type KeyFileOptions = Readonly<{ kek: Uint8Array; previousKek?: Uint8Array | null; demo?: boolean }>

/** A key file cannot be used. The message is one sentence for the operator and holds no secret. */
export class KeyFileError extends Error {}

/** Reads the verifier's batches. A missing file holds no batches. Throws `KeyFileError`. */
export async function readKeyFile(path: string, options: KeyFileOptions): Promise<readonly BatchKeyRecord[]> {
  const text = await readOwnFile(path)
  return text === null ? [] : openKeys(text, options)
}

/** Replaces the verifier's batches. Throws `KeyFileError` for batches that `readKeyFile` would reject. */
export async function writeKeyFile(
  path: string,
  batches: readonly BatchKeyRecord[],
  { kek, demo = false }: KeyFileOptions,
): Promise<void> {
  assertKek(kek)
  await assertUsable(batches, demo)
  await writePrivateFile(path, sealKeys(batches, kek))
}

/** Seals batches into the text of a key file. Earlier versions open no batch with a setting that they lack: brands stand apart. */
export function sealKeys(batches: readonly BatchKeyRecord[], kek: Uint8Array): string {
  const brands = batches.flatMap((batch) => (batch.brands === undefined ? [] : [[batch.id, batch.brands]]))
  return seal('tag-keys', { batches: batches.map(batchToJson), brands }, kek)
}

/** Opens the text of a key file. Throws `KeyFileError`. */
export async function openKeys(
  text: string,
  { demo = false, ...keks }: KeyFileOptions,
): Promise<readonly BatchKeyRecord[]> {
  const { batches, brands = [] } = openSealed('tag-keys', text, keks)
  const records = Array.isArray(batches) ? batches.map(batchFromJson) : [null]
  const legal = records.filter((record) => record !== null)
  if (legal.length < records.length) throw new KeyFileError('The key file holds a batch that is not legal.')
  await assertUsable(legal, demo)
  const brandsOf = new Map(brands as readonly [string, readonly string[]][])
  return legal.map((record) => {
    const own = brandsOf.get(record.id)
    return own === undefined ? record : { ...record, brands: own }
  })
}

/** Seals a file under the present key that is still sealed under the previous one. Returns whether it was. Throws `KeyFileError`. */
export async function resealFile(
  path: string,
  kind: SealedKind,
  options: KeyFileOptions,
  variable = 'TAG_KEK',
): Promise<boolean> {
  const text = await readOwnFile(path)
  if (text === null || unseal(kind, text, options.kek) !== null) return false
  await writePrivateFile(path, seal(kind, openSealed(kind, text, options, variable), options.kek))
  return true
}

/** Opens the text of a sealed file. Throws `KeyFileError`. */
export function openSealed(
  kind: SealedKind,
  text: string,
  { kek, previousKek = null }: KeyFileOptions,
  variable = 'TAG_KEK',
): Readonly<Record<string, unknown>> {
  assertKek(kek, variable)
  const opened = unseal(kind, text, kek) ?? (previousKek === null ? null : unseal(kind, text, previousKek))
  if (opened === null)
    throw new KeyFileError(`The key file cannot be opened: it was sealed under another ${variable}, or it is damaged.`)
  return isObject(opened.value) ? opened.value : {}
}

/** `variable` is the setting that holds the key. Throws `KeyFileError`. */
export function assertKek(kek: Uint8Array, variable = 'TAG_KEK'): void {
  if (kek.length !== 32) throw new KeyFileError(`${variable} must be a key of 32 bytes.`)
  if (isPublishedKey(kek)) throw new KeyFileError(`${variable} must be a random key.`)
}

/** Rejects published keys, and keys under which one tap would count in two batches. */
async function assertUsable(batches: readonly BatchKeyRecord[], demo: boolean): Promise<void> {
  const ids = new Set<string>()
  const idOfKeys = new Map<string, string>()
  for (const batch of batches) {
    const { id, fileMaster, metaKey } = batch
    if (ids.has(id)) throw new KeyFileError(`Two batches have the id ${id}.`)
    ids.add(id)
    if (batch.demo && !demo) throw new KeyFileError(`The batch ${id} is for demos and cannot be used here.`)
    const known = [fileMaster, metaKey].filter((key) => key !== undefined && key !== null)
    if (!demo && known.some(isPublishedKey))
      throw new KeyFileError(
        `The batch ${id} has a factory key or a published example key. Give it others: DEMO=on touchstone tag batch rekey ${id}`,
      )
    // A tap that verifies in two batches of different epochs could be used twice. A master in a token is beside a metaRead key of its own.
    const keys = fileMaster === null ? known.map(toHex).join() : await keyFingerprint(batch)
    const other = idOfKeys.get(keys)
    if (other !== undefined) throw new KeyFileError(`The batches ${other} and ${id} have the same keys.`)
    idOfKeys.set(keys, id)
  }
}

/** Adds the path to the sentence of a `KeyFileError`. */
export async function named<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw error instanceof KeyFileError ? new KeyFileError(`${error.message} (${path})`) : error
  }
}
