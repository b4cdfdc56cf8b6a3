/**
 * Keys of tag batches (spec §4.4, §5): what a verifier holds, in which order it tries them, and which may verify.
 * Slots of a chip: 0 application master, 1 metaRead, 2 fileRead; the verifier never holds the application master.
 */
import type { AesKeyRef } from './aes.ts'
import type { Derivation } from './derivations.ts'
import type { MacInput } from './sun.ts'

export const batchStatuses = ['active', 'retired', 'revoked'] as const
/** `active` and `retired` verify; what a `revoked` batch signs is counterfeit. */
export type BatchStatus = (typeof batchStatuses)[number]

/** Tags personalised under one set of keys. `epoch` is the version of their file keys; a new life of a chip needs a new one. */
export interface TagBatch {
  id: string
  epoch: number
  status: BatchStatus
  demo?: boolean
  systemId: string
  /** Chip slot of the fileRead key, part of its diversification. */
  fileKeyNo: number
  macInput: MacInput
  derivation: Derivation
  /** Version byte of the `boltcard` scheme. */
  derivationVersion?: number
  /** Tenant hosts or static address values that, besides the id, point at this batch. */
  hints?: readonly string[]
  meta: AesKeyRef
  fileMaster: AesKeyRef
}

export interface TagKeyProvider {
  /** Every batch once, the likeliest first. A hint is unauthenticated: it orders, it never excludes. */
  candidates: (hint?: string) => Iterable<TagBatch>
  /** False without any batch: the verifier is not configured (503). */
  ready: () => boolean
  /** Tells that a tap of this batch was genuine. */
  hit?: (batch: TagBatch) => void
}

export type KeyRing = TagKeyProvider & {
  hit: (batch: TagBatch) => void
  /** Changes a status from the next tap on; false when no batch has the id. */
  setStatus: (id: string, status: BatchStatus) => boolean
  batches: () => readonly TagBatch[]
}

/** The batches of this verifier, tried last-hit first. Throws a `RangeError` for two batches of one id. */
export function createKeyRing(batches: readonly TagBatch[]): KeyRing {
  if (new Set(batches.map(({ id }) => id)).size < batches.length) throw new RangeError('Two tag batches have one id.')
  // Replaced as a whole on every change, so that a search under way keeps its order.
  let order = batches.map((batch) => ({ ...batch }))
  return {
    candidates: (hint) => (hint === undefined ? order : hintedFirst(order, hint)),
    ready: () => order.length > 0,
    hit: (batch) => {
      const known = order.find(({ id }) => id === batch.id)
      if (known !== undefined && known !== order[0]) order = [known, ...order.filter((other) => other !== known)]
    },
    setStatus: (id, status) => {
      const batch = order.find((known) => known.id === id)
      if (batch !== undefined) batch.status = status
      return batch !== undefined
    },
    batches: () => order,
  }
}

function* hintedFirst(order: readonly TagBatch[], hint: string): Iterable<TagBatch> {
  for (const batch of order) if (isHinted(batch, hint)) yield batch
  for (const batch of order) if (!isHinted(batch, hint)) yield batch
}

function isHinted({ id, hints = [] }: TagBatch, hint: string): boolean {
  return id === hint || hints.includes(hint)
}
