/**
 * The indexed events of one token as steps of its history (spec §3, §4.3 `get_lifecycle_history`). No address leaves here:
 * each becomes the commitment of `owner_commitment`, and the zero address nothing.
 */
import { lifecycleStates, ownerCommitment, type Hex, type LifecycleState } from '@touchstone/verdict'
import { kinds, type IndexedEvent } from '../store/index-events.ts'

/** What an event says; which members there are follows from its type. Hashes are 32 bytes, never text. */
export type EventFacts = {
  readonly type:
    | 'AssetMinted'
    | 'TagBound'
    | 'StateChanged'
    | 'AssetResold'
    | 'FlagsChanged'
    | 'MetadataHashSet'
    | 'TransferInitiated'
    | 'TransferCancelled'
  readonly fromState?: LifecycleState
  readonly toState?: LifecycleState
  /** The whole byte after the change. */
  readonly flags?: number
  /** The account whose authority was used. */
  readonly actorCommitment?: Hex
  readonly fromCommitment?: Hex
  readonly toCommitment?: Hex
  readonly metadataHash?: Hex
  readonly tagHash?: Hex
}

export type CommitTo = (address: Hex) => Hex | undefined

/** The commitment to an address under one token; undefined for the zero address. */
export function committing(chainId: number, contract: Hex, tokenId: bigint): CommitTo {
  return (owner) => ownerCommitment({ chainId, contract, tokenId, owner }) ?? undefined
}

/** Null for an event that says nothing of its own: a move of the token, which another event explains. */
export function factsOf(event: IndexedEvent, commit: CommitTo): EventFacts | null {
  const commitment = (address: Hex | null) => (address === null ? undefined : commit(address))
  const [actor, from, to] = [commitment(event.actor), commitment(event.from), commitment(event.to)]
  const who = {
    ...(actor && { actorCommitment: actor }),
    ...(from && { fromCommitment: from }),
    ...(to && { toCommitment: to }),
  }
  switch (event.kind) {
    case kinds.minted:
      return { type: 'AssetMinted', ...who, ...(event.data && { metadataHash: event.data }) }
    case kinds.tagBound:
      return { type: 'TagBound', ...(event.data && { tagHash: event.data }) }
    case kinds.stateChanged:
      return { type: 'StateChanged', fromState: stateOf(event.fromState), toState: stateOf(event.toState), ...who }
    case kinds.flagsChanged:
      return { type: 'FlagsChanged', flags: event.flags ?? 0, ...who }
    case kinds.metadataHashSet:
      return { type: 'MetadataHashSet', ...(event.data && { metadataHash: event.data }) }
    case kinds.resold:
      return { type: 'AssetResold', ...who }
    case kinds.transferInitiated:
      return { type: 'TransferInitiated', ...who }
    case kinds.transferCancelled:
      return { type: 'TransferCancelled', ...who }
    default:
      return null
  }
}

function stateOf(code: number | null): LifecycleState {
  const state = lifecycleStates[code ?? -1]
  if (state === undefined) throw new RangeError('There is no such lifecycle state.')
  return state
}
