/**
 * The projection of events (spec §2.9, §3): the newest state of every token that they name, and its transfers. The same projection
 * moves the index forwards and repairs it after a reorganisation.
 */
import type { Hex } from '@touchstone/verdict'
import { type AssetEvent, type EventCode, eventKinds } from '../domain/registry-event.ts'
import type { TransferStatus } from '../domain/chain-index.ts'

/** The changes of a token by its events; `null` is unchanged, and a zero hash stands for none. */
export type AssetChange = {
  readonly tokenId: string
  readonly minted: Readonly<{ time: bigint; transactionHash: Hex }> | null
  readonly owner: Hex | null
  readonly state: number | null
  readonly flags: number | null
  readonly metadataHash: Hex | null
  readonly tagHash: Hex | null
  readonly time: bigint
  readonly block: bigint
}

const unchanged = { minted: null, owner: null, state: null, flags: null, metadataHash: null, tagHash: null }

export function projectAssets(events: Iterable<AssetEvent>): AssetChange[] {
  const changes = new Map<string, AssetChange>()
  for (const event of events) {
    const { tokenId, timestamp: time, blockNumber: block } = event
    const change = changes.get(tokenId) ?? { ...unchanged, tokenId, time, block }
    changes.set(tokenId, Object.assign(change, { time, block }, changesOf[event.kind]?.(event)))
  }
  return [...changes.values()]
}

/** Maps a kind of event to what it changes; events of transfers change no asset. */
const changesOf: Readonly<Record<EventCode, ((event: AssetEvent) => Partial<AssetChange>) | null>> = {
  [eventKinds.AssetMinted]: ({ timestamp: time, transactionHash, to: owner, data: metadataHash }) => ({
    minted: { time, transactionHash },
    owner,
    metadataHash,
  }),
  [eventKinds.Transfer]: ({ to }) => ({ owner: to }),
  [eventKinds.StateChanged]: ({ toState }) => ({ state: toState }),
  [eventKinds.FlagsChanged]: ({ flags }) => ({ flags }),
  [eventKinds.MetadataHashSet]: ({ data }) => ({ metadataHash: data }),
  [eventKinds.TagBound]: ({ data }) => ({ tagHash: data }),
  [eventKinds.TransferInitiated]: null,
  [eventKinds.TransferCancelled]: null,
  [eventKinds.AssetResold]: null,
}

/** Times are unix seconds. An offer that expired failed at that time, without a transaction. */
export type Transfer = Readonly<{
  id: string
  tokenId: string
  from: Hex
  to: Hex
  status: TransferStatus
  initiatedAt: bigint
  initiatedTransaction: Hex
  expiresAt: bigint | null
  settledAt: bigint | null
  settledTransaction: Hex | null
  messageHash: Hex | null
}>

/** Kinds of events that change a transfer. */
export const transferKinds: ReadonlySet<number> = new Set([
  eventKinds.AssetResold,
  eventKinds.TransferInitiated,
  eventKinds.TransferCancelled,
])

/** A new status of a transfer. `cause` is `null` for an offer that expired, which shows at a later event or after all of them. */
export type TransferStep = Readonly<{ transfer: Transfer; cause: AssetEvent | null; shownAt: AssetEvent | null }>

/** Transfers by their ids, and how they became as they are, in order. */
type TransferProjection = Readonly<{ transfers: ReadonlyMap<string, Transfer>; steps: readonly TransferStep[] }>

/**
 * Returns the transfers that events begin or end. `open` are those that no transaction has ended, at most one for a token. An
 * offer that no event ends has failed where `hasExpired`.
 */
export function projectTransfers(
  events: Iterable<AssetEvent>,
  open: ReadonlyMap<string, Transfer>,
  hasExpired: (offer: Transfer) => boolean,
): TransferProjection {
  const transfers = new Map<string, Transfer>()
  const steps: TransferStep[] = []
  const put = (transfer: Transfer, before: Transfer | null, cause: AssetEvent | null, shownAt = cause) => {
    transfers.set(transfer.id, transfer)
    if (transfer.status !== before?.status) steps.push({ transfer, cause, shownAt })
  }
  const unsettled = new Map(open)
  for (const event of events) {
    if (!transferKinds.has(event.kind)) continue
    const { tokenId, timestamp } = event
    const offer = unsettled.get(tokenId)
    unsettled.delete(tokenId)
    if (event.kind === eventKinds.TransferInitiated) {
      // Only an expired offer makes room for another one without a cancellation.
      if (offer !== undefined) put(expired(offer), offer, null, event)
      const begun = begin(event, `${tokenId}-${event.nonce}`)
      unsettled.set(tokenId, begun)
      put(begun, null, event)
    } else if (event.kind === eventKinds.TransferCancelled) {
      if (offer === undefined) continue
      if (isPast(offer, timestamp)) put(expired(offer), offer, null, event)
      else put(settled(offer, 'FAILED', event), offer, event)
    } else {
      // A sale without an offer, of the public deployment, is a transfer of its own.
      const sold = offer ?? begin(event, `${tokenId}-${event.blockNumber}-${event.logIndex}`)
      put(settled(sold, 'CONFIRMED', event), offer ?? null, event)
    }
  }
  for (const transfer of transfers.values())
    if (transfer.status === 'PENDING' && hasExpired(transfer)) put(expired(transfer), transfer, null)
  return { transfers, steps }
}

function begin({ from, to, tokenId, timestamp, transactionHash, expiry, data }: AssetEvent, id: string): Transfer {
  if (from === null || to === null) throw new Error('An event of a transfer has no parties.')
  return {
    id,
    tokenId,
    from,
    to,
    status: 'PENDING',
    initiatedAt: timestamp,
    initiatedTransaction: transactionHash,
    expiresAt: expiry,
    settledAt: null,
    settledTransaction: null,
    messageHash: data,
  }
}

function settled(offer: Transfer, status: TransferStatus, { timestamp, transactionHash }: AssetEvent): Transfer {
  return { ...offer, status, settledAt: timestamp, settledTransaction: transactionHash }
}

/** Returns the test whether an offer expired before the second `past`. */
export function expiredBefore(past: bigint): (offer: Transfer) => boolean {
  return (offer) => isPast(offer, past)
}

/** The contract accepts a transfer up to the very second of the expiry. */
function isPast({ expiresAt }: Transfer, now: bigint): boolean {
  return expiresAt !== null && expiresAt < now
}

/** Returns whether an event shows that the offer before it had not expired. */
export function provesOpen({ kind, timestamp }: AssetEvent, offer: Transfer): boolean {
  return kind === eventKinds.AssetResold || (kind === eventKinds.TransferCancelled && !isPast(offer, timestamp))
}

function expired(offer: Transfer): Transfer {
  return { ...offer, status: 'FAILED', settledAt: offer.expiresAt, settledTransaction: null }
}
