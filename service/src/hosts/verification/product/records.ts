/**
 * The public facts of an item, a batch or a model, read from the chain and compared with it. `at` selects the version that was valid at a moment;
 * it and the time of the newest change come from the chain's history.
 */
import { type AssetRecord, type Hex, type LifecycleState, lifecycleStates } from '@touchstone/verdict'
import { type Histories, type HistoryEvent, historyUnavailable } from '../../../assets/history.ts'
import { chainId } from '../../../domain/chain.ts'
import { detailsHashOf, parseDetails, type ProductDetails, type Tier, tiers } from '../../../domain/product-details.ts'
import { parseJson } from '../../../lib/json.ts'
import { memoize } from '../../../lib/memoize.ts'
import type { ItemKey } from '../../../domain/gs1/serial.ts'
import { passportMetadata, type ProductText } from '../../../passport/metadata.ts'
import type { Anchor } from '../../../passport/public/document.ts'
import { commonOf, publicFacts, type PublicFacts } from '../../../passport/public/facts.ts'
import type { ProductSubject } from '../../../passport/public/subject.ts'
import type { RestrictedStore } from '../../../passport/public/restricted-store.ts'
import { withRestricted } from '../../../passport/public/tiers.ts'
import { stateAt, versionAt, versionsOf, type Version } from '../../../passport/public/versions.ts'
import { type Brands, permits } from '../../../access/rights.ts'
import type { RouteSite } from '../request.ts'

export type ProductSite = RouteSite & {
  /** The public origin, without a slash at the end. */
  readonly baseUrl: string
  readonly contract: string
  readonly items: { readonly tokenOfItem: (item: ItemKey) => Promise<bigint | null> }
  readonly classes: {
    /** Returns one token for each metadata hash among the newest items of a class. */
    readonly itemsOfClass: (
      gtin: string,
    ) => Promise<readonly { readonly tokenId: bigint; readonly metadataHash: Hex }[]>
  }
  /** Reads metadata texts and product details from memory or the store. */
  readonly metadataTexts: { readonly get: (hash: Hex) => Promise<string | undefined> }
  readonly reader: {
    readonly read: (tokenId: bigint) => Promise<{
      readonly asset: {
        readonly record: Pick<AssetRecord, 'state' | 'flags'>
        readonly metadataHash: Hex | null
      }
      readonly block: Anchor['block']
    }>
  }
  /** Returns the stored text of a hash, altered or not. */
  readonly metadata: { readonly stored: (hash: Hex) => Promise<string | undefined> }
  readonly history: Histories
  /** Restricted elements of product details. Left out: no key reads any. */
  readonly restrictedDetails?: Pick<RestrictedStore, 'get'> | undefined
}

/** The tiers that a caller may read, of products of these brands. */
export type TierAccess = { readonly tiers: readonly Tier[]; readonly brands: Brands }

/** `history` reads the events and with them the version. `at` is in unix seconds, left out for the present. `access` is left out for the public. */
export type Reading = { readonly history?: boolean; readonly at?: number; readonly access?: TierAccess | undefined }

export type ProductRecord = {
  readonly facts: PublicFacts
  /** Supplier text and product details that the facts are made of. They are those of the item, or what the items have alike. */
  readonly text: ProductText
  readonly details: ProductDetails
  readonly evidence: readonly Anchor[]
  /** The anchors of all items that were read, those without a readable text too. */
  readonly items: readonly Anchor[]
  /** Whether the item is recycled. A model or a batch never is: only some of its items are read, and more can be minted. */
  readonly isRecycled: boolean
  /** The events of an item; none where the history was not asked for. */
  readonly events: readonly HistoryEvent[]
}

/** Items whose facts are compared for a batch or a model; each has other metadata. */
const mostItems = 20

/**
 * Reads a subject; null when there is none, or none at that moment. Throws CHAIN_UNAVAILABLE, and HISTORY_UNAVAILABLE where a history is asked
 * for and cannot be read whole.
 */
export async function readProduct(
  site: ProductSite,
  subject: ProductSubject,
  reading: Reading = {},
): Promise<ProductRecord | null> {
  const tokens = await tokensOf(site, subject)
  const found = await Promise.all(tokens.slice(0, mostItems).map((tokenId) => readItem(site, tokenId, reading)))
  const used = found.filter((record) => record !== null).filter(({ details }) => isOfBatch(subject, details))
  if (used.length === 0) return null
  const isItem = subject.kind === 'item' || subject.kind === 'token'
  const readable = used.filter(({ anchor }) => anchor.matches === true)
  const text = commonOf(readable.map((record) => record.text))
  const details: ProductDetails = commonOf(readable.map((record) => record.details ?? {}))
  return {
    facts: publicFacts(text, details),
    text,
    details,
    evidence: (isItem ? used : readable).map(({ anchor }) => anchor),
    items: used.map(({ anchor }) => anchor),
    isRecycled: isItem && used[0]?.state === 'RECYCLED',
    events: isItem ? (used[0]?.events ?? []) : [],
  }
}

/** Returns the tokens that may be read for a subject. Those of a batch are chosen by the stored texts, before the chain is asked. */
async function tokensOf(site: ProductSite, subject: ProductSubject): Promise<readonly bigint[]> {
  if (subject.kind === 'token') return [subject.tokenId]
  if (subject.kind === 'item') {
    const tokenId = await site.items.tokenOfItem(subject)
    return tokenId === null ? [] : [tokenId]
  }
  const items = await site.classes.itemsOfClass(subject.gtin)
  const isMember = await Promise.all(
    items.map(
      async ({ metadataHash }) => subject.kind === 'class' || isOfBatch(subject, await knownBatch(site, metadataHash)),
    ),
  )
  return items.filter((_item, index) => isMember[index]).map(({ tokenId }) => tokenId)
}

