/**
 * Who may offer, take, decline, claim and recycle, and until when (spec §3): judged on what the chain holds at one block,
 * so that a caller learns what is wrong before anything is sent. The contract's rules are the same and have the last word.
 */
import { assetFlags, lifecycleStates, reportFlags, type Hex, type StateCode } from '@touchstone/verdict'
import type { TransferPosition } from '../chain/transfer-reads.ts'
import type { InputError } from './mutation-inputs.ts'

/** An offer stands this long at most, in seconds, and this long where nobody says otherwise. */
export const longestOffer = 72n * 3_600n

/** The default deadline is counted from one block and may be judged at an earlier one, of another provider. */
const clockSlack = 60n

/** RFC 3339; a time of the contract may lie beyond all calendars. */
export function instantOf(seconds: bigint): string {
  const lastOfCalendar = 253_402_300_799n
  return new Date(Number(seconds < lastOfCalendar ? seconds : lastOfCalendar) * 1_000).toISOString()
}

/** Every reason against an offer to `to` until `expiry`, in unix seconds. */
export function offerErrors(position: TransferPosition, { to, expiry }: { to: Hex; expiry: bigint }): InputError[] {
  const { record, offer, block, tokenId } = position
  const reason = immovable(position)
  if (reason !== null) return [{ field: 'productId', message: reason }]
  const errors = deadlineErrors(position, expiry)
  if (to === record.owner) errors.push({ field: 'toAddress', message: 'The product already belongs to the recipient.' })
  if (offer.to !== null && block.timestamp <= offer.expiry) {
    const id = `${tokenId}-${offer.nonce}`
    const message = `Transfer ${id} of this product is pending until ${instantOf(offer.expiry)}: it must be accepted, cancelled or expire first.`
    errors.push({ field: 'productId', message })
  }
  return errors
}

export function deadlineErrors({ block }: TransferPosition, deadline: bigint): InputError[] {
  const now = block.timestamp
  if (deadline <= now)
    return [{ field: 'deadline', message: `The deadline has passed; on chain it is ${instantOf(now)}.` }]
  if (deadline > now + longestOffer + clockSlack)
    return [
      { field: 'deadline', message: `The deadline may lie at most 72 hours ahead: ${instantOf(now + longestOffer)}.` },
    ]
  return []
}

/** Every reason against accepting or cancelling the offer that raised the nonce to `nonce`. */
export function answerErrors(position: TransferPosition, nonce: number): InputError[] {
  const { record, offer, block } = position
  const about = (message: string): InputError[] => [{ field: 'transferId', message }]
  if (record.state === 0 || nonce > offer.nonce || nonce === 0) return about('There is no such transfer.')
  if (offer.to === null || nonce < offer.nonce)
    return about('The transfer is no longer pending: it was accepted, cancelled or dropped.')
  if (block.timestamp > offer.expiry)
    return about(`The transfer expired at ${instantOf(offer.expiry)}; the owner may offer the product again.`)
  const reason = immovable(position)
  return reason === null ? [] : about(reason)
}

/** What stands against a step that leads from `state` only. */
export function stateErrors({ tokenId, record }: TransferPosition, state: StateCode, step: string): InputError[] {
  if (record.state === state) return []
  const message =
    record.state === 0
      ? `Product ${tokenId} does not exist.`
      : `Product ${tokenId} is ${lifecycleStates[record.state]}; only a product that is ${lifecycleStates[state]} can be ${step}.`
  return [{ field: 'productId', message }]
}

function immovable({ tokenId, record: { state, flags } }: TransferPosition): string | null {
  if (state === 0) return `Product ${tokenId} does not exist.`
  if (state === 6) return `Product ${tokenId} is recycled: it changes hands no more.`
  if (state !== 5) return null
  return `Product ${tokenId} is flagged (${reportsOf(flags & reportFlags)}): it cannot change hands until the reports are resolved.`
}

function reportsOf(flags: number): string {
  return Object.entries(assetFlags)
    .filter(([, bit]) => (flags & bit) !== 0)
    .map(([name]) => name)
    .join(', ')
}
