/**
 * A report ticket lets a page that was shown after a fresh tap send one report about its item. It is a field of the page's form, so that no
 * other site can send the form, and no report is made without the chip.
 */
import { createHmac } from 'node:crypto'
import { constantTimeEqual } from '../lib/bytes.ts'

/** The tap that a ticket is about. */
type Reported = { readonly tokenId: bigint; readonly tapCounter: number }

export type ReportTickets = {
  readonly issue: (tap: Reported) => string
  /** Returns the tap of a ticket; null for one that is forged or expired. */
  readonly parse: (ticket: string | null) => Reported | null
}

/** Time to compare item and record, and to write what differs. */
const ticketSeconds = 3_600

/** Creates the tickets. `secret` is the same on every instance; a `RangeError` is thrown below 32 bytes. `now` is in unix milliseconds. */
export function createReportTickets({
  secret,
  now = Date.now,
}: {
  readonly secret: Uint8Array
  readonly now?: () => number
}): ReportTickets {
  if (secret.length < 32) throw new RangeError('A token secret has at least 32 bytes.')
  const key = createHmac('sha256', secret).update('touchstone difference report').digest()
  const macOf = (body: string) => createHmac('sha256', key).update(body).digest()
  return {
    issue: ({ tokenId, tapCounter }) => {
      const body = `${tokenId}.${tapCounter}.${Math.floor(now() / 1000) + ticketSeconds}`
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
