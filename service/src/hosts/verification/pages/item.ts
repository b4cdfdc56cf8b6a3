/**
 * The data of an item's page from the chain, the store and the tap (spec §4.5, §4.6). Only the verdict is required: the page leaves out
 * whatever the database or the history cannot supply.
 */
import {
  type AssetRecord,
  type Hex,
  metadataHashOf,
  ownerCommitment,
  type Untrusted,
  untrustedWarning,
  type Verdict,
  isSealOpened,
} from '@touchstone/verdict'
import type { Histories, History, HistoryEvent, Minters, StateChanges } from '../../../assets/history.ts'
import type { VerdictAnswer } from '../../../assets/verdicts.ts'
import { parseDetails, type ProductDetails } from '../../../domain/product-details.ts'
import { withDeadline } from '../../../lib/async/deadline.ts'
import type { ItemView, TapView, TimelineEntry, TimelineKind } from '../../../pages/item/view.ts'
import { type BrandTheme, themeOf } from '../../../pages/brands/theme.ts'
import { signersAt, type Wallets } from '../../../pages/certificate/wallets.ts'
import { chainId } from '../../../domain/chain.ts'
import { reportsOf } from '../../../domain/registry-event.ts'
import type { Opened } from '../../../pages/verdict/card.ts'
import type { ReportKind } from '../../../pages/verdict/situation.ts'
import { countryOf } from '../../../passport/country.ts'
import { isCertifiable } from '../../../passport/certificate.ts'
import { didOf } from '../../../passport/did-document.ts'
import type { ItemKey } from '../../../domain/gs1/serial.ts'
import { linksOf, pagePath } from '../../../passport/links.ts'
import { passportMetadata } from '../../../passport/metadata.ts'
import type { Issuer } from '../../../passport/signing/issuer.ts'
import { productDocument } from '../../../passport/public/document.ts'
import type { TapTickets } from '../../../tap/tap-ticket.ts'
import type { TappedTag } from '../../../tap/verify-tap.ts'
import { readProduct, type ProductSite } from '../product/records.ts'
import { ownerReportsOf } from './owner-reports.ts'
import { type PictureSite, withPictures } from './pictures.ts'
import { passportFor, type PassportSite, type ResolvedTap } from '../passport/document.ts'

type PageOptions = {
  /** Seconds in which a tap may be repeated. */
  readonly windowSeconds: number
  /** A provider for every visitor's browser; null: none. */
  readonly publicRpcUrl: string | null
  /** A block explorer for transactions, without a slash at the end; null: none. */
  readonly explorerUrl: string | null
  /** The steps of ownership that visitors may take. */
  readonly ownership: ReadonlySet<'claim' | 'transfer' | 'report' | 'passkey'>
  readonly themes: readonly BrandTheme[]
  /** Tokens on the start page. */
  readonly examples: readonly bigint[]
}

export type ItemSite = PassportSite &
  Omit<ProductSite, 'reader'> &
  Pick<PictureSite, 'pictureForms'> & {
    readonly reader: {
      readonly read: (tokenId: bigint) => Promise<{ readonly asset: { readonly record: AssetRecord } }>
    }
    readonly history: Histories
    readonly stateChanges: StateChanges
    readonly minters: Minters
    readonly issuer: Pick<Issuer, 'signerFor'>
    /** Undefined where no tap can be verified. */
    readonly reportTickets: TapTickets | undefined
    /** Undefined where no tap can be verified. */
    readonly certificateTickets: TapTickets | undefined
    /** Undefined where no certificate comes as a pass. */
    readonly wallets?: Wallets | undefined
    /** Undefined where visitors cannot claim items. */
    readonly pageClaims: { readonly tickets: Pick<TapTickets, 'issue'> } | undefined
    /** Undefined where visitors cannot pass items on. */
    readonly pageTransfers: { readonly tickets: Pick<TapTickets, 'issue'> } | undefined
    readonly pages: PageOptions
  }

