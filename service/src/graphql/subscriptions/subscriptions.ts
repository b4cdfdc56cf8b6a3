/** The events of spec §6 as subscriptions, each with a stream of its own, and as the pages of `events`. */
import type { Hex } from '@touchstone/verdict'
import type { AssetEvent } from '../../domain/registry-event.ts'
import {
  type EventFilter,
  type EventKind,
  type EventRange,
  formatPosition,
  keptBrands,
  type OutboxEvent,
  type OutboxStore,
  parsePosition,
  type Place,
} from '../../index/outbox.ts'
import { IndexIncompleteError } from '../../index/contract.ts'
import type { ProductRow } from '../../index/queries/products.ts'
import type { TransferRow } from '../../index/queries/transfers.ts'
import type { Log } from '../../lib/log.ts'
import type { GraphqlContext, Loaders } from '../context.ts'
import { type Brands, permits } from '../../access/rights.ts'
import { graphqlError, nullIfIncomplete } from '../errors.ts'
import { toOwner, type Owner } from '../queries/fields.ts'
import { requireTokenId } from '../queries/filter.ts'
import { defaultPage, isGiven, maxPage } from '../queries/pages.ts'
import type { ResolverMap } from '../schema.ts'
import type { EventDispatcher, LoadPayloads } from './dispatcher.ts'
import { createEventStream } from './stream.ts'

export type SubscriptionDeps = {
  readonly dispatcher: Pick<EventDispatcher<SubscriptionEvent>, 'subscribe' | 'newest'>
  readonly outbox: Pick<OutboxStore, 'range' | 'check'>
  /** The same events for pages of keys with brands. It throws while the index does not know what product an event is of. */
  readonly branded?: Pick<OutboxStore, 'range'>
  readonly load: LoadPayloads<SubscriptionEvent>
  readonly log: Log
}

type EventArguments = {
  readonly after?: string | null
  readonly kinds?: readonly EventKind[] | null
  readonly productId?: string | null
}

export function subscriptionResolvers({
  dispatcher,
  outbox,
  branded = outbox,
  load,
  log,
}: SubscriptionDeps): ResolverMap {
  const isComplete = ({ product, transfer, kind }: SubscriptionEvent) =>
    product !== null && (transfer !== null || kind === 'VERIFIED')

  async function goneError() {
    const { oldest } = await outbox.check({ seq: 0n, micros: 0n })
    const message =
      'Events after this position are no longer kept. Read the state with queries, then go on from "oldest".'
    return graphqlError('EVENTS_GONE', message, { oldest: formatPosition(oldest) })
  }

  /** Returns the place of a position after which every event is kept. Throws BAD_USER_INPUT and EVENTS_GONE. */
  async function parseAfter(position: string): Promise<Place> {
    const place = parsePosition(position)
    if (place === null)
      throw graphqlError('BAD_USER_INPUT', '"after" is the position of an event, such as `position` or `newest`.')
    if (!(await outbox.check(place)).known) throw await goneError()
    return place
  }

  async function subscribeTo(filter: EventFilter, after: string | null | undefined, { key, turns }: GraphqlContext) {
    const place = isGiven(after) ? await parseAfter(after) : null
    const view = (shared: SubscriptionEvent) => {
      const event = viewOf(shared, key.brands)
      return event === null || (filter.topic !== undefined && !isComplete(event)) ? null : event
    }
    // A key may have thousands of subscriptions, and one read looks at thousands of events.
    const replay = {
      outbox: {
        range: (range: EventRange) => turns.read(key.id, () => outbox.range({ ...range, brands: key.brands })),
      },
      load: (events: readonly OutboxEvent[]) => turns.read(key.id, () => load(events)),
    }
    const streams = { dispatcher, goneError, log, ...replay }
    return createEventStream(streams, { filter, after: place?.seq ?? null, view })
  }

  function subscriptionTo<Given>(filterOf: (given: Given) => EventFilter) {
    const subscribe = (_root: unknown, given: Given & Pick<EventArguments, 'after'>, context: GraphqlContext) =>
      subscribeTo(filterOf(given), given.after, context)
    return { subscribe, resolve: (event: SubscriptionEvent) => event }
  }

  return {
    Query: {
      async events(
        _root: unknown,
        given: EventArguments & { readonly first?: number | null },
        context: GraphqlContext,
      ) {
        const size = given.first ?? defaultPage
        if (size < 0 || size > maxPage) throw graphqlError('BAD_USER_INPUT', `"first" is from 0 to ${maxPage}.`)
        const filter = parseFilter(given)
        const { oldest } = await outbox.check({ seq: 0n, micros: 0n })
        const after = isGiven(given.after) ? await parseAfter(given.after) : oldest
        const read = dispatcher.newest()
        const newest = read.seq < after.seq ? after : read // another process may have read further
        const { key, turns } = context
        const { brands } = key
        const range = { ...filter, brands, after: after.seq, upTo: newest.seq, limit: size + 1 }
        const found = await turns.read(key.id, () => (brands === null ? outbox : branded).range(range))
        if (found === null) throw await goneError()
        const events = found.events.slice(0, size)
        const nodes = (await load(events)).map((event) => viewOf(event, brands)).filter((event) => event !== null)
        const edges = nodes.map((node) => ({ node, cursor: node.position }))
        const isFull = found.events.length > size
        const reached = isFull ? events.at(-1)?.position : found.reached && formatPosition(found.reached)
        return {
          edges,
          pageInfo: {
            hasNextPage: isFull || found.reached !== null,
            hasPreviousPage: isGiven(given.after),
            startCursor: edges[0]?.cursor ?? null,
            endCursor: reached ?? edges.at(-1)?.cursor ?? null,
          },
          oldest: formatPosition(oldest),
          newest: formatPosition(newest),
        }
      },
    },
    Event: {
      product({ product, incomplete }: SubscriptionEvent) {
        if (incomplete !== null) throw incomplete
        return product
      },
    },
    Subscription: {
      events: subscriptionTo(parseFilter),
      productTransferred: subscriptionTo(({ productId }: { productId: string }) => ({
        topic: 'transfer',
        tokenId: requireTokenId(productId),
      })),
      productVerified: subscriptionTo(() => ({ topic: 'tap' })),
    },
  }
}

