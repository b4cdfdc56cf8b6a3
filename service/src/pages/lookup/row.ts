/** One line of a list with what the register says of it. Names are the maker's words: hostile text. */
import type { LifecycleState } from '@touchstone/verdict'
import type { ReportKind } from '../verdict/situation.ts'

export type LookupItem = {
  readonly tokenId: string
  readonly gtin: string | undefined
  readonly serial: string | undefined
  readonly path: string
  readonly state: Exclude<LifecycleState, 'NONE'>
  readonly reports: readonly ReportKind[]
  /** The record says that the seal was opened. */
  readonly tampered: boolean
  readonly name: string | undefined
}

export type LookupRow = { readonly line: number; readonly typed: string } & (
  | { readonly kind: 'found'; readonly item: LookupItem }
  | { readonly kind: 'several'; readonly items: readonly LookupItem[] }
  | { readonly kind: 'class'; readonly path: string }
  | { readonly kind: 'none' | 'foreign' | 'unreadable' }
)
