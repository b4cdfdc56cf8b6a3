import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createTapTickets } from './tap-ticket.ts'

describe('tap tickets', () => {
  let now = 1_795_000_000_000
  const secret = new Uint8Array(32).fill(7)
  const purpose = 'difference report'
  const tickets = createTapTickets({ secret, purpose, now: () => now })
  const tap = { tokenId: 2n ** 256n - 1n, tapCounter: 16_777_215 }

  it('return their tap for an hour', () => {
    const ticket = tickets.issue(tap)
    assert.deepEqual(tickets.parse(ticket), tap)
    now += 3_600_000
    assert.deepEqual(tickets.parse(ticket), tap)
    now += 1_001
    assert.equal(tickets.parse(ticket), null)
  })

  it('are refused when a character is changed, missing or added, and from another secret or for another purpose', () => {
    const ticket = tickets.issue(tap)
    const others = createTapTickets({ secret: new Uint8Array(32), purpose, now: () => now })
    const claims = createTapTickets({ secret, purpose: 'claim', now: () => now })
    assert.deepEqual(claims.parse(claims.issue(tap)), tap)
    for (const wrong of [
      null,
      '',
      ticket.slice(0, -1),
      `${ticket}A`,
      ticket.replace('16777215', '16777214'),
      ticket.replace(/^\d/, '2'),
      ticket.replace(/\.(\d{10})\./, (_all, until: string) => `.${Number(until) + 1}.`),
      others.issue(tap),
      claims.issue(tap),
    ])
      assert.equal(tickets.parse(wrong), null, String(wrong))
    assert.throws(() => createTapTickets({ secret: new Uint8Array(31), purpose }), RangeError)
  })
})
