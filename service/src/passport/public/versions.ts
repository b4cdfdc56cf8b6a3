/**
 * Versions of a passport by date (EN 18222, EN 18221): the metadata hashes in the events of the chain. Each names the transaction that set it,
 * so that anyone can prove which text was valid on a day.
 */
import type { Hex, LifecycleState } from '@touchstone/verdict'
import { parseDay, parseInstant } from '../../domain/text.ts'

/** An event of an item's history; only those with a metadata hash make a version. `timestamp` is the block's, in unix seconds. */
export type MetadataEvent = {
  readonly metadataHash?: Hex
  readonly blockNumber: bigint
  readonly transactionHash: Hex
  readonly logIndex: number
  readonly timestamp: bigint
}

/** `event` set the hash; `until` is when the next one did, in unix seconds, null for the present version. */
export type Version = {
  readonly metadataHash: Hex
  readonly event: MetadataEvent
  readonly until: number | null
}

/** Lists the versions, the oldest first. Null when the time of one is not known, so that none can be chosen by date. */
export function versionsOf(events: readonly MetadataEvent[]): readonly Version[] | null {
  const set = events.flatMap((event) =>
    event.metadataHash === undefined ? [] : [{ metadataHash: event.metadataHash, event }],
  )
  if (set.some(({ event }) => event.timestamp === 0n)) return null
  return set.map(({ metadataHash, event }, index) => {
    const next = set[index + 1]
    return { metadataHash, event, until: next === undefined ? null : Number(next.event.timestamp) }
  })
}

/** Returns the version that was valid at a moment in unix seconds; null before the first. */
export function versionAt(versions: readonly Version[], seconds: number): Version | null {
  return versions.findLast(({ event }) => Number(event.timestamp) <= seconds) ?? null
}

/** Returns the state of an item at a moment in unix seconds. It is null before the mint, and when the time of a change is not known. */
export function stateAt(
  events: readonly { readonly toState?: LifecycleState; readonly timestamp: bigint }[],
  seconds: number,
): LifecycleState | null {
  const changes = events.filter(({ toState }) => toState !== undefined)
  if (changes.some(({ timestamp }) => timestamp === 0n)) return null
  return changes.findLast(({ timestamp }) => Number(timestamp) <= seconds)?.toState ?? null
}

/** Parses a moment of UTC: a date and time with `Z`, or a day, which stands for its first second. Returns unix seconds or null. */
export function parseMoment(text: string): number | null {
  const moment = text.endsWith('Z') ? parseInstant(text) : parseDay(text)
  return moment === null ? null : Math.floor(Date.parse(moment) / 1000)
}
