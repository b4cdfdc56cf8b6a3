/** Which process works on a payment that is settling, and what is left of one that was not sent. */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { deadProcess, newPayment, openLedger, paid, randomHex, takeIn } from '../../../test/support/payments/ledger.ts'
import { lazily, useOpened } from '../../../test/support/opened.ts'
import type { PaymentKey } from '../key.ts'

for (const { name, open, skip } of testDatabases())
  describe(`payments that are settling on ${name}`, { skip }, () => {
    const opened = useOpened(() => openLedger(open))
    const store = lazily(() => opened.ledger)
    beforeEach(() => opened.database.query('delete from payment'))

    const noncesOf = (rows: readonly PaymentKey[]) => rows.map(({ nonce }) => nonce)

    /** Links a payment with a transaction of this state, which has its nonce as hash. */
    async function link(payment: PaymentKey, state: 'pending' | 'mined' | 'lost'): Promise<void> {
      await opened.change(payment, `settlement = ${await opened.transaction(payment.nonce, { state })}`)
    }

    it('are left to another version while its claim is valid', async () => {
      const payment = await takeIn(store)
      await opened.change(
        payment,
        `holder = null, claim = gen_random_uuid(), claimed_until = clock_timestamp() + interval '20 s'`,
      )
      assert.deepEqual(await store.adopt(10), [])
      await opened.change(payment, `claimed_until = clock_timestamp()`)
      assert.deepEqual(noncesOf(await store.adopt(10)), [payment.nonce])
    })

    it('are claimed for half a minute, for versions that know that only, and no more once they are released', async () => {
      const payment = await takeIn(store)
      const claim = async () =>
        (
          await opened.database.query(
            `select claim is not null as claimed, round(extract(epoch from claimed_until - clock_timestamp()) / 10)::int as tens from payment`,
          )
        )[0]
      await store.release(payment)
      assert.deepEqual(await claim(), { claimed: false, tens: 3 })
      await opened.change(payment, `claimed_until = clock_timestamp()`)
      assert.equal((await store.adopt(10)).length, 1)
      assert.deepEqual(await claim(), { claimed: true, tens: 3 })
    })

    it('come back to their process no earlier than ten seconds after the write', async () => {
      const payment = await takeIn(store)
      await opened.change(payment, `claimed_until = claimed_until - interval '6 s'`)
      assert.deepEqual(await store.adopt(10), [])
    })

    it('are adopted oldest first and by payer and nonce, at most so many', async () => {
      const dead = opened.ledgerOf(deadProcess)
      const first = await takeIn(dead)
      const sameNonce = { ...newPayment(), nonce: first.nonce }
      const last = { ...newPayment(), payer: sameNonce.payer }
      for (const payment of [sameNonce, last]) assert.ok(await dead.insert(payment))
      const adopted = async (...given: Parameters<typeof store.adopt>) =>
        (await store.adopt(...given)).map(({ payer, nonce }) => [payer, nonce])
      assert.deepEqual(await adopted(9, sameNonce), [[sameNonce.payer, sameNonce.nonce]])
      assert.deepEqual(await adopted(1), [[first.payer, first.nonce]])
      assert.deepEqual(await adopted(9), [[last.payer, last.nonce]])
    })

    it('count as undelivered once their process has left them, and once another has adopted them', async () => {
      const [left, adopted] = [await takeIn(store), await takeIn(opened.ledgerOf(deadProcess))]
      await store.release(left)
      await store.adopt(1, adopted)
      for (const payment of [left, adopted]) {
        const found = await store.find({ ...payment, nonce: randomHex(32) })
        assert.deepEqual([found?.nonce, found?.undelivered], [payment.nonce, true])
      }
    })

    it('are neither dropped nor released once they are paid', async () => {
      const payment = await takeIn(store)
      await store.done(payment, paid())
      assert.equal(await store.drop(payment), undefined)
      await store.release(payment)
      const row = await store.find(payment)
      assert.deepEqual([row?.state, row?.answer, row?.undelivered], ['done', '{"a":1}', false])
    })

    for (const [state, fate] of [
      ['pending', undefined],
      ['mined', 'sent'],
      ['lost', 'sent'],
    ] as const)
      it(`stay where a transaction was signed for them, which is ${state}`, async () => {
        const [payment, others] = [await takeIn(store), await takeIn(opened.ledgerOf(deadProcess))]
        await Promise.all([link(payment, state), link(others, state)])
        assert.deepEqual([await store.drop(payment), await store.drop(others)], [fate, undefined])
        for (const one of [payment, others]) assert.equal((await store.find(one))?.state, 'settling')
      })

    it('have the transactions that were sent for them', async () => {
      const [remote, signed] = [await takeIn(store), await takeIn(store)]
      const named = randomHex(32)
      const sentFor = async (payment: PaymentKey) => (await store.sentFor(payment, named)).transactions
      assert.deepEqual(await sentFor(remote), [])
      await link(signed, 'pending')
      await Promise.all([remote, signed].map((payment) => store.setTransaction(payment, named)))
      await store.setTransaction(remote, randomHex(32))
      assert.deepEqual([await sentFor(remote), await sentFor(signed)], [[named], [signed.nonce]])
      const replaced = randomHex(32)
      await opened.change(signed, `tx_hash = decode('${replaced.slice(2)}', 'hex')`)
      assert.deepEqual(await sentFor(signed), [signed.nonce, replaced])
      const refused = await takeIn(store)
      await store.reject(refused, 'payment_rejected')
      await store.setTransaction(refused, named)
      assert.deepEqual(await sentFor(refused), [])
    })

    for (const state of ['pending', 'mined', 'lost'] as const)
      it(`are paid by a transaction that this service signed for them, which is ${state}, and by no other`, async () => {
        const payment = await takeIn(store)
        const isSigned = async (transaction = payment.nonce) => (await store.sentFor(payment, transaction)).isSigned
        assert.equal(await isSigned(), false)
        await link(payment, state)
        assert.deepEqual([await isSigned(), await isSigned(randomHex(32))], [true, false])
        const older = `sent_at = sent_at - interval '1 day', mined_at = clock_timestamp() - interval '1 day'`
        await opened.database.query(`update settlement set ${older}`)
        assert.equal(await isSigned(), true)
        // It was sent again.
        await opened.change(payment, 'settlement = null')
        assert.equal(await isSigned(), state === 'pending')
        await opened.database.query('update settlement set sent_at = clock_timestamp(), mined_at = clock_timestamp()')
        assert.equal(await isSigned(), true)
      })

    it('are as old as the oldest one of their token', async () => {
      assert.equal(await store.oldestPending(), 0)
      const [old, ended] = [await takeIn(store), await takeIn(store)]
      await takeIn(store)
      await store.done(ended, paid())
      await opened.change(ended, `created_at = created_at - interval '3 hours'`)
      await opened.change(old, `created_at = created_at - interval '1 hour'`)
      assert.equal(Math.round((await store.oldestPending()) / 600), 6)
    })
  })