/** The verdict with bits, unix time and metadata hash of its record, all of its block. No part of the page is of another. */
export type Found = Pick<VerdictAnswer, 'verdict' | 'flags' | 'timestamp' | 'metadataHash'> & {
  readonly item: ItemKey | null
  readonly tap: Exclude<TapView, { kind: 'tapped' }> | ResolvedTap
}

export async function itemViewOf(site: ItemSite, found: Found): Promise<ItemView> {
  const { flags, timestamp, item, tap } = found
  const { baseUrl, pages, now = Date.now } = site
  const tokenId = BigInt(found.verdict.token_id)
  const subject = item === null ? ({ kind: 'token', tokenId } as const) : ({ kind: 'item', ...item } as const)
  const reading = readingOf(found)
  const product = { ...site, reader: { read: () => Promise.resolve(reading) } }
  const [owner, stored, { history, changes }, passport, information] = await Promise.all([
    ownerOf(site, found),
    storedText(site, found.metadataHash),
    pastOf(site, found),
    tap.kind === 'resolved' ? orNull(passportFor(site, tap, item)) : null,
    tap.kind === 'resolved' ? null : orNull(readProduct(product, subject)),
  ])
  const untrusted = found.verdict.untrusted ?? (stored.status === 'match' ? stored.untrusted : undefined)
  const verdict = { ...found.verdict, ...(untrusted && { untrusted }) }
  const { page, verdict: verdictLink } = linksOf(baseUrl, { tokenId, item })
  const { _warning, ...text } = untrusted ?? { _warning: '' }
  const { forms } = site.issuer.signerFor(didOf(baseUrl))
  const signers = signersAt(site.wallets, now())
  const ticketOf = (tickets: Pick<TapTickets, 'issue'> | undefined) =>
    tap.kind === 'resolved' ? (tickets?.issue({ tokenId, ...tap.tag }) ?? null) : null
  /** A link that was sent on shows the item to others, who must not own it by that. */
  const ownTicketOf = (tickets: Pick<TapTickets, 'issue'> | undefined) =>
    tap.kind === 'resolved' && tap.tag.isFirstClient ? ticketOf(tickets) : null
  return {
    tap:
      tap.kind === 'resolved' ? { kind: 'tapped', windowSeconds: pages.windowSeconds, ...openedOf(tap.tag, now) } : tap,
    verdict,
    product: text,
    details: stored.status === 'match' ? await detailsOf(site, stored.details) : null,
    theme:
      history?.available === true
        ? brandOf(site, { verdict, item }, history.events)
        : history?.reason === 'INDEX_UNAVAILABLE'
          ? await brandOfToken(site, { verdict, item }) // the history may be too long
          : null,
    metadata: untrusted ? 'match' : stored.status,
    country: text.origin === undefined ? undefined : countryOf(text.origin)?.countryCode,
    item,
    certificateTicket:
      forms.includes('application/vc+jwt') && isCertifiable(verdict, flags) ? ticketOf(site.certificateTickets) : null,
    wallets: (['apple', 'google'] as const).filter((wallet) => signers[wallet] !== null),
    claimTicket:
      verdict.state === 'ACTIVATED' && !verdict.flagged && !isSealOpened({ flags })
        ? ownTicketOf(site.pageClaims?.tickets)
        : null,
    transfers: site.pageTransfers
      ? { ticket: verdict.state === 'CLAIMED' ? ownTicketOf(site.pageTransfers.tickets) : null }
      : null,
    passkeys: pages.ownership.has('passkey'),
    ownerReports:
      pages.ownership.has('report') && owner === 'claimed'
        ? ownerReportsOf(verdict.chainRef.contract as Hex, tokenId, flags)
        : null,
    reportTicket: ticketOf(site.reportTickets),
    reports: reportedFlags(verdict, flags),
    tampered: isSealOpened({ flags }),
    owner,
    checkedAt: Math.floor(now() / 1000),
    link: page,
    path: pagePath(tokenId, item),
    verdictLink,
    verdictPath: `/api/asset/${tokenId}`,
    history: history?.available === true ? timelineOf(history.events) : null,
    changes: changes === null ? null : timelineOf(changes),
    changedAt: timestamp,
    passport: passport === null ? null : JSON.stringify(passport),
    information: information === null ? null : JSON.stringify(productDocument({ baseUrl, subject, ...information })),
    signed: forms.length > 0,
    publicRpcUrl: pages.publicRpcUrl,
    explorerUrl: pages.explorerUrl,
  }
}

