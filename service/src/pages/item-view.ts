/** What the page of an item shows, gathered before any markup is made (spec §2.1–§2.3, §4.6). No tap parameter, UID or owner address is part of it. */
import type { LifecycleState, Untrusted, Verdict } from '@touchstone/verdict'
import type { Html } from './html.ts'
import type { ReportKind } from './result.ts'

/** What became of the tap that the page was opened with. Only `tapped` says that the chip is present. */
export type TapView =
  | { readonly kind: 'tapped'; readonly counter: number; readonly windowSeconds: number }
  | { readonly kind: 'untapped' | 'incomplete' | 'replayed' }

/** `at` in unix seconds; `transaction` is 32 bytes of hex. */
export type TimelineEntry = {
  readonly kind: TimelineKind
  /** Of `stateChanged`: where to. */
  readonly state?: Exclude<LifecycleState, 'NONE'> | undefined
  readonly at: number | null
  readonly block: number
  readonly transaction: string
}

export type TimelineKind =
  | 'minted'
  | 'bound'
  | 'activated'
  | 'claimed'
  | 'flagged'
  | 'unflagged'
  | 'flagsChanged'
  | 'recycled'
  | 'resold'
  | 'metadataSet'
  | 'transferStarted'
  | 'transferCancelled'
  | 'transferred'
  | 'stateChanged'
  | 'other'
