/** Which payments and blocks are looked at again because the chain may still change them. */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { openLedger, randomHex, takeIn } from '../../../test/support/payments/ledger.ts'
import { lazily, useOpened } from '../../../test/support/opened.ts'
import type { BlockId } from '../../domain/chain.ts'
import type { PaymentKey } from '../key.ts'
import { createPaymentLedger } from './ledger.ts'

for (const { name, open, skip } of testDatabases())
  describe(`rechecks of payments on ${name}`, { skip }, () => {
    const opened = useOpened(() => openLedger(open))
    const store = lazily(() => opened.ledger)
    beforeEach(() => opened.database.query('delete from payment'))
    beforeEach(() => opened.database.query('delete from settlement'))

    const newBlock = (): BlockId => ({ number: 9n, hash: randomHex(32) })
    const age = (payment: PaymentKey, span: string) =>
      opened.change(payment, `settled_at = settled_at - interval '${span}'`)
    const noncesOf = (rows: readonly PaymentKey[]) => rows.map(({ nonce }) => nonce)

    async function settle(block: BlockId | null, by = store) {
      const payment = await takeIn(by)
      await by.done(payment, { transaction: randomHex(32), answer: '{"a":1}', block })
      return payment
    }

    async function reject(reason: string) {
      const payment = await takeIn(store)
      await store.reject(payment, reason)
      return payment
    }

    it('take the blocks of what ended lately: of payments that are paid, and of transactions that are mined', async () => {
      const other = createPaymentLedger(opened.database, {
        chainId: 84532,
        asset: randomHex(20),
        holder: opened.holder,
      })
      const [paid, old, elsewhere, left, moved] = [newBlock(), newBlock(), newBlock(), newBlock(), newBlock()]
      await settle(paid)
      await settle(null)
      await age(await settle(old), '2 minutes')
      await settle(elsewhere, other)
      await opened.change(await settle(left), `state = 'dead'`)
      await opened.change(await settle(moved), `state = 'settling'`)
      const [mined, lost, minedLong, onOtherChain] = [newBlock(), newBlock(), newBlock(), newBlock()]
      await opened.transaction(randomHex(32), { block: mined.hash, ago: '40 seconds' })
      await opened.transaction(randomHex(32), { block: lost.hash, state: 'lost' })
      await opened.transaction(randomHex(32), { block: minedLong.hash, ago: '2 minutes' })
      await opened.transaction(randomHex(32), { block: onOtherChain.hash, chainId: 8453 })
      await opened.transaction(randomHex(32))
      const blocks = await store.recentBlocks(60)
      assert.deepEqual(blocks.map(({ hash }) => hash).toSorted(), [paid.hash, mined.hash].toSorted())
      assert.deepEqual(new Set(blocks.map(({ number }) => number)), new Set([9n]))
    })

    it('take a block as old as what ended in it first, with whether any payment of it was removed', async () => {
      const block = newBlock()
      const [first, second] = [await settle(block), await settle(block)]
      await age(first, '40 minutes')
      const found = async () => {
        const [one, ...others] = await store.recentBlocks(7_200)
        return [Math.round((one?.age ?? 0) / 1_200), one?.hasRemoved, others.length]
      }
      assert.deepEqual(await found(), [2, false, 0])
      assert.equal(await store.removed(second), true)
      assert.deepEqual(await found(), [2, true, 0])
    })

    it('take the paid payments of a block for a day', async () => {
      const block = newBlock()
      const [paid, late, open] = [await settle(block), await settle(block), await settle(block)]
      await settle(newBlock())
      await age(paid, '23 hours')
      await age(late, '25 hours')
      await opened.change(open, `state = 'dead', reason = 'payment_rejected'`)
      assert.deepEqual(noncesOf(await store.settledIn(block)), [paid.nonce])
    })

    it('take rejected payments that may still be executed, for two hours, and within one hour those that were sent', async () => {
      const [valid, gone, expired, past] = [
        await reject('payment_rejected'),
        await reject('payment_rejected'),
        await reject('payment_rejected'),
        await reject('payment_rejected'),
      ]
      await age(valid, '110 minutes')
      await age(gone, '130 minutes')
      await opened.change(expired, `valid_before = floor(extract(epoch from clock_timestamp())) - 840`)
      await opened.change(past, `valid_before = floor(extract(epoch from clock_timestamp())) - 960`)
      assert.deepEqual(noncesOf(await store.rejected(10)), [expired.nonce, valid.nonce])
      assert.deepEqual(noncesOf(await store.rejected(1)), [expired.nonce])
      await opened.database.query('delete from payment')
      for (const reason of ['authorization_expired', 'nonce_already_used'] as const) {
        const [sent, unsent, sentLong] = [await reject(reason), await reject(reason), await reject(reason)]
        for (const payment of [sent, sentLong]) await opened.change(payment, 'tx_hash = nonce')
        await age(sent, '50 minutes')
        await age(sentLong, '70 minutes')
        assert.deepEqual(noncesOf(await store.rejected(10)), [sent.nonce], unsent.nonce)
        await opened.database.query('delete from payment')
      }
      // A version before this one rejected payments that had no proof yet.
      await opened.change(await reject('payment_rejected'), 'proof = null')
      assert.deepEqual(await store.rejected(10), [])
    })

    it('mark a paid payment once that a reorganisation has removed, and take it while it may be executed', async () => {
      const [removed, other, late, unplaced] = [
        await settle(newBlock()),
        await settle(newBlock()),
        await settle(newBlock()),
        await settle(null),
      ]
      const refused = await reject('payment_rejected')
      await settle(newBlock())
      for (const payment of [late, other, removed, unplaced])
        assert.deepEqual([await store.removed(payment), await store.removed(payment)], [true, false])
      await opened.change(other, `valid_before = valid_before - 1`)
      await age(late, '130 minutes')
      assert.equal(await store.removed(refused), false)
      await opened.change(refused, `reason = null`)
      assert.equal(await store.removed(refused), false)
      await opened.change(refused, `reason = 'removed', block_hash = nonce`)
      assert.deepEqual(noncesOf(await store.removedLately(10)), [other.nonce, removed.nonce])
      assert.deepEqual(noncesOf(await store.removedLately(1)), [other.nonce])
    })

    it('move a removed payment to its new block and to the transaction of the last hour there', async () => {
      const [payment, refused] = [await settle(newBlock()), await reject('payment_rejected')]
      await store.removed(payment)
      const moved = { transaction: randomHex(32), block: { number: 11n, hash: randomHex(32) } }
      await opened.transaction(moved.transaction, { ago: '70 minutes' })
      await opened.transaction(moved.transaction, { chainId: 8453 })
      for (const one of [payment, refused]) await store.moved(one, moved)
      const [row] = await store.settledIn(moved.block)
      assert.deepEqual(
        [row?.nonce, row?.transaction, row?.reason, row?.settlement],
        [payment.nonce, moved.transaction, null, null],
      )
      assert.deepEqual(
        (await store.recentBlocks(60)).map(({ number }) => number),
        [11n],
      )
      const pk = await opened.transaction(moved.transaction, { ago: '50 minutes' })
      await store.moved(payment, moved)
      assert.equal((await store.find(payment))?.settlement, pk)
      const rejected = await store.find(refused)
      assert.deepEqual([rejected?.reason, rejected?.transaction], ['payment_rejected', null])
    })
  })