/** Says when the link of a tap was opened before. */
export function openedOf(
  { tapCounter, fresh, ageSeconds }: Pick<TappedTag, 'tapCounter' | 'fresh' | 'ageSeconds'>,
  now: () => number = Date.now,
): Opened {
  return { counter: tapCounter, openedAt: fresh ? null : Math.floor(now() / 1000 - ageSeconds) }
}

type Branded = Pick<Found, 'verdict' | 'item'>

/** Returns the brand of the account that minted the token; null while the index cannot be read. */
export async function brandOfToken(
  { pages: { themes }, minters }: Pick<ItemSite, 'minters'> & { readonly pages: Pick<PageOptions, 'themes'> },
  { verdict, item }: Branded,
): Promise<BrandTheme | null> {
  if (themes.length === 0) return null
  const tokenId = BigInt(verdict.token_id)
  const accounts = themes.flatMap(({ issuers }) => issuers)
  const minter = (await orNull(minters([tokenId], accounts)))?.get(tokenId) ?? null
  return minter === null ? null : themeOf(themes, themed({ verdict, item }), (account) => account === minter)
}

function themed({ verdict, item }: Branded) {
  return { gtin: item?.gtin ?? null, brand: verdict.untrusted?.brand ?? null }
}

/** Returns the same from a history, by the commitment of the account. */
function brandOf(
  { pages: { themes } }: { readonly pages: Pick<PageOptions, 'themes'> },
  { verdict, item }: Branded,
  events: readonly HistoryEvent[],
) {
  const tokenId = BigInt(verdict.token_id)
  const mint = events.find(({ type, toState }) => type === 'StateChanged' && toState === 'MINTED')?.actorCommitment
  if (mint === undefined) return null
  const { contract } = verdict.chainRef
  return themeOf(
    themes,
    themed({ verdict, item }),
    (owner) => ownerCommitment({ chainId, contract, tokenId, owner }) === mint,
  )
}

type StoredText =
  | { readonly status: 'match'; readonly untrusted: Untrusted; readonly details: Hex | null }
  | { readonly status: 'mismatch' | 'none' | 'unread' }

/** Reads the text of a metadata hash. A verdict lacks it for a while after the store could not be read. */
async function storedText({ metadata }: ItemSite, hash: Hex | null): Promise<StoredText> {
  const text = hash === null ? undefined : await orNull(metadata.stored(hash))
  if (text === null) return { status: 'unread' }
  const found = passportMetadata(hash, text)
  if (found.status !== 'match') return { status: found.status }
  const { value, details = null } = found
  return { status: 'match', untrusted: { ...value, _warning: untrustedWarning }, details }
}

/** Reads the product details that the metadata names; null without them, or when the store does not answer. */
async function detailsOf(site: ItemSite, hash: Hex | null): Promise<ProductDetails | null> {
  const body = hash === null ? null : await orNull(site.metadata.stored(hash))
  const isStored = body !== null && body !== undefined && metadataHashOf(body) === hash
  const details = isStored ? parseDetails(body) : null
  return details && (await withPictures(site, details))
}

export function reportedFlags({ flagged }: Verdict, flags: number): readonly ReportKind[] {
  if (!flagged) return []
  const kinds = reportsOf(flags)
  const isConfirmed = kinds.includes('STOLEN_CONFIRMED')
  const reports = kinds.filter((kind) => kind !== 'STOLEN' || !isConfirmed)
  return reports.length > 0 ? reports : ['REPORTED']
}

