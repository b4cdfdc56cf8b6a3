/**
 * The sealed key files (spec §4.4, §5). The verifier's file holds the batches. A second file, for the personalisation station, holds
 * the application masters, which can rewrite chips. Both are sealed under TAG_KEK.
 */
import { readFile } from 'node:fs/promises'
import { parseHex } from '../../lib/bytes.ts'
import { isObject } from '../../lib/json.ts'
import { seal, unseal, writePrivateFile, type SealedKind } from '../../lib/sealed-file.ts'
import { toHex } from '../bytes.ts'
import { batchFromJson, batchToJson, type BatchRecord } from './batch.ts'
import { isPublishedKey } from './published.ts'

/** `kek` has 32 bytes. `demo` admits demo batches and published keys; never set it in production. */
export type KeyFileOptions = Readonly<{ kek: Uint8Array; demo?: boolean }>

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
export function openKeys(text: string, { kek, demo = false }: KeyFileOptions): readonly BatchRecord[] {
  const { batches } = open('tag-keys', text, kek)
  const records = Array.isArray(batches) ? batches.map(batchFromJson) : [null]
  const legal = records.filter((record) => record !== null)
  if (legal.length < records.length) throw new KeyFileError('The key file holds a batch that is not legal.')
  assertUsable(legal, demo)
  return legal
}

/** Reads the application masters (slots 0, 3 and 4) by batch id. Throws `KeyFileError`. */
export async function readAppKeyFile(path: string, { kek }: KeyFileOptions): Promise<ReadonlyMap<string, Uint8Array>> {
  assertKek(kek)
  const text = await readIfExists(path)
  const masters = new Map<string, Uint8Array>()
  for (const [id, hex] of Object.entries(text === null ? {} : open('tag-app-keys', text, kek))) {
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

async function readIfExists(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function open(kind: SealedKind, text: string, kek: Uint8Array): Readonly<Record<string, unknown>> {
  assertKek(kek)
  const opened = unseal(kind, text, kek)
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
    const { id, fileMaster, metaKey, derivation, derivationVersion = 0, systemId, fileKeyNo } = batch
    if (ids.has(id)) throw new KeyFileError(`Two batches have the id ${id}.`)
    ids.add(id)
    if (batch.demo && !demo) throw new KeyFileError(`The batch ${id} is for demos and cannot be used here.`)
    if (!demo && (isPublishedKey(fileMaster) || (metaKey !== undefined && isPublishedKey(metaKey))))
      throw new KeyFileError(`The batch ${id} has a factory key or a published example key.`)
    // A tap that verifies in two batches of different epochs could be used twice.
    const secrets = [toHex(fileMaster), metaKey && toHex(metaKey)]
    const keys = [derivation, systemId, fileKeyNo, derivationVersion, ...secrets].join(' ')
    const other = idOfKeys.get(keys)
    if (other !== undefined) throw new KeyFileError(`The batches ${other} and ${id} have the same keys.`)
    idOfKeys.set(keys, id)
  }
}
