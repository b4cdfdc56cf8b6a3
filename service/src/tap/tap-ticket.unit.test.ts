import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createTapTickets } from './tap-ticket.ts'
import { tapSecrets } from './tap-tokens.ts'

describe('tap tickets', () => {
  let now = 1_795_000_000_000
  const secret = new Uint8Array(32).fill(7)
  const purpose = 'difference report'
  let revoked: string[] = []
  const options = { revokedBatches: async () => revoked, now: () => now }
  const tickets = createTapTickets({ secret, purpose, ...options })
  const tagHash = `0x${'c7'.repeat(32)}` as const
  const parsed = { tokenId: 2n ** 256n - 1n, tagHash, epoch: 2_147_483_647, tapCounter: 16_777_215 }
  const tap = { ...parsed, batchId: '2026.watches', ageSeconds: 0 }

  it('return their tap for an hour', async () => {
    const ticket = tickets.issue(tap)
    assert.deepEqual(await tickets.parse(ticket), parsed)
    now += 3_600_000
    assert.deepEqual(await tickets.parse(ticket), parsed)
    now += 1_001
    assert.equal(await tickets.parse(ticket), null)
  })

  it('end an hour after the tap, however late the page was opened again', async () => {
    const ticket = tickets.issue({ ...tap, ageSeconds: 3_000.4 })
    now += 598_000
    assert.deepEqual(await tickets.parse(ticket), parsed)
    now += 3_000
    assert.equal(await tickets.parse(ticket), null)
    assert.equal(tickets.issue({ ...tap, ageSeconds: 3_600 }), null)
  })

  it('are refused while the batch of their tag is revoked, and do not name it', async () => {
    const ticket = tickets.issue(tap)
    assert.doesNotMatch(`${ticket}`, /watches/)
    revoked = ['other', tap.batchId]
    assert.equal(await tickets.parse(ticket), null)
    assert.deepEqual(await tickets.parse(tickets.issue({ ...tap, batchId: 'third' })), parsed)
    revoked = []
    assert.deepEqual(await tickets.parse(ticket), parsed)
  })

  it('of a former TAG_KEK are accepted as long as TAG_KEK_PREVIOUS names it, and refused for the same reasons', async () => {
    const [former, kek, foreign] = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ]
    const under = (keks: Parameters<typeof tapSecrets>[0]) =>
      createTapTickets({ ...tapSecrets(keks), purpose, ...options })
    const [old, both] = [under({ kek: former }), under({ kek, previousKek: former })]
    for (const made of [old.issue(tap), both.issue(tap)]) {
      assert.deepEqual(await both.parse(made), parsed)
      revoked = [tap.batchId]
      assert.equal(await both.parse(made), null)
      revoked = []
    }
    assert.equal(await both.parse(under({ kek: foreign }).issue(tap)), null)
    assert.equal(await old.parse(both.issue(tap)), null)
  })

  it('are refused when a character is changed, missing or added, and from another secret or for another purpose', async () => {
    const ticket = tickets.issue(tap) ?? ''
    const others = createTapTickets({ secret: new Uint8Array(32), purpose, ...options })
    const claims = createTapTickets({ secret, purpose: 'claim', ...options })
    assert.deepEqual(await claims.parse(claims.issue(tap)), parsed)
    for (const wrong of [
      null,
      '',
      ticket.slice(0, -1),
      `${ticket}A`,
      ticket.replace('16777215', '16777214'),
      ticket.replace('.2147483647.', '.0.'),
      ticket.replace('.2147483647.', '.'),
      ticket.replace(/^\d/, '2'),
      ticket.replace(/\.(\d{10})\./, (_all, until: string) => `.${Number(until) + 1}.`),
      others.issue(tap),
      claims.issue(tap),
    ])
      assert.equal(await tickets.parse(wrong), null, String(wrong))
    assert.throws(() => createTapTickets({ secret: new Uint8Array(31), purpose, ...options }), RangeError)
  })
})
