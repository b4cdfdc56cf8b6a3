/** The timeline of a token for people: one line for each change, without the accounts (spec §3). */
import type { HistoryEvent } from '../../../assets/history.ts'
import type { TimelineEntry, TimelineKind } from '../../../pages/item-view.ts'

/** Lists the changes oldest first, in the order of the events. */
export function timelineOf(events: readonly HistoryEvent[]): TimelineEntry[] {
  return events
    .filter((event, index) => !isEcho(event, events, index))
    .map((event) => ({
      ...lineOf(event),
      at: event.timestamp === 0n ? null : Number(event.timestamp),
      block: Number(event.blockNumber),
      transaction: event.transactionHash,
    }))
}

/** Returns whether another event of the transaction records the same change: a mint is also a change of state, a flag one of bits. */
function isEcho(event: HistoryEvent, events: readonly HistoryEvent[], index: number): boolean {
  const others = events.filter((other, at) => at !== index && other.transactionHash === event.transactionHash)
  const has = (test: (other: HistoryEvent) => boolean) => others.some(test)
  if (event.type === 'StateChanged')
    return has(
      ({ type }) =>
        (type === 'AssetMinted' && event.toState === 'MINTED') || (type === 'TagBound' && event.toState === 'BOUND'),
    )
  const isState = ({ type, toState, fromState }: HistoryEvent) =>
    type === 'StateChanged' && (toState === 'FLAGGED' || fromState === 'FLAGGED')
  return event.type === 'FlagsChanged' && has(isState)
}

type Line = Pick<TimelineEntry, 'kind' | 'state'>

function lineOf({ type, fromState, toState }: HistoryEvent): Line {
  if (type !== 'StateChanged') return { kind: kinds[type] }
  if (fromState === 'FLAGGED' && toState !== 'RECYCLED') return { kind: 'unflagged' }
  if (fromState === 'CLAIMED' && toState === 'ACTIVATED') return { kind: 'resold' }
  const kind = toState === undefined ? undefined : kindOfState[toState]
  if (kind !== undefined) return { kind }
  return toState === undefined || toState === 'NONE' ? { kind: 'other' } : { kind: 'stateChanged', state: toState }
}

const kinds: Readonly<Record<Exclude<HistoryEvent['type'], 'StateChanged'>, TimelineKind>> = {
  AssetMinted: 'minted',
  TagBound: 'bound',
  AssetResold: 'transferred',
  FlagsChanged: 'flagsChanged',
  MetadataHashSet: 'metadataSet',
  TransferInitiated: 'transferStarted',
  TransferCancelled: 'transferCancelled',
}

const kindOfState: Readonly<Partial<Record<NonNullable<HistoryEvent['toState']>, TimelineKind>>> = {
  BOUND: 'bound',
  ACTIVATED: 'activated',
  CLAIMED: 'claimed',
  FLAGGED: 'flagged',
  RECYCLED: 'recycled',
}