async function knownBatch({ metadataTexts }: ProductSite, metadataHash: Hex): Promise<BatchNames | null> {
  const metadata = await metadataTexts.get(metadataHash)
  const { hash } = metadata === undefined ? { hash: null } : detailsIn({ hash: metadataHash, text: metadata })
  const text = hash === null ? undefined : await metadataTexts.get(hash)
  return hash === null || text === undefined ? null : batchIn({ hash, text })
}

/** Returns the hash of the product details that metadata names. A text of 16 kB takes a millisecond, and a request may need 500 of them. */
const detailsIn = memoize(
  ({ text }: { readonly hash: Hex; readonly text: string }) => ({ hash: detailsHashOf(parseJson(text)) }),
  { max: 50_000, keyOf: ({ hash }) => hash },
)

type BatchNames = Pick<ProductDetails, 'gtin' | 'batch'>

/** Returns the batch that product details name. Each text is parsed once, because one request may ask for 100 batches among 500 texts. */
const batchIn = memoize(
  ({ text }: { readonly hash: Hex; readonly text: string }): BatchNames => {
    const { gtin, batch } = parseDetails(text) ?? {}
    return { gtin, batch }
  },
  { max: 10_000, keyOf: ({ hash }) => hash },
)

/** Returns whether an item belongs to the subject. Only product details, which the chain covers, name a batch. */
function isOfBatch(subject: ProductSubject, details: BatchNames | null): boolean {
  if (subject.kind !== 'batch') return true
  return details?.batch === subject.batch && (details.gtin === undefined || details.gtin === subject.gtin)
}

/** Returns whether there is a passport of a subject, without comparing its items. */
export async function hasProduct(site: ProductSite, subject: ProductSubject): Promise<boolean> {
  if (subject.kind === 'class') return (await site.classes.itemsOfClass(subject.gtin)).length > 0
  return (await readProduct(site, subject)) !== null
}

type ItemRecord = {
  readonly state: LifecycleState | undefined
  readonly text: ProductText
  readonly details: ProductDetails | null
  readonly anchor: Anchor
  readonly events: readonly HistoryEvent[]
}

async function readItem(site: ProductSite, tokenId: bigint, reading: Reading): Promise<ItemRecord | null> {
  const found = await site.reader.read(tokenId)
  const { asset, block } = found
  if (asset.record.state === 0) return null
  const events = reading.history === true || reading.at !== undefined ? await eventsOf(site, tokenId, found) : []
  const version = events.length === 0 ? null : versionIn(events, reading.at)
  if (reading.at !== undefined && version === null) return null
  const metadataHash = reading.at === undefined ? asset.metadataHash : (version?.metadataHash ?? null)
  const text = metadataHash === null ? undefined : await site.metadata.stored(metadataHash)
  const metadata = passportMetadata(metadataHash, text)
  const detailsHash = metadata.status === 'match' ? (metadata.details ?? null) : null
  const brand = metadata.status === 'match' ? (metadata.value.brand ?? null) : null
  const read = detailsHash === null ? null : await readDetails(site, detailsHash, brand, reading.access)
  const details = read?.details ?? null
  return {
    state: reading.at === undefined ? lifecycleStates[asset.record.state] : stateIn(events, reading.at),
    text: metadata.status === 'match' ? metadata.value : {},
    details,
    anchor: {
      chainId,
      contract: site.contract as Hex,
      tokenId,
      metadataHash,
      matches: metadata.status === 'none' ? null : metadata.status === 'match',
      detailsHash: details === null ? null : detailsHash,
      restricted: read?.restricted ?? [],
      block,
      version,
    },
    events,
  }
}

/** Reads the events up to the block of the record, so that both are of one block. */
async function eventsOf(
  { history }: ProductSite,
  tokenId: bigint,
  found: Parameters<Histories>[1],
): Promise<readonly HistoryEvent[]> {
  const known = await history(tokenId, found)
  if (known.available) return known.events
  throw historyUnavailable(known.reason)
}

function versionIn(events: readonly HistoryEvent[], at: number | undefined): Version | null {
  const versions = versionsOf(events)
  if (versions === null) throw historyUnavailable('blocks without a time')
  return at === undefined ? (versions.at(-1) ?? null) : versionAt(versions, at)
}

function stateIn(events: readonly HistoryEvent[], at: number): LifecycleState {
  const state = stateAt(events, at)
  if (state === null) throw historyUnavailable('no state at that time')
  return state
}

type ReadDetails = { readonly details: ProductDetails; readonly restricted: Anchor['restricted'] }

/**
 * Reads product details; null where their text is missing or altered. Restricted elements are looked up for a key that may read them and
 * for no one else, so that an answer to the public does not depend on them.
 */
async function readDetails(
  { metadataTexts, restrictedDetails }: ProductSite,
  hash: Hex,
  brand: string | null,
  access: TierAccess | undefined,
): Promise<ReadDetails | null> {
  const text = await metadataTexts.get(hash)
  const details = text === undefined ? null : parseDetails(text)
  if (text === undefined || details === null) return null
  const { restricted: commitments } = details
  if (access === undefined || restrictedDetails === undefined || commitments === undefined)
    return { details, restricted: [] }
  if (!permits(access.brands, { brand })) return { details, restricted: [] }
  const named = tiers.filter((tier) => access.tiers.includes(tier))
  const found = await Promise.all(named.map((tier) => restrictedDetails.get(commitments[tier] as Hex, [tier])))
  const documents = found.filter((document) => document !== null)
  return {
    details: withRestricted(text, documents) ?? details,
    restricted: documents.map(({ tier, hash: commitment }) => ({ tier, hash: commitment })),
  }
}
