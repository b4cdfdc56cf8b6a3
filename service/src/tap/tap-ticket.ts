/**
 * A tap ticket lets a page after a fresh tap do one thing for its item. It reports a difference, claims, offers or certifies the item. It is a
 * field of the page's form, so that no other site can send the form, and nothing is done without the chip.
 */
import { createHmac } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { constantTimeEqual } from '../lib/bytes.ts'
import { tokenKeys, type TapSecrets } from './tap-tokens.ts'

/**
 * The tap that a ticket is of. A chip that is written anew, in another `epoch`, counts from 1 again. `tagHash` is the commitment under which the
 * token was found: after a reorganisation the token may have another chip.
 */
type TicketTap = {
  readonly tokenId: bigint
  readonly tagHash: Hex
  readonly epoch: number
  readonly tapCounter: number
}

export type TapTickets = ReturnType<typeof createTapTickets>

/** Seconds after the tap for which a ticket is good. A report takes time to compare, an offer to get an address; a claim must follow the tap. */
const lifetimes = { 'difference report': 3_600, claim: 600, transfer: 1_800, certificate: 600 } as const

/** Creates the tickets. `now` is in unix milliseconds. */
export function createTapTickets({
  purpose,
  revokedBatches,
  now = Date.now,
  ...secrets
}: TapSecrets & {
  readonly purpose: keyof typeof lifetimes
  /** Returns the ids of all revoked batches: tags of them prove nothing. */
  readonly revokedBatches: () => Promise<readonly string[]>
  readonly now?: () => number
}) {
  const keys = tokenKeys(secrets, `touchstone ${purpose}`)
  const macOf = (key: Uint8Array, body: string) => createHmac('sha256', key).update(body).digest()
  /** Makes a mark of a batch, whose id is the operator's. */
  const markOf = (key: Uint8Array, batchId: string) =>
    macOf(key, `batch ${batchId}`).subarray(0, 16).toString('base64url')
  return {
    /** Returns a ticket of a tap that was accepted `ageSeconds` ago; null where the tap is too old for one. */
    issue(tap: TicketTap & { readonly batchId: string; readonly ageSeconds: number }): string | null {
      const { tokenId, tagHash, epoch, tapCounter, batchId, ageSeconds } = tap
      if (ageSeconds >= lifetimes[purpose]) return null
      const until = Math.floor(now() / 1000 - ageSeconds) + lifetimes[purpose]
      const chip = Buffer.from(tagHash.slice(2), 'hex').toString('base64url')
      const body = `${tokenId}.${epoch}.${tapCounter}.${until}.${chip}.${markOf(keys[0], batchId)}`
      return `${body}.${macOf(keys[0], body).toString('base64url')}`
    },
    /**
     * Returns the tap of a ticket; null for one that is forged or expired, or has another purpose. A ticket of a revoked batch counts as expired.
     * Throws when the database does not answer.
     */
    async parse(ticket: string | null): Promise<TicketTap | null> {
      const [, body, token, epoch, counter, until, chip, mark, mac] = ticketPattern.exec(ticket ?? '') ?? []
      if (body === undefined || token === undefined || chip === undefined || mac === undefined) return null
      const key = keys.find((one) => constantTimeEqual(macOf(one, body), Buffer.from(mac, 'base64url')))
      if (key === undefined || now() / 1000 > Number(until)) return null
      if ((await revokedBatches()).some((batchId) => markOf(key, batchId) === mark)) return null
      const tagHash = `0x${Buffer.from(chip, 'base64url').toString('hex')}` as const
      return { tokenId: BigInt(token), tagHash, epoch: Number(epoch), tapCounter: Number(counter) }
    },
  }
}

const ticketPattern = /^((\d{1,78})\.(\d{1,10})\.(\d{1,8})\.(\d{1,12})\.([\w-]{43})\.([\w-]{22}))\.([\w-]{43})$/
