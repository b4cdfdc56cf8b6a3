/**
 * What events mean (spec §2.9, §3): the newest state of every token they name, and what became of its transfers.
 * The same fold makes the index forwards and mends it after a reorganisation.
 */
import type { Hex } from '@touchstone/verdict'
import { kinds, transferKinds, type IndexedEvent } from './index-events.ts'

/** What a token's events have changed; `null` is as it was. A zero hash means that there is none any more. */
export type AssetChange = {
  readonly tokenId: string
  minted: Readonly<{ time: bigint; transactionHash: Hex }> | null
  owner: Hex | null
  state: number | null
  flags: number | null
  metadataHash: Hex | null
  tagHash: Hex | null
  time: bigint
  block: bigint
}

export function foldAssets(events: Iterable<IndexedEvent>): AssetChange[] {
  const changes = new Map<string, AssetChange>()
  for (const event of events) {
    const { tokenId, timestamp: time, blockNumber: block } = event
    let change = changes.get(tokenId)
    if (change === undefined) {
      const nothing = { minted: null, owner: null, state: null, flags: null, metadataHash: null, tagHash: null }
      change = { tokenId, ...nothing, time, block }
      changes.set(tokenId, change)
    }
    change.time = time
    change.block = block
    changeBy(event, change)
  }
  return [...changes.values()]
}

function changeBy(event: IndexedEvent, change: AssetChange): void {
  switch (event.kind) {
    case kinds.minted:
      change.minted = { time: event.timestamp, transactionHash: event.transactionHash }
      change.owner = event.to
      change.metadataHash = event.data
      break
    case kinds.moved:
      change.owner = event.to
      break
    case kinds.stateChanged:
      change.state = event.toState
      break
    case kinds.flagsChanged:
      change.flags = event.flags
      break
    case kinds.metadataHashSet:
      change.metadataHash = event.data
      break
    case kinds.tagBound:
      change.tagHash = event.data
      break
    default: // what is said of transfers changes no record
  }
}

export type TransferStatus = 'PENDING' | 'CONFIRMED' | 'FAILED'

/** Times are unix seconds. An offer that ran out failed when it did, without a transaction. */
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

/**
 * The transfers that events begin or end. `open` are those without an ending in a transaction, one for a token at most;
 * `past` is the second up to which offers have run out.
 */
export function foldTransfers(
  events: Iterable<IndexedEvent>,
  open: Map<string, Transfer>,
  past: bigint,
): Map<string, Transfer> {
  const changed = new Map<string, Transfer>()
  const put = (transfer: Transfer) => void changed.set(transfer.id, transfer)
  const unsettled = new Map(open)
  for (const event of events) {
    if (!transferKinds.has(event.kind)) continue
    const { tokenId, timestamp, transactionHash } = event
    const offer = unsettled.get(tokenId)
    unsettled.delete(tokenId)
    if (event.kind === kinds.transferInitiated) {
      // Only an offer that has run out makes room for another without being withdrawn.
      if (offer !== undefined) put(runOut(offer))
      const begun = offerOf(event)
      unsettled.set(tokenId, begun)
      put(begun)
    } else if (event.kind === kinds.transferCancelled) {
      if (offer !== undefined) put(isPast(offer, timestamp) ? runOut(offer) : settled(offer, 'FAILED', event))
    } else if (offer !== undefined) {
      put(settled(offer, 'CONFIRMED', event))
    } else {
      const id = `${tokenId}-${event.blockNumber}-${event.logIndex}`
      const sale = { ...partiesOf(event), id, tokenId, initiatedAt: timestamp, initiatedTransaction: transactionHash }
      put(settled({ ...sale, ...openEnd, expiresAt: null, messageHash: null }, 'CONFIRMED', event))
    }
  }
  for (const transfer of changed.values())
    if (transfer.status === 'PENDING' && isPast(transfer, past)) put(runOut(transfer))
  return changed
}

const openEnd = { status: 'PENDING', settledAt: null, settledTransaction: null } as const

function offerOf(event: IndexedEvent): Transfer {
  const { tokenId, nonce, timestamp, transactionHash, expiry, data } = event
  return {
    id: `${tokenId}-${nonce}`,
    tokenId,
    ...partiesOf(event),
    ...openEnd,
    initiatedAt: timestamp,
    initiatedTransaction: transactionHash,
    expiresAt: expiry,
    messageHash: data,
  }
}

function partiesOf({ from, to }: IndexedEvent): { from: Hex; to: Hex } {
  if (from === null || to === null) throw new Error('An event of a transfer has no parties.')
  return { from, to }
}

function settled(offer: Transfer, status: TransferStatus, { timestamp, transactionHash }: IndexedEvent): Transfer {
  return { ...offer, status, settledAt: timestamp, settledTransaction: transactionHash }
}

/** The contract takes an acceptance in the very second of the expiry. */
function isPast({ expiresAt }: Transfer, now: bigint): boolean {
  return expiresAt !== null && expiresAt < now
}

function runOut(offer: Transfer): Transfer {
  return { ...offer, status: 'FAILED', settledAt: offer.expiresAt, settledTransaction: null }
}
