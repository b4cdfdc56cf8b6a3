/**
 * The registry's events about one token as steps of its history (spec §3, §4.3 `get_lifecycle_history`). No address leaves here:
 * each becomes the commitment of `owner_commitment`, and the zero address nothing.
 */
import { lifecycleStates, ownerCommitment, type Hex, type LifecycleState } from '@touchstone/verdict'
import { decodeEventLog, parseAbi, toEventSelector } from 'viem'
import type { ChainLog } from '../chain/source.ts'

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

/** Null for an event that is about no record. It throws for a known event of another shape, which nobody can vouch for. */
export function factsOf({ topics, data }: ChainLog, commit: CommitTo): EventFacts | null {
  const event = decoded(topics, data)
  if (event === null) return null
  switch (event.eventName) {
    case 'AssetMinted':
      return { type: 'AssetMinted', ...who({ to: commit(event.args.to) }), metadataHash: event.args.metadata }
    case 'TagBound':
      return { type: 'TagBound', tagHash: event.args.tagHash }
    case 'StateChanged': {
      const { from, to, actor } = event.args
      return { type: 'StateChanged', fromState: stateOf(from), toState: stateOf(to), ...who({ actor: commit(actor) }) }
    }
    case 'FlagsChanged':
      return { type: 'FlagsChanged', flags: event.args.flags, ...who({ actor: commit(event.args.actor) }) }
    case 'MetadataHashSet':
      return { type: 'MetadataHashSet', metadataHash: event.args.metadataHash }
    case 'AssetResold':
    case 'TransferInitiated':
      return { type: event.eventName, ...who({ from: commit(event.args.from), to: commit(event.args.to) }) }
    case 'TransferCancelled':
      return { type: 'TransferCancelled', ...who({ actor: commit(event.args.actor) }) }
  }
}

/** The events of a record that name its token in their second topic; other contracts of this kind have them too. */
const recordEvents = parseAbi([
  'event AssetMinted(uint256 indexed tokenId, address indexed to, bytes32 metadata)',
  'event TagBound(uint256 indexed tokenId, bytes32 indexed tagHash)',
  'event StateChanged(uint256 indexed tokenId, uint8 from, uint8 to, address actor)',
  'event AssetResold(uint256 indexed tokenId, address indexed from, address indexed to)',
  'event FlagsChanged(uint256 indexed tokenId, uint8 flags, address actor, bytes32 reasonHash)',
  'event MetadataHashSet(uint256 indexed tokenId, bytes32 metadataHash)',
  'event TransferInitiated(uint256 indexed tokenId, address indexed from, address indexed to, uint64 expiry, uint32 nonce, bytes32 messageHash)',
  'event TransferCancelled(uint256 indexed tokenId, uint32 nonce, address actor)',
])
const selectors = new Set<string>(recordEvents.map((event) => toEventSelector(event)))

function decoded(topics: readonly Hex[], data: Hex) {
  const [selector, ...rest] = topics
  if (selector === undefined || !selectors.has(selector)) return null
  return decodeEventLog({ abi: recordEvents, topics: [selector, ...rest], data })
}

function who({ actor, from, to }: { actor?: Hex | undefined; from?: Hex | undefined; to?: Hex | undefined }) {
  return {
    ...(actor && { actorCommitment: actor }),
    ...(from && { fromCommitment: from }),
    ...(to && { toCommitment: to }),
  }
}

function stateOf(code: number): LifecycleState {
  const state = lifecycleStates[code]
  if (state === undefined) throw new RangeError('There is no such lifecycle state.')
  return state
}
