/** How payments end, and for whom the answer stays undelivered. */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { newPayment, openLedger, paid, randomHex, takeIn } from '../../../test/support/payments/ledger.ts'
import { lazily, useOpened } from '../../../test/support/opened.ts'
import { hexToBytes } from '../../db/columns.ts'
import type { PaymentKey } from '../key.ts'
import { createPaymentLedger } from './ledger.ts'

for (const { name, open, skip } of testDatabases())
  describe(`outcomes of payments on ${name}`, { skip }, () => {
    const opened = useOpened(() => openLedger(open))
    const store = lazily(() => opened.ledger)
    beforeEach(() => opened.database.query('delete from payment'))

    const stateOf = async (key: PaymentKey) => (await store.find(key))?.state
    const heldBy = async ({ nonce }: PaymentKey) => {
      const [row] = await opened.database.query<{ holder: number | null; claimed: boolean }>(
        `select holder, claim is not null as claimed from payment where nonce = $1`,
        [hexToBytes(nonce)],
      )
      return [row?.holder, row?.claimed]
    }

    it('end the work on a payment, for every version', async () => {
      const [transfer, deposit, refused] = [await takeIn(store), await takeIn(store), await takeIn(store)]
      await opened.change(deposit, `kind = 'deposit', channel = nonce`)
      for (const payment of [transfer, deposit]) await store.done(payment, paid())
      await store.reject(refused, 'payment_rejected')
      const { number } = opened.holder
      assert.deepEqual(await Promise.all([transfer, deposit, refused].map(heldBy)), [
        [number, false], // until its proof is sent
        [null, false],
        [null, false],
      ])
      await store.delivered(transfer)
      assert.deepEqual(await heldBy(transfer), [null, false])
    })

    it('of a rejected payment that was executed all the same are those of a paid one, of now', async () => {
      const payment = await takeIn(store)
      await store.reject(payment, 'payment_rejected')
      await opened.change(payment, `settled_at = settled_at - interval '3 days'`)
      assert.equal((await store.find(payment))?.isRecent, false)
      assert.deepEqual(await store.done(payment, paid('late')), { answer: 'late', isNew: true })
      const row = await store.find(payment)
      assert.deepEqual([row?.state, row?.reason, row?.isRecent, row?.answer], ['done', null, true, 'late'])
    })

    it('are those of one payment, of its payer, nonce and token', async () => {
      const payment = await takeIn(store)
      const others = [
        { ...newPayment(), payer: payment.payer },
        { ...newPayment(), nonce: payment.nonce },
      ]
      for (const other of others) assert.ok(await store.insert(other))
      const { database, holder } = opened
      const elsewhere = createPaymentLedger(database, { chainId: 84532, asset: randomHex(20), holder })
      await assert.rejects(elsewhere.done(payment, paid()), /no row/)
      assert.ok(await elsewhere.insert(payment))
      await store.done(payment, paid())
      for (const other of others) assert.equal(await stateOf(other), 'settling')
      assert.equal((await elsewhere.find(payment))?.state, 'settling')
      for (const other of others) {
        await store.done(other, paid())
        await assert.rejects(elsewhere.done(other, paid()), /no row/)
      }
      await store.delivered(payment)
      const { number } = holder
      assert.deepEqual(
        await Promise.all(
          others.map(async ({ payer, nonce }) => {
            const [row] = await database.query<{ holder: number }>(
              'select holder from payment where payer = $1 and nonce = $2 and asset = $3',
              [hexToBytes(payer), hexToBytes(nonce), hexToBytes(opened.asset)],
            )
            return row?.holder
          }),
        ),
        [number, number],
      )
    })

    it('are stored once, of two processes that end the same payments at the same moment', async () => {
      const payments = await Promise.all(Array.from({ length: 50 }, () => takeIn(store)))
      const stores = [store, opened.ledgerOf()]
      const ended = await Promise.all(
        stores.map((by, n) => Promise.all(payments.map((payment) => by.done(payment, paid(String(n)))))),
      )
      for (const [index] of payments.entries()) {
        const [one, two] = ended.map((answers) => answers[index])
        assert.equal(one?.answer, two?.answer)
        assert.notEqual(one?.isNew, two?.isNew)
      }
    })

    it('of a rejected payment free its identifiers, those of a paid one stay with it', async () => {
      for (const isPaid of [true, false]) {
        const identifier = `order_0123456789-${isPaid}`
        const payment = { ...newPayment(), identifier }
        assert.ok(await store.insert(payment))
        if (isPaid) await store.done(payment, paid())
        await store.reject(payment, 'payment_rejected')
        const found = await store.find({ ...payment, nonce: randomHex(32), requestHash: randomHex(32).slice(2) })
        assert.equal(found?.nonce, isPaid ? payment.nonce : undefined)
      }
    })

    it('of a rejected payment name the gas of its transaction, once that is mined', async () => {
      for (const [state, gas] of [
        ['mined', 300n],
        ['pending', 0n],
      ] as const) {
        const [rejected, other] = [await takeIn(store), await takeIn(store)]
        const pk = await opened.transaction(randomHex(32), { state, gas: 600 })
        for (const payment of [rejected, other]) await opened.change(payment, `settlement = ${pk}`)
        assert.equal(await store.reject(rejected, 'payment_rejected'), gas)
        assert.equal(await store.reject(rejected, 'payment_rejected'), 0n)
        await opened.database.query('delete from payment')
      }
    })

    it('are delivered by the process that ended a payment, after it has', async () => {
      const [open, other] = [await takeIn(store), await takeIn(store)]
      await store.delivered(open)
      assert.deepEqual(await heldBy(open), [opened.holder.number, true])
      await store.done(other, paid())
      await opened.ledgerOf({ ...opened.holder, number: 2 }).delivered(other)
      assert.deepEqual(await heldBy(other), [opened.holder.number, false])
    })

    it('stay undelivered where their last answer was not sent, which leaves a payment with its process until it ends', async () => {
      const [open, ended, refused] = [await takeIn(store), await takeIn(store), await takeIn(store)]
      const transaction = randomHex(32)
      await store.setTransaction(open, transaction)
      assert.equal(await store.setUndelivered(open, true), transaction)
      assert.deepEqual(await heldBy(open), [opened.holder.number, true])
      assert.equal(await store.setUndelivered(ended, false), null)
      await store.done(ended, paid())
      await store.setUndelivered(ended, true)
      assert.deepEqual(await heldBy(ended), [null, false])
      await store.reject(refused, 'payment_rejected')
      await store.setUndelivered(refused, true)
      assert.deepEqual(
        await Promise.all([open, ended, refused].map(async (key) => (await store.find(key))?.undelivered)),
        [true, true, false],
      )
    })

    it('replace an answer that is stored, undelivered and the one to replace', async () => {
      const payment = await takeIn(store)
      const [from, to] = ['{"a":1}', '{"a":2}']
      await store.setUndelivered(payment, true)
      assert.equal(await store.renew(payment, { from, to }), false)
      await store.done(payment, paid(from))
      assert.equal(await store.renew(payment, { from: to, to: from }), false)
      await store.setUndelivered(payment, false)
      assert.equal(await store.renew(payment, { from, to }), false)
      await store.setUndelivered(payment, true)
      assert.equal(await store.renew(payment, { from, to }), true)
      assert.equal((await store.find(payment))?.answer, to)
    })
  })
