/** Nonces of one account that several processes assign (spec §4.8). */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { toHex, type Hex } from 'viem'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { createPaymentLedger } from '../ledger/ledger.ts'
import { newPayment } from '../../../test/support/payments/ledger.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { createNonceSlots, type Slot } from './slots.ts'

const sender: Hex = `0x${'a1'.repeat(20)}`
const holderOf = (number: number, isAlive: string) => ({ number, isAlive, [Symbol.asyncDispose]: async () => {} })
const sign = async (nonce: number) => ({ raw: toHex(nonce, { size: 1 }), hash: toHex(nonce, { size: 32 }) })

for (const { name, open, skip } of testDatabases()) {
  describe(`nonces on ${name}`, { skip }, () => {
    const database = useOpened(open)

    const slotsOf = (process: number) =>
      createNonceSlots(database, { chainId: 84532, asset: sender, holder: holderOf(process, 'true') })

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

  describe(`transactions on ${name}`, { skip }, () => {
    const senders: Hex[] = [sender]
    const database = useOpened(open)
    beforeEach(async () => {
      await database.query('delete from payment')
      await database.query('delete from settlement')
    })

    const asset: Hex = `0x${'c4'.repeat(20)}`
    const scopeOf = (number: number, chainId = 84532) => ({
      chainId,
      asset,
      holder: holderOf(number, 'holder in (1, 2)'),
    })
    const slotsOf = (...scope: Parameters<typeof scopeOf>) => createNonceSlots(database, scopeOf(...scope))
    const ledger = () => createPaymentLedger(database, scopeOf(1))
    const place = (hash: Hex) => ({ gasUsed: 21_000n, gasPrice: 2n, l1Fee: 3n, block: { number: 9n, hash } })
    const blockOf = (n: number) => toHex(n, { size: 32 })
    const pksOf = (slots: readonly Slot[]) => slots.map(({ pk }) => pk)
    const row = async ({ pk }: Pick<Slot, 'pk'>) => {
      const [found] = await database.query<Record<string, unknown>>(
        `select state, holder, gas_used, gas_price::text, l1_fee::text, block_number, encode(block_hash, 'hex') as block,
           mined_at > statement_timestamp() - interval '10 minutes' as lately,
           sent_at > statement_timestamp() - interval '10 minutes' as "sentLately" from settlement where pk = $1`,
        [pk],
      )
      return found
    }
    const stateOf = async (slot: Slot) => (await row(slot))?.['state']
    const change = ({ pk }: Slot, set: string) => database.query(`update settlement set ${set} where pk = $1`, [pk])

    /** Assigns a nonce to payments; they expire at `validBefore`. */
    async function assign(slots: ReturnType<typeof slotsOf>, validBefore: readonly bigint[] = [], from = sender) {
      const payments = validBefore.map((time) => {
        const one = newPayment()
        return { ...one, payment: { ...one.payment, validBefore: time } }
      })
      for (const payment of payments) assert.ok(await ledger().insert(payment))
      const slot = await slots.assign({ sender: from, count: 3, members: payments }, sign)
      return { slot, payments }
    }

    it('are linked with the payments that they settle, and with no others', async () => {
      const [payment, ended] = [newPayment(), newPayment()]
      const others = [
        { ...newPayment(), payer: payment.payer },
        { ...newPayment(), nonce: payment.nonce },
      ]
      const elsewhere = [
        createPaymentLedger(database, { ...scopeOf(1), asset: sender }),
        createPaymentLedger(database, scopeOf(1, 8453)),
      ]
      for (const one of [payment, ended, ...others]) assert.ok(await ledger().insert(one))
      for (const one of elsewhere) assert.ok(await one.insert(payment))
      await ledger().reject(ended, 'payment_rejected')
      const slot = await slotsOf(1).assign({ sender, count: 3, members: [payment, ended] }, sign)
      const found = await ledger().find(payment)
      assert.deepEqual([found?.settlement, found?.transaction], [slot.pk, slot.hashes[0]])
      for (const other of [ended, ...others]) assert.equal((await ledger().find(other))?.settlement, null)
      for (const one of elsewhere) assert.equal((await one.find(payment))?.settlement, null)
      assert.ok((await ledger().sentFor(payment, slot.hashes[0] ?? '0x')).isSigned)
    })

    it('get nonces of their account and chain, past the gaps of lost ones', async () => {
      const one = slotsOf(1)
      const nonceOf = async (slots = one, from = sender, count = 3) =>
        (await slots.assign({ sender: from, count, members: [] }, sign)).nonce
      assert.deepEqual([await nonceOf(), await nonceOf(), await nonceOf()], [3, 4, 5])
      assert.deepEqual([await nonceOf(one, asset), await nonceOf(slotsOf(1, 8453))], [3, 3])
      await database.query(`update settlement set state = 'lost' where nonce = 4`)
      assert.deepEqual([await nonceOf(), await nonceOf(one, sender, 5)], [4, 6])
    })

    it('are assigned by several processes at once, each nonce to one', async () => {
      const [one, two] = [slotsOf(1), slotsOf(2)]
      const assigned = await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 ? one : two).assign({ sender, count: 3, members: [] }, sign)),
      )
      const nonces = assigned.map(({ nonce }) => nonce).toSorted((a, b) => a - b)
      assert.deepEqual(
        nonces,
        Array.from({ length: 20 }, (_, n) => 3 + n),
      )
    })

    it('are replaced under their nonce while they are pending, and keep their hashes and payments', async () => {
      const slots = slotsOf(1)
      const { slot, payments } = await assign(slots, [7n, 7n])
      const [settling, ended] = payments as [(typeof payments)[0], (typeof payments)[0]]
      await ledger().reject(ended, 'payment_rejected')
      await change(slot, `sent_at = sent_at - interval '1 hour'`)
      const second = await slots.replace(slot, { raw: '0xee', hash: blockOf(77) })
      assert.deepEqual(second, { ...slot, raw: '0xee', hashes: [slot.hashes[0], blockOf(77)] })
      assert.equal((await ledger().find(settling))?.transaction, blockOf(77))
      assert.equal((await ledger().find(ended))?.transaction, slot.hashes[0])
      assert.equal((await row(slot))?.['sentLately'], true)
      await slots.mined(slot, place(blockOf(9)))
      await slots.replace(second, { raw: '0xff', hash: blockOf(78) })
      assert.deepEqual(await slots.minedIn({ number: 9n, hash: blockOf(9) }), [second])
    })

    it('are mined once, where their block was read first, and move from there with a reorganisation only', async () => {
      const slots = slotsOf(1)
      const { slot } = await assign(slots)
      assert.equal(await slots.isPending(slot.pk), true)
      await slots.moved(slot, place(blockOf(8)))
      assert.equal(await stateOf(slot), 'pending')
      assert.equal((await row(slot))?.['block'], null)
      await slots.mined(slot, place(blockOf(9)))
      assert.deepEqual(await row(slot), {
        state: 'mined',
        holder: 1,
        gas_used: 21_000n,
        gas_price: '2',
        l1_fee: '3',
        block_number: 9n,
        block: blockOf(9).slice(2),
        lately: true,
        sentLately: true,
      })
      assert.equal(await slots.isPending(slot.pk), false)
      await slots.mined(slot, place(blockOf(10)))
      await slots.lost(slot)
      assert.deepEqual(pksOf(await slots.minedIn({ number: 9n, hash: blockOf(9) })), [slot.pk])
      await slots.moved(slot, place(blockOf(10)))
      assert.deepEqual(pksOf(await slots.minedIn({ number: 9n, hash: blockOf(9) })), [])
      assert.deepEqual(pksOf(await slots.minedIn({ number: 9n, hash: blockOf(10) })), [slot.pk])
    })

    it('of a removed block are free again, without those that are unsure, of other chains or of the day before', async () => {
      const [slots, elsewhere] = [slotsOf(1), slotsOf(1, 8453)]
      const [gone, unsure, old, pending] = [
        (await assign(slots)).slot,
        (await assign(slots)).slot,
        (await assign(slots)).slot,
        (await assign(slots)).slot,
      ]
      const other = (await assign(elsewhere)).slot
      const block = { number: 9n, hash: blockOf(9) }
      for (const slot of [gone, unsure, old, other]) await slots.mined(slot, place(block.hash))
      await change(gone, `mined_at = mined_at - interval '23 hours'`)
      await change(old, `mined_at = mined_at - interval '25 hours'`)
      assert.deepEqual(new Set(pksOf(await slots.minedIn(block))), new Set([gone.pk, unsure.pk]))
      assert.deepEqual(pksOf(await elsewhere.minedIn(block)), [other.pk])
      await slots.orphaned(block, [unsure])
      assert.deepEqual(await Promise.all([gone, unsure, old, other, pending].map(stateOf)), [
        'lost',
        'mined',
        'mined',
        'mined',
        'pending',
      ])
      assert.deepEqual(pksOf(await slots.minedIn(block)), [unsure.pk])
    })

    it('that count as lost are looked at again for two hours, or where they have paid, those that were sent last first', async () => {
      const slots = slotsOf(1)
      const paying = () => assign(slots, [7n])
      const [recent, paid, unpaid, again, byOther, mined] = [
        await paying(),
        await paying(),
        await paying(),
        await paying(),
        await paying(),
        await paying(),
      ]
      const settle = ({ slot, payments }: typeof paid, transaction = slot.hashes[0] ?? '0x') =>
        Promise.all(payments.map((payment) => ledger().done(payment, { transaction, answer: '{}', block: null })))
      for (const one of [paid, mined]) await settle(one)
      await settle(byOther, blockOf(99))
      // Its payment was sent again, and the first transaction has paid it.
      const second = await slots.assign({ sender, count: 3, members: again.payments }, sign)
      await settle(again)
      for (const { slot } of [recent, paid, unpaid, again, byOther]) await slots.lost(slot)
      for (const one of [mined.slot, second]) await slots.mined(one, place(blockOf(9)))
      for (const { slot } of [paid, unpaid, byOther]) await change(slot, `sent_at = sent_at - interval '121 minutes'`)
      await change(again.slot, `sent_at = sent_at - interval '122 minutes'`)
      await change(recent.slot, `sent_at = sent_at - interval '119 minutes'`)
      assert.deepEqual(pksOf(await slots.lostLately()), [recent.slot.pk, paid.slot.pk, again.slot.pk])
      assert.deepEqual(await slotsOf(1, 8453).lostLately(), [])
    })

    it('are adopted by one process once that of before has ended or has left them, with the latest time of their payments', async () => {
      const [one, two, dead] = [slotsOf(1), slotsOf(2), slotsOf(3)]
      const { slot, payments } = await assign(dead, [30n, 70n, 90n, 50n])
      const [, , latest] = payments
      assert.ok(latest)
      await ledger().reject(latest, 'payment_rejected')
      const alive = (await assign(two)).slot
      const empty = (await assign(dead)).slot
      const foreign = (await assign(dead, [], asset)).slot
      const elsewhere = (await assign(slotsOf(3, 8453))).slot
      const mined = (await assign(dead)).slot
      await one.mined(mined, place(blockOf(9)))
      await change(slot, `sent_at = sent_at - interval '1 hour'`)
      assert.deepEqual(await one.adopt(senders, []), [
        { ...slot, validBefore: 70n },
        { ...empty, validBefore: 0n },
      ])
      assert.deepEqual([(await row(slot))?.['holder'], (await row(slot))?.['sentLately']], [1, true])
      assert.deepEqual(await one.adopt(senders, []), [])
      for (const other of [alive, foreign, elsewhere, mined]) assert.notEqual((await row(other))?.['holder'], 1)
      await one.release([])
      await one.release([slot])
      assert.equal((await row(slot))?.['holder'], 0)
      assert.deepEqual(pksOf(await two.adopt(senders, [])), [slot.pk])
    })

    it('come back to their process where it does not follow them, from ten seconds after they were sent on', async () => {
      const slots = slotsOf(1)
      const [followed, left] = [(await assign(slots)).slot, (await assign(slots)).slot]
      await database.query(`update settlement set sent_at = sent_at - interval '6 s'`)
      assert.deepEqual(await slots.adopt(senders, [followed.pk]), [])
      await database.query(`update settlement set sent_at = sent_at - interval '6 s'`)
      assert.deepEqual(pksOf(await slots.adopt(senders, [followed.pk])), [left.pk])
    })
  })
}
