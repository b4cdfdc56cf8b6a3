/**
 * A tap ticket lets a page after a fresh tap do one thing for its item. It reports a difference, claims, offers or certifies the item. It is a
 * field of the page's form, so that no other site can send the form, and nothing is done without the chip.
 */
import { createHmac } from 'node:crypto'
import { constantTimeEqual } from '../lib/bytes.ts'

/** The tap that a ticket is of. */
type Tapped = { readonly tokenId: bigint; readonly tapCounter: number }

export type TapTickets = {
  readonly issue: (tap: Tapped) => string
  /** Returns the tap of a ticket; null for one that is forged or expired, or has another purpose. */
  readonly parse: (ticket: string | null) => Tapped | null
}

/** Seconds for which a ticket is good. A report takes time to compare, an offer to get an address; a claim must follow the tap. */
const lifetimes = { 'difference report': 3_600, claim: 600, transfer: 1_800, certificate: 600 } as const

/** Creates the tickets. `secret` is the same on every instance; a `RangeError` is thrown below 32 bytes. `now` is in unix milliseconds. */
export function createTapTickets({
  secret,
  purpose,
  now = Date.now,
}: {
  readonly secret: Uint8Array
  readonly purpose: keyof typeof lifetimes
  readonly now?: () => number
}): TapTickets {
  if (secret.length < 32) throw new RangeError('A token secret has at least 32 bytes.')
  const key = createHmac('sha256', secret).update(`touchstone ${purpose}`).digest()
  const macOf = (body: string) => createHmac('sha256', key).update(body).digest()
  return {
    issue: ({ tokenId, tapCounter }) => {
      const body = `${tokenId}.${tapCounter}.${Math.floor(now() / 1000) + lifetimes[purpose]}`
      return `${body}.${macOf(body).toString('base64url')}`
    },
    parse: (ticket) => {
      const [, body, token, counter, until, mac] = ticketPattern.exec(ticket ?? '') ?? []
      if (body === undefined || token === undefined || mac === undefined) return null
      if (!constantTimeEqual(macOf(body), Buffer.from(mac, 'base64url')) || now() / 1000 > Number(until)) return null
      return { tokenId: BigInt(token), tapCounter: Number(counter) }
    },
  }
}

const ticketPattern = /^((\d{1,78})\.(\d{1,8})\.(\d{1,12}))\.([\w-]{43})$/
