/**
 * The projection of events (spec §2.9, §3): the newest state of every token that they name, and its transfers. The same projection
 * moves the index forwards and repairs it after a reorganisation.
 */
import type { Hex } from '@touchstone/verdict'
import { type AssetEvent, eventKinds } from '../domain/registry-event.ts'
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
const changesOf: Readonly<Record<number, (event: AssetEvent) => Partial<AssetChange>>> = {
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

/**
 * Returns the transfers that events begin or end, by their ids. `open` are those that no transaction has ended, at most one for a
 * token; offers that expired before the second `past` have failed.
 */
export function projectTransfers(
  events: Iterable<AssetEvent>,
  open: ReadonlyMap<string, Transfer>,
  past: bigint,
): Map<string, Transfer> {
  const changed = new Map<string, Transfer>()
  const put = (transfer: Transfer) => void changed.set(transfer.id, transfer)
  const unsettled = new Map(open)
  for (const event of events) {
    if (!transferKinds.has(event.kind)) continue
    const { tokenId, timestamp } = event
    const offer = unsettled.get(tokenId)
    unsettled.delete(tokenId)
    if (event.kind === eventKinds.TransferInitiated) {
      // Only an expired offer makes room for another one without a cancellation.
      if (offer !== undefined) put(expired(offer))
      const begun = begin(event, `${tokenId}-${event.nonce}`)
      unsettled.set(tokenId, begun)
      put(begun)
    } else if (event.kind === eventKinds.TransferCancelled) {
      if (offer !== undefined) put(isPast(offer, timestamp) ? expired(offer) : settled(offer, 'FAILED', event))
    } else {
      // A sale without an offer, of the public deployment, is a transfer of its own.
      const sold = offer ?? begin(event, `${tokenId}-${event.blockNumber}-${event.logIndex}`)
      put(settled(sold, 'CONFIRMED', event))
    }
  }
  for (const transfer of changed.values())
    if (transfer.status === 'PENDING' && isPast(transfer, past)) put(expired(transfer))
  return changed
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

/** The contract accepts a transfer up to the very second of the expiry. */
function isPast({ expiresAt }: Transfer, now: bigint): boolean {
  return expiresAt !== null && expiresAt < now
}

function expired(offer: Transfer): Transfer {
  return { ...offer, status: 'FAILED', settledAt: offer.expiresAt, settledTransaction: null }
}
