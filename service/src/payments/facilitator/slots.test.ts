/** Nonces of one account that several processes assign (spec §4.8). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { toHex, type Hex } from 'viem'
import { testDatabases } from '../../../test/support/database/databases.ts'
import type { Database } from '../../db/database.ts'
import { createNonceSlots } from './slots.ts'

const sender: Hex = `0x${'a1'.repeat(20)}`
const sign = async (nonce: number) => ({ raw: toHex(nonce), hash: toHex(nonce, { size: 32 }) })

for (const { name, open, skip } of testDatabases()) {
  describe(`nonces on ${name}`, { skip }, () => {
    let database: Database
    before(async () => {
      database = await open()
    })
    after(() => database?.close())

    const slotsOf = (process: number) => {
      const holder = { number: process, isAlive: 'true', [Symbol.asyncDispose]: async () => {} }
      return createNonceSlots(database, { chainId: 84532, asset: sender, holder })
    }

    it('a gap is filled with its own nonce, and with no other where a living process has that one', async () => {
      const [one, two] = [slotsOf(1), slotsOf(2)]
      const first = await one.assign({ sender, count: 5, members: [] }, sign)
      const second = await two.assign({ sender, count: 5, members: [] }, sign)
      assert.deepEqual([first.nonce, second.nonce], [5, 6])
      assert.equal(await two.fill({ sender, nonce: 5 }, () => sign(5)), undefined)
      await one.lost(first)
      assert.equal((await two.fill({ sender, nonce: 5 }, () => sign(5)))?.nonce, 5)
      assert.equal((await one.assign({ sender, count: 5, members: [] }, sign)).nonce, 7)
    })

    it('a nonce counts as used for a minute after its transaction was mined, while a provider may not know it', async () => {
      const slots = slotsOf(1)
      const slot = await slots.assign({ sender, count: 40, members: [] }, sign)
      await slots.mined(slot, {
        gasUsed: 1n,
        gasPrice: 1n,
        l1Fee: 0n,
        block: { number: 9n, hash: toHex(1, { size: 32 }) },
      })
      const next = await slots.assign({ sender, count: 40, members: [] }, sign)
      assert.equal(next.nonce, 41)
      await database.query("update settlement set mined_at = mined_at - interval '61 seconds' where pk = $1", [slot.pk])
      assert.equal((await slots.assign({ sender, count: 40, members: [] }, sign)).nonce, 40)
    })

    it('a transaction that was given up is mined once its receipt is known', async () => {
      const slots = slotsOf(1)
      const slot = await slots.assign({ sender, count: 20, members: [] }, sign)
      await slots.lost(slot)
      const block = { number: 9n, hash: toHex(9, { size: 32 }) }
      await slots.mined(slot, { gasUsed: 21_000n, gasPrice: 1n, l1Fee: 0n, block })
      assert.deepEqual(
        (await slots.minedIn(block)).map(({ pk }) => pk),
        [slot.pk],
      )
    })
  })
}
