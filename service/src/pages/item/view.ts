/** The data of an item's page, from the chain, the store and the tap (spec §4.5, §4.6). */
import type { Hex, LifecycleState, Untrusted, Verdict } from '@touchstone/verdict'
import type { ProductDetails } from '../../domain/product-details.ts'
import type { Wallet } from '../certificate/wallets.ts'
import type { Texts } from '../languages.ts'
import type { PageTheme } from '../theme.ts'
import type { Opened } from '../verdict/card.ts'
import type { ReportKind } from '../verdict/situation.ts'
import type { ItemKey } from '../../domain/gs1/serial.ts'

export type TimelineKind = keyof Texts['events']

/** `at` in unix seconds; `transaction` is 32 bytes of hex. */
export type TimelineEntry = {
  readonly kind: TimelineKind
  /** The new state of `stateChanged`. */
  readonly state?: Exclude<LifecycleState, 'NONE'> | undefined
  readonly at: number | null
  readonly block: number
  readonly transaction: string
}

/** The outcome of the tap in the address. Only `tapped` means that the chip is present. */
export type TapView =
  | ({ readonly kind: 'tapped'; readonly windowSeconds: number } & Opened)
  | { readonly kind: 'untapped' | 'incomplete' | 'replayed' }

/** The calls about loss and theft that an owner's wallet may send. `lost`, `stolen` and `lift` are call data; null: the record does not allow it. */
export type OwnerReports = {
  readonly contract: Hex
  readonly lost: Hex | null
  readonly stolen: Hex | null
  readonly lift: Hex | null
  /** A report of the maker stands, which no owner can lift. */
  readonly isMakers: boolean
}

export type ItemView = {
  readonly tap: TapView
  readonly verdict: Verdict
  /** Supplier text, cleaned; empty unless it matched the hash on the chain. */
  readonly product: Omit<Untrusted, '_warning'>
  readonly metadata: 'match' | 'mismatch' | 'none' | 'unread'
  /** Product details that the metadata names, cleaned; null: none. */
  readonly details: ProductDetails | null
  /** The brand in the operator's list; null: none. */
  readonly theme: PageTheme | null
  /** ISO 3166-1 code of the country that `product.origin` names. */
  readonly country?: string | undefined
  readonly item: ItemKey | null
  /** Lets the page report that the item looks different; null: it cannot. */
  readonly reportTicket: string | null
  /** Lets the page ask for a signed certificate; null: it cannot. */
  readonly certificateTicket: string | null
  /** Wallets for which the certificate also comes as a pass. */
  readonly wallets: readonly Wallet[]
  /** Lets a wallet claim the item from the page; null: the page only says how. */
  readonly claimTicket: string | null
  /**
   * Lets the owner's wallet offer the item from the page; null: the page only says how. The ticket is there after a
   * fresh tap.
   */
  readonly transfers: { readonly ticket: string | null } | null
  /** Passkeys may sign in place of a wallet. */
  readonly passkeys: boolean
  /** Lets the owner's wallet report from the page, and lift a report; null: the page only says how. */
  readonly ownerReports: OwnerReports | null
  /** Reasons of a flag; empty when the item is not flagged. */
  readonly reports: readonly ReportKind[]
  /** The tag reports an opened seal. */
  readonly tampered: boolean
  /** `unknown`: whether a flagged item has an owner could not be read. */
  readonly owner: 'claimed' | 'unclaimed' | 'closed' | 'unknown'
  /** Unix seconds by the service's clock. */
  readonly checkedAt: number
  /** The item's page as a full URL and as a path, the keyless verdict as both. */
  readonly link: string
  readonly path: string
  readonly verdictLink: string
  readonly verdictPath: string
  /** Oldest first; null when the history is not certain. */
  readonly history: readonly TimelineEntry[] | null
  /** The changes of state alone, where the history is not certain; null: they are not either, or do not matter. */
  readonly changes: readonly TimelineEntry[] | null
  /** Unix seconds of the record's last change. */
  readonly changedAt: number
  /** The passport as JSON, on a tapped page. */
  readonly passport: string | null
  /** Public product information as JSON-LD, on a page without a tap; null: none. */
  readonly information: string | null
  /** The operator signs passports on request. */
  readonly signed: boolean
  /** The provider that the page's script may ask; null: none. */
  readonly publicRpcUrl: string | null
  /** A block explorer, such as `https://sepolia.basescan.org`; null: none. */
  readonly explorerUrl: string | null
}
