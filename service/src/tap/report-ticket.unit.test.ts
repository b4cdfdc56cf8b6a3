import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createReportTickets } from './report-ticket.ts'

describe('report tickets', () => {
  let now = 1_795_000_000_000
  const secret = new Uint8Array(32).fill(7)
  const tickets = createReportTickets({ secret, now: () => now })
  const tap = { tokenId: 2n ** 256n - 1n, tapCounter: 16_777_215 }

  it('return their tap for an hour', () => {
    const ticket = tickets.issue(tap)
    assert.deepEqual(tickets.parse(ticket), tap)
    now += 3_600_000
    assert.deepEqual(tickets.parse(ticket), tap)
    now += 1_001
    assert.equal(tickets.parse(ticket), null)
  })

  it('are refused when a character is changed, missing or added, and from another secret', () => {
    const ticket = tickets.issue(tap)
    const others = createReportTickets({ secret: new Uint8Array(32), now: () => now })
    for (const wrong of [
      null,
      '',
      ticket.slice(0, -1),
      `${ticket}A`,
      ticket.replace('16777215', '16777214'),
      ticket.replace(/^\d/, '2'),
      ticket.replace(/\.(\d{10})\./, (_all, until: string) => `.${Number(until) + 1}.`),
      others.issue(tap),
    ])
      assert.equal(tickets.parse(wrong), null, String(wrong))
    assert.throws(() => createReportTickets({ secret: new Uint8Array(31) }), RangeError)
  })
})