function parseFilter({ kinds, productId }: EventArguments): EventFilter {
  if (kinds?.length === 0) throw graphqlError('BAD_USER_INPUT', 'Name at least one kind, or leave "kinds" out.')
  return {
    ...(isGiven(kinds) && { kinds: [...new Set(kinds)] }),
    ...(isGiven(productId) && { tokenId: requireTokenId(productId) }),
  }
}

/**
 * Returns what a key with these brands gets of an event; `null` is nothing. Where a reorganisation gave the product to another brand, the
 * event is shown without it, and what else is read for it is read with the rights of the key.
 */
function viewOf(event: SubscriptionEvent, brands: Brands): SubscriptionEvent | null {
  const isOwn = permits(brands, event.product)
  const { keptFor } = event
  if (brands === null || keptFor === null) return isOwn ? event : null
  if (!keptFor.some((brand) => brands.includes(brand))) return null
  return isOwn ? event : { ...event, product: null, loaders: null }
}

/** The source of Event, ProductTransferredEvent and ProductVerifiedEvent. All subscribers of an event share its loaders. */
export type SubscriptionEvent = Readonly<{
  position: string
  kind: EventKind | null
  retracts: string | null
  timestamp: string
  productId: string
  product: ProductRow | null
  /** Says that the index may lack the product because it is being filled. */
  incomplete: IndexIncompleteError | null
  transfer: TransferRow | null
  cause: AssetEvent | null
  verifiedAt: string
  verifiedBy: Owner | null
  /** The brands of an event that was taken back, and of its retraction; `null` stands for that of the product. */
  keptFor: readonly string[] | null
  /** `null` for a reader that does not have the product now. */
  loaders: Loaders | null
}>

/** Creates the loader of payloads, once per event for all subscribers. `verifier` returns the current attestation signer. */
export function payloadLoader(
  createLoaders: () => Loaders,
  verifier: () => Hex,
  outbox: Pick<OutboxStore, 'withRetracted'>,
): LoadPayloads<SubscriptionEvent> {
  type Found = ProductRow | IndexIncompleteError | null

  async function loadOne(event: OutboxEvent, product: Found, loaders: Loaders): Promise<SubscriptionEvent> {
    const { position, topic, kind, retracts, at, tokenId } = event
    const isUnknown = product instanceof IndexIncompleteError
    return {
      position,
      kind: kind ?? (topic === 'tap' ? 'VERIFIED' : 'TRANSFER'),
      retracts,
      timestamp: at,
      productId: tokenId.toString(),
      product: isUnknown ? null : product,
      incomplete: isUnknown ? product : null,
      transfer: transferOf(event) ?? (await storedTransfer(event, loaders)),
      cause: causeOf(event),
      verifiedAt: at,
      verifiedBy: topic === 'tap' ? toOwner(verifier()) : null,
      keptFor: keptBrands(event),
      loaders,
    }
  }

  /** The reads of all events are batched. */
  return async (given) => {
    const loaders = createLoaders()
    const load = async ({ tokenId }: OutboxEvent): Promise<Found> =>
      loaders.productByToken.load(tokenId).catch(incompleteOf)
    const products = await Promise.all(given.map(load))
    const brandOf = new Map(
      products.flatMap((product) =>
        product === null || product instanceof IndexIncompleteError ? [] : [[product.tokenId, product.brand] as const],
      ),
    )
    const events = await outbox.withRetracted(given, (tokenId) => brandOf.get(tokenId) ?? null)
    return Promise.all(events.map((event, index) => loadOne(event, products[index] ?? null, loaders)))
  }
}

/** Events are not held back until the index is filled: only their products are unknown. */
function incompleteOf(error: unknown): IndexIncompleteError {
  if (error instanceof IndexIncompleteError) return error
  throw error
}

/** Returns the transfer as the event left it. A later event, or a reorganisation, may have changed it since. */
function transferOf({ tokenId, payload }: OutboxEvent): TransferRow | null {
  const { id, status, from, to, initiatedAt, initiatedTx } = payload
  const { expiresAt = null, settledTx = null, messageHash = null } = payload
  if (!id || !status || !from || !to || !initiatedAt || !initiatedTx) return null
  return { pk: 0n, id, tokenId, from, to, status, initiatedAt, initiatedTx, expiresAt, settledTx, messageHash }
}

/** Returns the transfer of an event that a version before this one wrote, from the index. */
async function storedTransfer({ payload: { id, status } }: OutboxEvent, loaders: Loaders): Promise<TransferRow | null> {
  if (id === undefined || status === undefined) return null
  const stored = await nullIfIncomplete(loaders.transferById.load(id))
  return stored && { ...stored, status, settledTx: status === 'PENDING' ? null : stored.settledTx }
}

function causeOf({ tokenId, payload: { cause } }: OutboxEvent): AssetEvent | null {
  if (cause === undefined) return null
  const { blockNumber, timestamp, expiry } = cause
  return {
    ...cause,
    tokenId: tokenId.toString(),
    blockNumber: BigInt(blockNumber),
    timestamp: BigInt(timestamp),
    expiry: expiry === null ? null : BigInt(expiry),
  }
}
