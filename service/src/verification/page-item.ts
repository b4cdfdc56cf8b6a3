/**
 * What the page of an item shows, gathered from the chain, the store and the tap (spec §4.5, §4.6). Only the verdict must be there: without
 * the database or the history the page says less, never something else.
 */
import { assetFlags, type AssetRecord, type Hex, type Verdict } from '@touchstone/verdict'
import type { Histories } from '../asset/history.ts'
import { countryOf } from '../passport/country.ts'
import { itemPath, type ItemKey } from '../passport/digital-link.ts'
import { linksOf } from '../passport/links.ts'
import { passportMetadata } from '../passport/metadata.ts'
import { qrSvg } from '../passport/qr.ts'
import { textsIn, type PageContext } from '../pages/context.ts'
import { trustedHtml } from '../pages/html.ts'
import type { ItemView, TapView } from '../pages/item-view.ts'
import type { ReportKind } from '../pages/result.ts'
import { passportFor, type PassportSite, type Resolved } from './passport-document.ts'
import { timelineOf } from './page-timeline.ts'

export type PageOptions = {
  /** How long a tap may be repeated, in seconds. */
  readonly windowSeconds: number
  /** A provider that every visitor's browser may ask; null: none is offered. */
  readonly publicRpcUrl: string | null
  /** A block explorer for transactions, without a slash at the end; null: none. */
  readonly explorerUrl: string | null
  /** Tokens that the start page shows. */
  readonly examples: readonly bigint[]
}

export type ItemSite = PassportSite & {
  /** The record with its flag bits, which a verdict does not tell apart. */
  readonly reader: {
    readonly read: (
      tokenId: bigint,
    ) => Promise<{ readonly asset: { readonly record: AssetRecord; readonly metadataHash: Hex | null } }>
  }
  readonly history: Histories
  readonly pages: PageOptions
}

export type Found = {
  readonly verdict: Verdict
  readonly item: ItemKey | null
  readonly tap: Exclude<TapView, { kind: 'tapped' }> | Resolved
}

export async function itemViewOf(
  site: ItemSite,
  context: PageContext,
  { verdict, item, tap }: Found,
): Promise<ItemView> {
  const { baseUrl, pages, now = Date.now } = site
  const tokenId = BigInt(verdict.token_id)
  const [asset, history, passport] = await Promise.all([
    orNull(site.reader.read(tokenId).then((reading) => reading.asset)),
    orNull(site.history(tokenId)),
    tap.kind === 'resolved' ? orNull(passportFor(site, tap, item)) : null,
  ])
  const { page, verdict: verdictLink } = linksOf(baseUrl, { tokenId, item })
  const { _warning, ...product } = verdict.untrusted ?? { _warning: '' }
  return {
    tap:
      tap.kind === 'resolved'
        ? { kind: 'tapped', counter: tap.tag.tapCounter, windowSeconds: pages.windowSeconds }
        : tap,
    verdict,
    product,
    metadata: verdict.untrusted ? 'match' : await missingText(site, asset?.metadataHash ?? null),
    country: product.origin === undefined ? undefined : countryOf(product.origin)?.countryCode,
    item,
    reports: reportsOf(verdict, asset?.record.flags ?? 0),
    tampered: ((asset?.record.flags ?? 0) & assetFlags.TAMPER) !== 0,
    owner: ownerOf(verdict, asset?.record.reserved ?? 0),
    checkedAt: Math.floor(now() / 1000),
    link: page,
    path: item === null ? `/token/${tokenId}` : itemPath(item),
    verdictLink,
    verdictPath: `/api/asset/${tokenId}`,
    history: history?.available === true ? timelineOf(history.events) : null,
    qr: trustedHtml(qrSvg(page, textsIn(context).qrLabel.replace('{url}', page))),
    passport: passport === null ? null : JSON.stringify(passport),
    publicRpcUrl: pages.publicRpcUrl,
    explorerUrl: pages.explorerUrl,
  }
}

/** Without a text: was one published, and is what stands here under its hash another one? */
async function missingText({ metadata }: ItemSite, hash: Hex | null): Promise<'mismatch' | 'none'> {
  const text = hash === null ? null : await orNull(metadata.stored(hash))
  return passportMetadata(hash, text ?? undefined).status === 'mismatch' ? 'mismatch' : 'none'
}

function reportsOf({ flagged }: Verdict, flags: number): readonly ReportKind[] {
  if (!flagged) return []
  const kinds = (['STOLEN_CONFIRMED', 'STOLEN', 'RECALL', 'INVESTIGATION', 'LOST'] as const).filter(
    (kind) => (flags & assetFlags[kind]) !== 0,
  )
  const isConfirmed = kinds.includes('STOLEN_CONFIRMED')
  const told = kinds.filter((kind) => kind !== 'STOLEN' || !isConfirmed)
  return told.length > 0 ? told : ['REPORTED']
}

/** A flagged item still has the owner that it had: the record keeps the state before the flag in its low reserved byte. */
function ownerOf({ state }: Verdict, reserved: number): ItemView['owner'] {
  if (state === 'RECYCLED') return 'closed'
  return state === 'CLAIMED' || (state === 'FLAGGED' && (reserved & 0xff) === 4) ? 'claimed' : 'unclaimed'
}

/** How long the page waits for what it can do without, in milliseconds. */
const patience = 2_000

/** Such a thing, or null when it fails, which its own part has written to the log, or takes too long. */
async function orNull<T>(wanted: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, patience, null)))
  return Promise.race([wanted.catch(() => null), late]).finally(() => clearTimeout(timer))
}
