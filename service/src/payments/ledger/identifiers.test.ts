/** Buyers name their payments by identifiers. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { newPayment, openLedger, randomHex, takeIn } from '../../../test/support/payments/ledger.ts'
import { lazily, useOpened } from '../../../test/support/opened.ts'
import { nameOfAnswered } from './intake.ts'

for (const { name, open, skip } of testDatabases())
  describe(`identifiers of payments on ${name}`, { skip }, () => {
    const opened = useOpened(() => openLedger(open))
    const store = lazily(() => opened.ledger)

    it('finds a payment by its identifier, for its payer only', async () => {
      const payment = await takeIn(store)
      const identifier = 'order_0123456789-A'
      const named = { ...newPayment(), identifier }
      assert.ok(await store.insert(named))
      const again = { payer: named.payer, nonce: randomHex(32), requestHash: randomHex(32).slice(2), identifier }
      assert.equal((await store.find(again))?.nonce, named.nonce)
      assert.equal(await store.find({ ...again, payer: payment.payer }), undefined)
      assert.equal(await store.find({ ...again, identifier: `${identifier}b` }), undefined)
      assert.equal((await store.find({ ...payment, identifier }))?.nonce, payment.nonce)
    })

    it('finds no payment by its identifier that another version has claimed and not taken in', async () => {
      const named = { ...newPayment(), identifier: 'order_0123456789-O' }
      assert.ok(await store.insert(named))
      await opened.change(named, `state = 'open', holder = null, claimed_until = clock_timestamp() + interval '1 hour'`)
      assert.equal(await store.find({ ...named, nonce: randomHex(32), requestHash: randomHex(32).slice(2) }), undefined)
    })

    it('finds the payment itself before that of its identifier, and that before another one for its request', async () => {
      const named = { ...newPayment(), identifier: 'order_0123456789-H' }
      const own = { ...newPayment(), payer: named.payer }
      const undelivered = { ...newPayment(), payer: named.payer }
      for (const payment of [named, own, undelivered]) assert.ok(await store.insert(payment))
      await store.setUndelivered(undelivered, true)
      const again = { ...undelivered, nonce: randomHex(32) }
      const bare = { payer: again.payer, nonce: again.nonce }
      const found = await Promise.all([
        store.find({ ...own, identifier: named.identifier }),
        store.find({ ...again, identifier: named.identifier }),
        store.find(again),
        store.find(bare),
      ])
      assert.deepEqual(
        found.map((row) => row && [row.nonce, row.isOther]),
        [[own.nonce, false], [named.nonce, false], [undelivered.nonce, true], undefined],
      )
      assert.ok(await store.identify(named, nameOfAnswered(again.nonce)))
      const answered = await Promise.all([store.find(again), store.find(bare)])
      assert.deepEqual(
        answered.map((row) => row?.nonce),
        [named.nonce, undefined],
      )
    })

    it('takes in one payment for an identifier, of many at once, in one process or two', async () => {
      const identifier = 'order_0123456789-B'
      const first = newPayment()
      const rivals = Array.from({ length: 6 }, () => ({ ...newPayment(), payer: first.payer, identifier }))
      const other = opened.ledgerOf()
      const plain = newPayment()
      const inserted = await Promise.all([
        store.insert(plain),
        ...rivals.map((rival, n) => (n % 2 === 0 ? store : other).insert(rival)),
      ])
      assert.equal(inserted[0], true)
      assert.equal(inserted.slice(1).filter(Boolean).length, 1)
      const found = await store.find({ ...first, identifier })
      assert.equal(found?.nonce, rivals[inserted.slice(1).indexOf(true)]?.nonce)
      for (const [n, rival] of rivals.entries())
        assert.equal((await store.find({ ...rival, identifier: undefined })) !== undefined, inserted[n + 1])
    })

    it('frees the identifier of a payment that is rejected or dropped, and binds more than one', async () => {
      const identifier = 'order_0123456789-C'
      const payment = { ...newPayment(), identifier }
      const anew = () => ({ ...payment, nonce: randomHex(32) })
      assert.ok(await store.insert(payment))
      await store.identify(payment, `${identifier}2`)
      assert.equal((await store.find({ ...anew(), identifier: `${identifier}2` }))?.nonce, payment.nonce)
      await store.reject(payment, 'authorization_expired')
      assert.equal(await store.find(anew()), undefined)
      const second = anew()
      assert.ok(await store.insert(second))
      assert.equal(await store.insert(anew()), false)
      assert.ok(await store.drop(second))
      assert.equal(await store.find(anew()), undefined)
      const third = anew()
      assert.ok(await store.insert(third))
      await store.identify(third, identifier)
      await store.identify(second, `${identifier}3`)
      assert.equal((await store.find(anew()))?.nonce, third.nonce)
      assert.equal(await store.find({ ...anew(), identifier: `${identifier}3` }), undefined)
    })

    it('binds at most ten identifiers to a payment', async () => {
      const payment = await takeIn(store)
      const names = Array.from({ length: 12 }, (_, n) => `order_0123456789-D${n}`)
      const others = [
        { ...newPayment(), payer: payment.payer },
        { ...newPayment(), nonce: payment.nonce },
      ]
      for (const other of others) {
        assert.ok(await store.insert(other))
        for (let n = 0; n < 10; n += 1) await store.identify(other, `order_0123456789-J${n}`)
      }
      const bound = []
      for (const name of names) bound.push(await store.identify(payment, name))
      assert.deepEqual(bound.slice(8), [true, true, false, false])
      const again = { ...payment, nonce: randomHex(32), requestHash: randomHex(32).slice(2) }
      const found = await Promise.all(names.map((identifier) => store.find({ ...again, identifier })))
      assert.equal(found.filter((row) => row?.nonce === payment.nonce).length, 10)
    })
  })
