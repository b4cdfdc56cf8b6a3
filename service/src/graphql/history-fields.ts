/** The fields of HistoryEvent: one event of the registry, from the index. */
import { assetFlags, lifecycleStates, type Hex } from '@touchstone/verdict'
import { eventKinds } from '../chain/events.ts'
import type { HistoryRow } from '../store/product-history.ts'
import { ownerOf } from './owner.ts'
import type { ResolverMap } from './resolvers.ts'

const typeOfKind: Readonly<Record<number, string>> = {
  [eventKinds.AssetMinted]: 'MINTED',
  [eventKinds.TagBound]: 'TAG_BOUND',
  [eventKinds.StateChanged]: 'STATE_CHANGED',
  [eventKinds.FlagsChanged]: 'FLAGS_CHANGED',
  [eventKinds.MetadataHashSet]: 'METADATA_SET',
  [eventKinds.Transfer]: 'OWNER_CHANGED',
  [eventKinds.TransferInitiated]: 'TRANSFER_INITIATED',
  [eventKinds.TransferCancelled]: 'TRANSFER_CANCELLED',
  [eventKinds.AssetResold]: 'RESOLD',
}

export const historyFields: ResolverMap = {
  HistoryEvent: {
    type: ({ kind }: HistoryRow) => typeOfKind[kind],
    blockNumber: ({ blockNumber }: HistoryRow) => Number(blockNumber),
    fromState: ({ fromState }: HistoryRow) => (fromState === null ? null : lifecycleStates[fromState]),
    toState: ({ toState }: HistoryRow) => (toState === null ? null : lifecycleStates[toState]),
    reports: ({ flags }: HistoryRow) => (flags === null ? null : reportsOf(flags)),
    actor: ({ actor }: HistoryRow) => person(actor),
    from: ({ from }: HistoryRow) => person(from),
    to: ({ to }: HistoryRow) => person(to),
    hash: ({ data }: HistoryRow) => data,
  },
}

function person(address: Hex | null) {
  return address === null ? null : ownerOf(address)
}

function reportsOf(flags: number): string[] {
  return Object.entries(assetFlags).flatMap(([name, bit]) => ((flags & bit) === 0 ? [] : [name]))
}
