/**
 * The part of the batches that all instances share (spec §4.4), with a fingerprint of their keys. By it an instance notices that its key file
 * lacks a batch, or holds former keys. A batch without a fingerprint was written by an earlier version, or by the start of an instance.
 */
import { isObject } from '../../lib/json.ts'
import { type BatchKeyRecord, type BatchStatus, publicSettings } from './batch.ts'

/** `settings` are those of `sharedSettings`; they hold no key. */
export type SharedBatch = Readonly<{ id: string; epoch: number; status: BatchStatus; settings: unknown }>

export type SharedBatches = {
  readonly batches: () => Promise<readonly SharedBatch[]>
  /** Settings without a fingerprint replace none that have one. */
  readonly putBatch: (batch: SharedBatch) => Promise<boolean>
}

/** A batch of the key file; `fingerprint` is that of its keys. */
type BatchHere = Readonly<{ record: BatchKeyRecord; fingerprint: string }>

/** The remedy for batches that are `missing`. A crash during `rekey` leaves its new keys in this file, and not in the database. */
export const missingKeysRemedy =
  'Copy keys/tag-keys.json from where the keys were made or changed. Where the newest are here, run touchstone tag batch rekey <id> --keep. Revoke batches whose keys are lost.'

/** Compares the batches of a key file with those of the database. */
export function compareBatches(
  here: readonly BatchHere[],
  shared: readonly SharedBatch[],
  { demo = false }: { readonly demo?: boolean } = {},
): {
  /** The ids of batches that verify elsewhere, and not here. */
  readonly missing: readonly string[]
  readonly isUsable: (batch: BatchHere) => boolean
} {
  const rows = new Map(shared.map((row) => [row.id, row]))
  const owners = ownersOf(shared)
  function isUsable({ record, fingerprint }: BatchHere): boolean {
    if ((owners.get(fingerprint) ?? record.id) !== record.id) return false
    const row = rows.get(record.id)
    const { keys, macInput } = settingsOf(row)
    if (row === undefined || keys === undefined) return true
    return keys === fingerprint && row.epoch === record.epoch && macInput === record.macInput
  }
  const usable = new Set(here.filter(isUsable).map(({ record }) => record.id))
  const missing = shared.filter(
    ({ id, status, settings }) =>
      status !== 'revoked' && !usable.has(id) && (demo || settingsOf({ settings }).demo !== true),
  )
  return { missing: missing.map(({ id }) => id), isUsable }
}

/** Returns the batch, other than `id`, that has or had the keys of this fingerprint. They stay its own, so that no tap counts in two. */
export function ownerOfKeys(fingerprint: string, id: string, shared: readonly SharedBatch[]): string | undefined {
  const owner = ownersOf(shared).get(fingerprint)
  return owner === id ? undefined : owner
}

/** Returns the settings of a batch for the database. `former` are fingerprints of keys that it had. */
export function sharedSettings(record: BatchKeyRecord, keys: string, former: readonly (string | undefined)[] = []) {
  const formerKeys = [...new Set(former)].filter((one) => one !== undefined && one !== keys)
  return { ...publicSettings(record), keys, ...(formerKeys.length > 0 && { formerKeys }) }
}

/** Returns the fingerprints of all keys that a batch has and had. */
export function fingerprintsOf(batch: Pick<SharedBatch, 'settings'> | undefined): readonly string[] {
  const { keys, formerKeys } = settingsOf(batch)
  return [...(Array.isArray(formerKeys) ? formerKeys : []), keys].filter((one) => typeof one === 'string')
}

/** Returns the batch of each fingerprint. */
function ownersOf(shared: readonly SharedBatch[]): ReadonlyMap<string, string> {
  return new Map(shared.flatMap((row) => fingerprintsOf(row).map((fingerprint) => [fingerprint, row.id] as const)))
}

function settingsOf(batch: Pick<SharedBatch, 'settings'> | undefined): Readonly<Record<string, unknown>> {
  return isObject(batch?.settings) ? batch.settings : {}
}
