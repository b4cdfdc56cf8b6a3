/**
 * The files of tag keys (spec §4.4, §5). The verifier's file holds batches; the application masters, which can rewrite chips,
 * are in a second file that belongs to the personalisation station. Both are sealed under TAG_KEK.
 */
import { readFile } from 'node:fs/promises'
import { batchFromJson, batchToJson, type BatchRecord } from './batch.ts'
import { bytesOf, hexOf } from './bytes.ts'
import { isPublishedKey } from './published-keys.ts'
import { seal, unseal, writePrivateFile } from './sealed-file.ts'

/** `kek` has 32 bytes. `demo` lets demo batches and published keys in; never in production. */
export type KeyFileOptions = Readonly<{ kek: Uint8Array; demo?: boolean }>

/** `error` is one sentence for the operator, without any secret. */
export type Opened<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: string }

/** Reads the verifier's batches. A missing file is no batches: the verifier is then not configured. */
export async function readKeyFile(path: string, options: KeyFileOptions): Promise<Opened<readonly BatchRecord[]>> {
  const text = await textOf(path)
  if (text === null) return { ok: true, value: [] }
  return openKeys(text, options)
}

/** Writes the verifier's batches, all of them; refuses what `readKeyFile` would refuse. */
export async function writeKeyFile(
  path: string,
  batches: readonly BatchRecord[],
  options: KeyFileOptions,
): Promise<Opened<null>> {
  const error = kekError(options.kek) ?? batchesError(batches, options.demo ?? false)
  if (error !== null) return { ok: false, error }
  await writePrivateFile(path, sealKeys(batches, options.kek))
  return { ok: true, value: null }
}

/** The sealed text of a key file. */
export function sealKeys(batches: readonly BatchRecord[], kek: Uint8Array): string {
  return seal('tag-keys', { batches: batches.map(batchToJson) }, kek)
}

/** Opens the sealed text of a key file, such as one that a key service has unsealed the KEK for. */
export function openKeys(text: string, { kek, demo = false }: KeyFileOptions): Opened<readonly BatchRecord[]> {
  const wrongKek = kekError(kek)
  if (wrongKek !== null) return { ok: false, error: wrongKek }
  const opened = unseal('tag-keys', text, kek)
  if (opened === null) return notOpened
  const { batches } = (opened.value ?? {}) as { batches?: unknown }
  const records = Array.isArray(batches) ? batches.map(batchFromJson) : [null]
  const value = records.filter((record) => record !== null)
  if (value.length < records.length) return { ok: false, error: 'The key file holds a batch that is not legal.' }
  const error = batchesError(value, demo)
  return error === null ? { ok: true, value } : { ok: false, error }
}

/** Application masters by batch id, for slots 0, 3 and 4. */
export async function readAppKeyFile(
  path: string,
  { kek }: KeyFileOptions,
): Promise<Opened<ReadonlyMap<string, Uint8Array>>> {
  const wrongKek = kekError(kek)
  if (wrongKek !== null) return { ok: false, error: wrongKek }
  const text = await textOf(path)
  if (text === null) return { ok: true, value: new Map() }
  const opened = unseal('tag-app-keys', text, kek)
  if (opened === null) return notOpened
  const entries = Object.entries((opened.value ?? {}) as Record<string, unknown>)
  const value = new Map(entries.map(([id, hex]) => [id, bytesOf(String(hex)) ?? new Uint8Array(0)]))
  const isLegal = [...value.values()].every((key) => key.length === 16)
  return isLegal ? { ok: true, value } : { ok: false, error: 'The application key file holds a key that is not legal.' }
}

/** Writes the application masters, all of them. */
export async function writeAppKeyFile(
  path: string,
  masters: ReadonlyMap<string, Uint8Array>,
  { kek }: KeyFileOptions,
): Promise<Opened<null>> {
  const error = kekError(kek)
  if (error !== null) return { ok: false, error }
  const value = Object.fromEntries([...masters].map(([id, key]) => [id, hexOf(key)]))
  await writePrivateFile(path, seal('tag-app-keys', value, kek))
  return { ok: true, value: null }
}

const notOpened = {
  ok: false,
  error: 'The key file cannot be opened: it was sealed under another TAG_KEK, or it is damaged.',
} as const

async function textOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function kekError(kek: Uint8Array): string | null {
  if (kek.length !== 32) return 'TAG_KEK must be a key of 32 bytes.'
  return isPublishedKey(kek) ? 'TAG_KEK must be a random key.' : null
}

/** What makes a set of batches unsafe: known keys, and keys that would give one tap two lives. */
function batchesError(batches: readonly BatchRecord[], demo: boolean): string | null {
  const ids = new Set<string>()
  const lives = new Map<string, BatchRecord>()
  for (const batch of batches) {
    const { id, fileMaster, metaKey, derivation, systemId, fileKeyNo } = batch
    if (ids.has(id)) return `Two batches have the id ${id}.`
    ids.add(id)
    if (batch.demo && !demo) return `The batch ${id} is for demos and cannot be used here.`
    if (!demo && (isPublishedKey(fileMaster) || (metaKey !== undefined && isPublishedKey(metaKey)))) {
      return `The batch ${id} has a factory key or a published example key.`
    }
    // One tap that verifies in two batches of different epochs could be used twice.
    const life = [
      derivation,
      systemId,
      fileKeyNo,
      batch.derivationVersion ?? 0,
      hexOf(fileMaster),
      metaKey && hexOf(metaKey),
    ]
    const twin = lives.get(life.join(' '))
    if (twin !== undefined) return `The batches ${twin.id} and ${id} have the same keys.`
    lives.set(life.join(' '), batch)
  }
  return null
}
