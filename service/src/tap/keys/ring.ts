/**
 * The keys that a verifier tries, in their order (spec §4.4, §5). The slots of a chip are 0 application master, 1 metaRead and
 * 2 fileRead; the verifier never holds the application master.
 */
import type { AesKeyRef } from '../sun/aes.ts'
import type { MacInput } from '../sun/sun.ts'
import type { Derivation } from './derivations.ts'

export const batchStatuses = ['active', 'retired', 'revoked'] as const
/** Tags of `active` and `retired` batches verify; tags of a `revoked` batch are counterfeit. */
export type BatchStatus = (typeof batchStatuses)[number]

/** Tags that were personalised under one set of keys. */
export interface TagBatch {
  id: string
  /** Version of the file keys. A chip that is personalised again needs a higher one. */
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
  /** Tenant hosts or static URL values that, besides the id, point at this batch. */
  hints?: readonly string[]
  meta: AesKeyRef
  fileMaster: AesKeyRef
}

export interface TagKeyProvider {
  /** Returns every batch once, the likeliest first. A hint is unauthenticated: it orders and never excludes. */
  candidates: (hint?: string) => Iterable<TagBatch>
  /** Returns false when there is no batch: the verifier is not configured (503). */
  ready: () => boolean
  /** Reports a genuine tap of this batch. */
  hit?: (batch: TagBatch) => void
}

export type KeyRing = TagKeyProvider & {
  hit: (batch: TagBatch) => void
  /** Changes a status from the next tap on. Returns false when no batch has the id. */
  setStatus: (id: string, status: BatchStatus) => boolean
  batches: () => readonly TagBatch[]
}

/** Creates a ring that tries the batch of the last hit first. Throws a `RangeError` when two batches have one id. */
export function createKeyRing(batches: readonly TagBatch[]): KeyRing {
  if (new Set(batches.map(({ id }) => id)).size < batches.length) throw new RangeError('Two tag batches have one id.')
  // Replaced as a whole on every change, so that a search in progress keeps its order.
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
  const isHinted = ({ id, hints = [] }: TagBatch) => id === hint || hints.includes(hint)
  for (const batch of order) if (isHinted(batch)) yield batch
  for (const batch of order) if (!isHinted(batch)) yield batch
}
