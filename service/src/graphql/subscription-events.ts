/** What a subscriber gets of an event of the outbox (spec §6): read when it is told, once for all who hear it. */
import type { Hex } from '@touchstone/verdict'
import type { OutboxEvent } from '../store/outbox.ts'
import type { ProductRow } from '../store/products.ts'
import { transferStatuses, type TransferRow, type TransferStatus } from '../store/transfers.ts'
import type { Loaders } from './context.ts'
import { ownerOf } from './owner.ts'

/** Sources of ProductTransferredEvent and ProductVerifiedEvent. All subscribers of an event share its loaders. */
export type SubscriptionEvent = { readonly product: ProductRow; readonly loaders: Loaders } & (
  | { readonly transfer: TransferRow }
  | { readonly verifiedAt: string; readonly verifiedBy: NonNullable<ReturnType<typeof ownerOf>> }
)

/** `verifier` is the address that answers for taps: the service's attestation signer, whichever it is then. */
export function createSubscriptionEvents({
  loaders: newLoaders,
  verifier,
}: {
  readonly loaders: () => Loaders
  readonly verifier: () => Hex
}) {
  async function presentOne(event: OutboxEvent, loaders: Loaders): Promise<SubscriptionEvent | null> {
    const payload = readPayload(event)
    if (payload === null) return null
    const [product, transfer] = await Promise.all([
      loaders.productByToken.load(event.tokenId),
      payload.topic === 'transfer' ? loaders.transferById.load(payload.id) : null,
    ])
    if (product === null) return null
    if (payload.topic === 'tap') {
      const address = verifier()
      const verifiedBy = ownerOf(address) ?? { address, displayName: null, verifiedAt: null }
      return { product, loaders, verifiedAt: payload.at, verifiedBy }
    }
    const told = transfer === null ? payload.was : asItWas(transfer, payload.status)
    return told && { product, loaders, transfer: told }
  }

  /** Null stands for an event whose product or transfer is gone. The reads of all go out together. */
  return (events: readonly OutboxEvent[]): Promise<(SubscriptionEvent | null)[]> => {
    const loaders = newLoaders()
    return Promise.all(events.map((event) => presentOne(event, loaders)))
  }
}

type Payload =
  | { readonly topic: 'tap'; readonly at: string }
  | {
      readonly topic: 'transfer'
      readonly id: string
      readonly status: TransferStatus
      readonly was: TransferRow | null
    }

function readPayload({ topic, tokenId, payload }: OutboxEvent): Payload | null {
  const { at, id, status, ...was } = (payload ?? {}) as { at?: unknown; id?: unknown; status?: unknown } & Was
  if (topic === 'tap') return typeof at === 'string' ? { topic, at } : null
  const known = transferStatuses.find((one) => one === status)
  if (topic !== 'transfer' || typeof id !== 'string' || known === undefined) return null
  const { from, to, initiatedAt, initiatedTx } = was
  const isTold = from !== undefined && to !== undefined && initiatedAt !== undefined && initiatedTx !== undefined
  const rest = { pk: 0n, expiresAt: null, settledTx: null, messageHash: null }
  return {
    topic,
    id,
    status: known,
    was: isTold ? { id, tokenId, from, to, status: known, initiatedAt, initiatedTx, ...rest } : null,
  }
}

/** Of a transfer that a reorganisation took away. */
type Was = Partial<Pick<TransferRow, 'from' | 'to' | 'initiatedAt' | 'initiatedTx'>>

/** Every change is told with the status it brought, also when the next one has already happened. */
function asItWas(transfer: TransferRow, status: TransferStatus): TransferRow {
  return { ...transfer, status, settledTx: status === 'PENDING' ? null : transfer.settledTx }
}
