/** The subscriptions of spec §6: each reads a queue of its own, which the event dispatcher fills. */
import type { Hex } from '@touchstone/verdict'
import type { TransferStatus } from '../../domain/chain-index.ts'
import type { OutboxEvent } from '../../index/outbox.ts'
import type { ProductRow } from '../../index/queries/products.ts'
import type { TransferRow } from '../../index/queries/transfers.ts'
import { demandScope, type GraphqlContext, type Loaders } from '../context.ts'
import { toOwner, type Owner } from '../queries/fields.ts'
import { parseProductId } from '../queries/queries.ts'
import type { ResolverMap } from '../schema.ts'
import { channelOf, createSubscriberQueue, type EventDispatcher } from './dispatcher.ts'

export function subscriptionResolvers(dispatcher: Pick<EventDispatcher<SubscriptionEvent>, 'subscribe'>): ResolverMap {
  function subscribeTo(channel: string): AsyncIterableIterator<SubscriptionEvent, undefined> {
    const queue = createSubscriberQueue<SubscriptionEvent>(() => stop())
    const stop = dispatcher.subscribe(channel, queue)
    return queue.events
  }
  const resolve = (event: SubscriptionEvent) => event

  return {
    Subscription: {
      productTransferred: {
        subscribe(_root: unknown, { productId }: { productId: string }, context: GraphqlContext) {
          demandScope(context, 'read')
          return subscribeTo(channelOf('transfer', parseProductId(productId)))
        },
        resolve,
      },
      productVerified: {
        subscribe(_root: unknown, _args: unknown, context: GraphqlContext) {
          demandScope(context, 'read')
          return subscribeTo('tap')
        },
        resolve,
      },
    },
  }
}

/** Sources of ProductTransferredEvent and ProductVerifiedEvent. All subscribers of an event share its loaders. */
export type SubscriptionEvent = { readonly product: ProductRow; readonly loaders: Loaders } & (
  | { readonly transfer: TransferRow }
  | { readonly verifiedAt: string; readonly verifiedBy: Owner }
)

/** Creates the loader of payloads, once per event for all subscribers. `verifier` returns the current attestation signer. */
export function payloadLoader(createLoaders: () => Loaders, verifier: () => Hex) {
  async function loadOne(event: OutboxEvent, loaders: Loaders): Promise<SubscriptionEvent | null> {
    const [product, transfer] = await Promise.all([
      loaders.productByToken.load(event.tokenId),
      event.topic === 'transfer' ? loaders.transferById.load(event.payload.id) : null,
    ])
    if (product === null) return null
    if (event.topic === 'tap')
      return { product, loaders, verifiedAt: event.payload.at, verifiedBy: toOwner(verifier()) }
    const at = transfer === null ? removedOf(event) : withStatus(transfer, event.payload.status)
    return at && { product, loaders, transfer: at }
  }

  /** Returns null for an event whose product or transfer does not exist. The reads of all events are batched. */
  return (events: readonly OutboxEvent[]): Promise<(SubscriptionEvent | null)[]> => {
    const loaders = createLoaders()
    return Promise.all(events.map((event) => loadOne(event, loaders)))
  }
}

/** Returns the transfer as it was, when a reorganisation removed it. */
function removedOf({ tokenId, payload }: OutboxEvent<'transfer'>): TransferRow | null {
  const { id, status, ...was } = payload
  return 'from' in was
    ? { id, tokenId, status, ...was, pk: 0n, expiresAt: null, settledTx: null, messageHash: null }
    : null
}

/** Returns the transfer with the status of the event, even when a later event has changed it already. */
function withStatus(transfer: TransferRow, status: TransferStatus): TransferRow {
  return { ...transfer, status, settledTx: status === 'PENDING' ? null : transfer.settledTx }
}