/** Returns the verdict as a reading of the record, for what is read up to its block. */
function readingOf({ verdict, flags, timestamp, metadataHash }: Found) {
  const { state_code: state, chainRef } = verdict
  const block = { number: BigInt(chainRef.block_number), hash: chainRef.block_hash as Hex }
  return { asset: { record: { state, flags, timestamp: BigInt(timestamp) }, metadataHash }, block }
}

type Past = { readonly history: History | null; readonly changes: readonly HistoryEvent[] | null }

/** Reads the history. Where it is not available, the changes of state are read alone if the situation of a tapped item depends on them. */
async function pastOf(site: ItemSite, found: Found): Promise<Past> {
  const tokenId = BigInt(found.verdict.token_id)
  const reading = readingOf(found)
  const history = await orNull(site.history(tokenId, reading))
  const { state } = found.verdict
  const isNeeded = found.tap.kind === 'resolved' && (state === 'ACTIVATED' || state === 'CLAIMED')
  if (history === null || history.available || !isNeeded) return { history, changes: null }
  return { history, changes: await orNull(site.stateChanges(tokenId, reading)) }
}

/**
 * Returns whether somebody owns the item. A flagged item keeps its owner: its record holds the state before the flag in the low reserved
 * byte, which no verdict has. Another reading counts only while it has the same record: every change of a record also sets its time.
 */
async function ownerOf({ reader }: ItemSite, { verdict, flags, timestamp }: Found): Promise<ItemView['owner']> {
  const { state, state_code, token_id } = verdict
  if (state === 'RECYCLED') return 'closed'
  if (state !== 'FLAGGED') return state === 'CLAIMED' ? 'claimed' : 'unclaimed'
  const { record } = (await orNull(reader.read(BigInt(token_id))))?.asset ?? {}
  const isSame = record?.state === state_code && record.flags === flags && record.timestamp === BigInt(timestamp)
  if (record === undefined || !isSame) return 'unknown'
  return (record.reserved & 0xff) === 4 ? 'claimed' : 'unclaimed'
}

/** Returns null when optional data fails or takes longer than two seconds. Its component has logged the failure. */
function orNull<T>(wanted: Promise<T>): Promise<T | null> {
  return withDeadline(
    wanted.catch(() => null),
    2_000,
    { onTimeout: () => null },
  )
}

/** Returns the history for people: one line for each change, oldest first, without the accounts (spec §3). */
export function timelineOf(events: readonly HistoryEvent[]): TimelineEntry[] {
  const changes = changesByTransaction(events)
  return events
    .filter((event) => !isEcho(event, changes.get(event.transactionHash) ?? new Set()))
    .map((event) => ({
      ...lineOf(event),
      at: event.timestamp === 0n ? null : Number(event.timestamp),
      block: Number(event.blockNumber),
      transaction: event.transactionHash,
    }))
}

/** The changes that events of one transaction record and others of it repeat. */
type Change = 'minted' | 'bound' | 'flagged'

/** Looks at each event once. A token may have a thousand, all of them of one transaction. */
function changesByTransaction(events: readonly HistoryEvent[]): ReadonlyMap<Hex, ReadonlySet<Change>> {
  const changes = new Map<Hex, Set<Change>>()
  for (const event of events) {
    const change = changeOf(event)
    if (change === null) continue
    const { transactionHash } = event
    changes.set(transactionHash, (changes.get(transactionHash) ?? new Set()).add(change))
  }
  return changes
}

function changeOf({ type, fromState, toState }: HistoryEvent): Change | null {
  if (type === 'AssetMinted') return 'minted'
  if (type === 'TagBound') return 'bound'
  return type === 'StateChanged' && (toState === 'FLAGGED' || fromState === 'FLAGGED') ? 'flagged' : null
}

/** Returns whether another event of the transaction records the same change. A mint is also a change of state, a flag one of bits. */
function isEcho({ type, toState }: HistoryEvent, changes: ReadonlySet<Change>): boolean {
  if (type === 'FlagsChanged') return changes.has('flagged')
  if (type !== 'StateChanged') return false
  return (toState === 'MINTED' && changes.has('minted')) || (toState === 'BOUND' && changes.has('bound'))
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
