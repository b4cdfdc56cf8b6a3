/** The subscriptions of spec §6: each reads a queue of its own, which the event dispatcher fills. */
import type { Hex } from '@touchstone/verdict'
import { transferStatuses, type TransferStatus } from '../../domain/chain-index.ts'
import type { OutboxEvent } from '../../index/outbox.ts'
import type { ProductRow } from '../../index/queries/products.ts'
import type { TransferRow } from '../../index/queries/transfers.ts'
import { demandScope, type GraphqlContext, type Loaders } from '../context.ts'
import { toOwner, type Owner } from '../queries/fields.ts'
import { parseProductId } from '../queries/queries.ts'
import type { ResolverMap } from '../schema.ts'
import { channelOf, type EventDispatcher } from './dispatcher.ts'
import { createSubscriberQueue } from './queue.ts'

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
    const payload = parsePayload(event)
    if (payload === null) return null
    const [product, transfer] = await Promise.all([
      loaders.productByToken.load(event.tokenId),
      payload.topic === 'transfer' ? loaders.transferById.load(payload.id) : null,
    ])
    if (product === null) return null
    if (payload.topic === 'tap') return { product, loaders, verifiedAt: payload.at, verifiedBy: toOwner(verifier()) }
    const at = transfer === null ? payload.removed : withStatus(transfer, payload.status)
    return at && { product, loaders, transfer: at }
  }

  /** Returns null for an event whose product or transfer does not exist. The reads of all events are batched. */
  return (events: readonly OutboxEvent[]): Promise<(SubscriptionEvent | null)[]> => {
    const loaders = createLoaders()
    return Promise.all(events.map((event) => loadOne(event, loaders)))
  }
}

/** `removed` is the transfer itself, when a reorganisation removed it. */
type Payload =
  | { readonly topic: 'tap'; readonly at: string }
  | {
      readonly topic: 'transfer'
      readonly id: string
      readonly status: TransferStatus
      readonly removed: TransferRow | null
    }

type StoredPayload = { readonly at?: unknown; readonly id?: unknown; readonly status?: unknown } & Partial<
  Pick<TransferRow, 'from' | 'to' | 'initiatedAt' | 'initiatedTx'>
>

function parsePayload({ topic, tokenId, payload }: OutboxEvent): Payload | null {
  const { at, id, status: text, from, to, initiatedAt, initiatedTx } = (payload ?? {}) as StoredPayload
  if (topic === 'tap') return typeof at === 'string' ? { topic, at } : null
  const status = transferStatuses.find((one) => one === text)
  if (topic !== 'transfer' || typeof id !== 'string' || status === undefined) return null
  if (from === undefined || to === undefined || initiatedAt === undefined || initiatedTx === undefined)
    return { topic, id, status, removed: null }
  const rest = { pk: 0n, expiresAt: null, settledTx: null, messageHash: null }
  return { topic, id, status, removed: { id, tokenId, from, to, status, initiatedAt, initiatedTx, ...rest } }
}

/** Returns the transfer with the status of the event, even when a later event has changed it already. */
function withStatus(transfer: TransferRow, status: TransferStatus): TransferRow {
  return { ...transfer, status, settledTx: status === 'PENDING' ? null : transfer.settledTx }
}
