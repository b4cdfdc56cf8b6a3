/**
 * The rules of offering, accepting, cancelling, claiming and recycling (spec §3), applied to the state of one block before anything
 * is sent. The contract applies the same rules and decides.
 */
import { lifecycleStates, reportFlags, type Hex, type StateCode } from '@touchstone/verdict'
import type { TransferPosition } from '../../../chain/transactions/transfer-reads.ts'
import { reportNames } from '../../queries/fields.ts'
import type { InputError } from '../inputs.ts'

/** The longest and the default duration of an offer, in seconds. */
const longestOffer = 72n * 3_600n

/** Tolerance in seconds, because the default deadline may be checked at an earlier block of another provider. */
const clockSlack = 60n

/** Formats unix seconds by RFC 3339. A time of the contract may lie beyond the calendar. */
export function formatInstant(seconds: bigint): string {
  const lastOfCalendar = 253_402_300_799n
  return new Date(Number(seconds < lastOfCalendar ? seconds : lastOfCalendar) * 1_000).toISOString()
}

export function latestDeadline({ block }: TransferPosition): bigint {
  return block.timestamp + longestOffer
}

/** Returns every reason against an offer to `to` until `expiry`, in unix seconds. */
export function offerErrors(position: TransferPosition, { to, expiry }: { to: Hex; expiry: bigint }): InputError[] {
  const { record, offer, block, tokenId } = position
  const reason = immovable(position)
  if (reason !== null) return [{ field: 'productId', message: reason }]
  const errors = deadlineErrors(position, expiry)
  if (to === record.owner) errors.push({ field: 'toAddress', message: 'The product already belongs to the recipient.' })
  if (offer.to !== null && block.timestamp <= offer.expiry) {
    const until = formatInstant(offer.expiry)
    const message = `Transfer ${tokenId}-${offer.nonce} of this product is pending until ${until}: it must be accepted, cancelled or expire first.`
    errors.push({ field: 'productId', message })
  }
  return errors
}

/** Returns every reason against accepting or cancelling the offer that raised the nonce to `nonce`. */
export function answerErrors(position: TransferPosition, nonce: number): InputError[] {
  const { record, offer, block } = position
  const about = (message: string): InputError[] => [{ field: 'transferId', message }]
  if (record.state === 0 || nonce > offer.nonce || nonce === 0) return about('There is no such transfer.')
  if (offer.to === null || nonce < offer.nonce)
    return about('The transfer is no longer pending: it was accepted, cancelled or dropped.')
  if (block.timestamp > offer.expiry)
    return about(`The transfer expired at ${formatInstant(offer.expiry)}; the owner may offer the product again.`)
  const reason = immovable(position)
  return reason === null ? [] : about(reason)
}

/** Returns every reason against a step that leads from `state` only and is signed until `deadline`. */
export function stepErrors(
  position: TransferPosition,
  { state, step, deadline }: { readonly state: StateCode; readonly step: string; readonly deadline: bigint },
): InputError[] {
  const { tokenId, record } = position
  const errors = deadlineErrors(position, deadline)
  if (record.state === state) return errors
  const message =
    record.state === 0
      ? `Product ${tokenId} does not exist.`
      : `Product ${tokenId} is ${lifecycleStates[record.state]}; only a product that is ${lifecycleStates[state]} can be ${step}.`
  return [{ field: 'productId', message }, ...errors]
}

function deadlineErrors(position: TransferPosition, deadline: bigint): InputError[] {
  const now = position.block.timestamp
  const about = (message: string): InputError[] => [{ field: 'deadline', message }]
  if (deadline <= now) return about(`The deadline has passed; on chain it is ${formatInstant(now)}.`)
  const latest = latestDeadline(position)
  return deadline > latest + clockSlack
    ? about(`The deadline may lie at most 72 hours ahead: ${formatInstant(latest)}.`)
    : []
}

function immovable({ tokenId, record: { state, flags } }: TransferPosition): string | null {
  if (state === 0) return `Product ${tokenId} does not exist.`
  if (state === 6) return `Product ${tokenId} is recycled: it changes hands no more.`
  if (state !== 5) return null
  const reports = reportNames(flags & reportFlags).join(', ')
  return `Product ${tokenId} is flagged (${reports}): it cannot change hands until the reports are resolved.`
}
