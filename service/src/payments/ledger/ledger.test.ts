import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { deadProcess, newPayment, openLedger, paid, randomHex, takeIn } from '../../../test/support/payments/ledger.ts'
import { lazily, useOpened } from '../../../test/support/opened.ts'
import { hexToBytes } from '../../db/columns.ts'
import type { NewPayment } from './intake.ts'
import { createPaymentLedger } from './ledger.ts'
import { parsePayload } from './table.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`the ledger of payments on ${name}`, { skip }, () => {
    const opened = useOpened(() => openLedger(open))
    const store = lazily(() => opened.ledger)
    const database = lazily(() => opened.database)

    const settling = (ledger = store) => takeIn(ledger)

    it('takes a payment in once, of many at once', async () => {
      const payment = newPayment()
      const others = Array.from({ length: 5 }, newPayment)
      const duplicates = opened.ledgerOf()
      const inserted = await Promise.all([
        store.insert(payment),
        duplicates.insert(payment),
        ...others.map(store.insert),
      ])
      assert.equal(inserted.filter(Boolean).length, 6)
      const row = await store.find(payment)
      assert.deepEqual(
        [row?.state, row?.proof, row?.fromBlock, row?.requestHash, parsePayload(row?.payload ?? '')],
        ['settling', payment.proof, 7n, payment.requestHash, payment.payment],
      )
      assert.equal(await store.find(newPayment()), undefined)
    })

    it('takes in one of two payments with one nonce that come together, and all others', async () => {
      const transfer = newPayment()
      const deposit = { ...transfer, requestHash: randomHex(32).slice(2) }
      const inserted = await Promise.all([transfer, newPayment(), deposit, newPayment()].map(store.insert))
      assert.deepEqual(inserted, [true, true, false, true])
      assert.equal((await store.find(transfer))?.requestHash, transfer.requestHash)
    })

    it('takes in anew what another version claimed and left, and nothing over what that one works on', async () => {
      const payment = await settling()
      const setOpen = (left: string) =>
        opened.change(
          payment,
          `state = 'open', claim = null, holder = null, claimed_until = clock_timestamp() + interval '${left}'`,
        )
      const named = { ...payment, nonce: randomHex(32), identifier: 'order_0123456789-F' }
      const other = { ...newPayment(), ...payment, tokenId: 8n, requestHash: randomHex(32).slice(2), proof: '{"b":1}' }
      Object.assign(other, { fromBlock: 8n, payment: { ...payment.payment, value: 11n, validBefore: 12n } })
      await setOpen('1 hour')
      assert.equal(await store.find(payment), undefined)
      assert.equal(await store.insert({ ...other, identifier: named.identifier }), false)
      assert.equal(await store.find(named), undefined)
      await setOpen('0 s')
      assert.equal(await store.insert({ ...other, identifier: named.identifier }), true)
      const row = await store.find(named)
      assert.deepEqual(
        [row?.nonce, row?.requestHash, row?.proof, row?.fromBlock, parsePayload(row?.payload ?? '')],
        [payment.nonce, other.requestHash, other.proof, other.fromBlock, other.payment],
      )
      const [stored] = await database.query(
        `select token_id::text, amount::text, valid_before::text, holder, claim is not null as claimed from payment where nonce = $1`,
        [hexToBytes(payment.nonce)],
      )
      assert.deepEqual(stored, {
        token_id: '8',
        amount: '11',
        valid_before: '12',
        holder: opened.holder.number,
        claimed: true,
      })
    })

    it('takes nothing in over a payment that it has, and binds no identifier to that', async () => {
      const payment = await settling()
      const again = { ...payment, requestHash: randomHex(32).slice(2), identifier: 'order_0123456789-G' }
      const isUnchanged = async () => {
        await opened.change(payment, `claimed_until = claimed_until - interval '1 hour'`)
        assert.equal(await store.insert(again), false)
        assert.equal((await store.find(payment))?.requestHash, payment.requestHash)
        assert.equal(await store.find({ ...again, nonce: randomHex(32) }), undefined)
      }
      await isUnchanged()
      await store.done(payment, paid('{"a":1}'))
      await isUnchanged()
    })

    it('finds an undelivered proof of the same payer for the same request', async () => {
      const payment = await settling()
      const again = { ...payment, nonce: randomHex(32) }
      assert.equal(await store.find(again), undefined)
      await store.setUndelivered(payment, true)
      assert.equal((await store.find(again))?.nonce, payment.nonce)
      assert.equal(await store.find({ ...again, requestHash: randomHex(32).slice(2) }), undefined)
      assert.equal(await store.find({ ...again, payer: randomHex(20) }), undefined)
      await store.setUndelivered(payment, false)
      assert.equal(await store.find(again), undefined)
    })

    it('replaces the answer of an undelivered proof once, of many at once, and of a delivered one never', async () => {
      const payment = await settling()
      const [from, ...news] = ['{"a":1}', '{"a":2}', '{"a":3}', '{"a":4}'] as const
      await store.done(payment, paid(from))
      await store.delivered(payment)
      assert.equal(await store.renew(payment, { from, to: news[0] }), false)
      await store.setUndelivered(payment, true)
      const renewed = await Promise.all(news.map((to) => store.renew(payment, { from, to })))
      assert.equal(renewed.filter(Boolean).length, 1)
      const answer = news[renewed.indexOf(true)] ?? ''
      const found = await store.find({ ...payment, nonce: randomHex(32) })
      assert.deepEqual([found?.answer, found?.isOther], [answer, true])
      const own = await store.find(payment)
      assert.deepEqual([own?.answer, own?.isOther], [answer, false])
      assert.equal(await store.renew(payment, { from, to: answer }), false)
    })

    it('knows the transaction that a remote facilitator names, and the one that a reorganisation has made of it', async () => {
      const [payment, other] = [await settling(), await settling()]
      const { transaction, answer, block } = paid('{"a":1}')
      await store.setTransaction(payment, transaction)
      const known = await Promise.all([payment, other].map((key) => store.sentFor(key, transaction)))
      assert.deepEqual(
        known.map(({ transactions }) => transactions),
        [[transaction], []],
      )
      assert.ok(known.every(({ since }) => since > 0n))
      await store.done(payment, { transaction, answer, block })
      const moved = { transaction: randomHex(32), block: { number: 8n, hash: randomHex(32) } }
      await Promise.all([payment, other].map((key) => store.moved(key, moved)))
      const [row] = await store.settledIn(moved.block)
      assert.deepEqual([row?.nonce, row?.transaction], [payment.nonce, moved.transaction])
      assert.deepEqual((await store.sentFor(other, transaction)).transactions, [])
    })

    it('puts a moved payment to the mined transaction of this hash, and to no other', async () => {
      const payment = await settling()
      await store.done(payment, paid('{"a":1}'))
      const moved = { transaction: randomHex(32), block: { number: 8n, hash: randomHex(32) } }
      const settlementOf = async () => {
        await store.moved(payment, moved)
        return (await store.find(payment))?.settlement
      }
      await opened.transaction(randomHex(32))
      await opened.transaction(moved.transaction, { state: 'pending' })
      assert.equal(await settlementOf(), null)
      const pk = await opened.transaction(moved.transaction)
      assert.equal(await settlementOf(), pk)
      await database.query('delete from settlement')
    })

    it('lists the rejected payments that may be paid yet, those that expire first before the others', async () => {
      const [last, first, used, expired] = [await settling(), await settling(), await settling(), await settling()]
      const now = Math.floor(Date.now() / 1000)
      for (const [payment, reason, validBefore] of [
        [last, 'payment_rejected', now + 7_200],
        [first, 'insufficient_funds', now + 3_600],
        [used, 'nonce_already_used', now + 3_600],
        [expired, 'payment_rejected', now - 1_000],
      ] as const) {
        await store.reject(payment, reason)
        await opened.change(payment, `valid_before = ${validBefore}`)
      }
      const listed = async () => (await store.rejected(10)).map(({ nonce }) => nonce)
      assert.deepEqual(await listed(), [first.nonce, last.nonce])
      assert.equal((await store.rejected(1)).length, 1)
    })

    it('keeps the payments and identifiers of each token and chain apart', async () => {
      const payment = await settling()
      const identifier = 'order_0123456789-E'
      const [otherToken, otherChain] = [
        createPaymentLedger(database, { chainId: 84532, asset: randomHex(20), holder: opened.holder }),
        createPaymentLedger(database, { chainId: 8453, asset: opened.asset, holder: opened.holder }),
      ]
      for (const other of [otherToken, otherChain]) {
        assert.equal(await other.find(payment), undefined)
        assert.ok(await other.insert({ ...payment, identifier }))
        for (let n = 0; n < 9; n += 1) await other.identify(payment, `${identifier}${n}`)
      }
      assert.equal(await store.find({ ...payment, nonce: randomHex(32), identifier }), undefined)
      await store.identify(payment, identifier)
      assert.equal((await store.find({ ...payment, nonce: randomHex(32), identifier }))?.nonce, payment.nonce)
    })

    it('notes which payments are transfers, and which are deposits', async () => {
      const [transfer, deposit] = [newPayment(), newPayment()]
      const { from, nonce: salt } = deposit.payment
      const accounts = {
        payer: from,
        payerAuthorizer: from,
        receiver: from,
        receiverAuthorizer: from,
        token: opened.asset,
      }
      const payment = { ...deposit.payment, deposit: { config: { ...accounts, salt, withdrawDelay: 900 }, salt } }
      for (const one of [transfer, { ...deposit, payment }]) assert.ok(await store.insert(one))
      const kindOf = async ({ nonce }: NewPayment) =>
        (await database.query<{ kind: string }>('select kind from payment where nonce = $1', [hexToBytes(nonce)]))[0]
          ?.kind
      assert.deepEqual([await kindOf(transfer), await kindOf(deposit)], ['transfer', 'deposit'])
    })

    it('finds a proof that a process was sending when it ended, and none that one is sending or has sent', async () => {
      const dying = opened.ledgerOf(deadProcess)
      const [sending, sent, broken] = [await settling(dying), await settling(dying), await settling(dying)]
      for (const payment of [sending, sent, broken]) await dying.done(payment, paid('{"a":1}'))
      await Promise.all([dying.delivered(sent), dying.setUndelivered(broken, true)])
      const again = (payment: NewPayment) => store.find({ ...payment, nonce: randomHex(32) })
      const found = await Promise.all([sending, sent, broken].map(again))
      assert.deepEqual(
        found.map((row) => row?.nonce),
        [sending.nonce, undefined, broken.nonce],
      )
      const [alive, failed] = [await settling(), await settling()]
      for (const payment of [alive, failed]) await store.done(payment, paid('{"a":1}'))
      await store.setUndelivered(failed, true)
      await store.delivered(failed)
      assert.deepEqual(
        (await Promise.all([alive, failed].map(again))).map((row) => row?.nonce),
        [undefined, failed.nonce],
      )
      assert.equal((await store.find(alive))?.undelivered, false)
    })

    it('finds a payment that a process was settling when it ended, and none that one is settling', async () => {
      const [left, held] = [await settling(opened.ledgerOf(deadProcess)), await settling()]
      const again = (payment: NewPayment) => store.find({ ...payment, nonce: randomHex(32) })
      const found = await Promise.all([left, held].map(again))
      assert.deepEqual(
        found.map((row) => row && [row.nonce, row.undelivered]),
        [[left.nonce, true], undefined],
      )
      assert.equal((await store.find(held))?.undelivered, false)
      await store.reject(left, 'authorization_expired')
    })

    it('keeps a mark that was set before the end, and marks no deposit by its end', async () => {
      const [pending, deposit, lost, refused] = [await settling(), await settling(), await settling(), await settling()]
      for (const payment of [deposit, lost]) await opened.change(payment, `kind = 'deposit', channel = nonce`)
      for (const payment of [pending, lost, refused]) await store.setUndelivered(payment, true)
      for (const payment of [pending, deposit, lost]) await store.done(payment, paid('{"a":1}'))
      await store.reject(refused, 'payment_rejected')
      assert.equal(await store.setUndelivered(refused, true), null)
      const found = async () => {
        const payments = [pending, deposit, lost, refused]
        const rows = await Promise.all(payments.map((payment) => store.find({ ...payment, nonce: randomHex(32) })))
        return rows.map((row) => row?.nonce)
      }
      assert.deepEqual(await found(), [pending.nonce, undefined, lost.nonce, undefined])
      for (const payment of [pending, deposit, lost]) await store.delivered(payment)
      assert.deepEqual(await found(), [pending.nonce, undefined, lost.nonce, undefined])
    })

    it('finds an undelivered proof for those only whose request it answers, of many that look at once', async () => {
      const payment = await settling()
      const again = { ...payment, nonce: randomHex(32) }
      const [known, none] = await Promise.all([store.find(payment), store.find(again)])
      assert.deepEqual([known?.nonce, none], [payment.nonce, undefined])
    })

    it('finds no proof of an hour ago for a new payment, although its own is looked for at the same moment', async () => {
      const payment = await settling()
      await store.done(payment, paid('{"a":1}'))
      await store.setUndelivered(payment, true)
      const age = (span: string) => opened.change(payment, `settled_at = settled_at - interval '${span}'`)
      await age('50 minutes')
      assert.equal((await store.find({ ...payment, nonce: randomHex(32) }))?.nonce, payment.nonce)
      await age('10 minutes')
      const [known, none] = await Promise.all([store.find(payment), store.find({ ...payment, nonce: randomHex(32) })])
      assert.deepEqual([known?.nonce, none], [payment.nonce, undefined])
    })

    it('gives a row to one process at a time, once no living one works on it', async () => {
      const ours = await settling()
      assert.deepEqual(await store.adopt(10, ours), [])
      await store.release(ours)
      const left = await settling(opened.ledgerOf(deadProcess))
      const adopted = await Promise.all(Array.from({ length: 3 }, () => store.adopt(10)))
      const nonces = adopted.flat().map(({ nonce }) => nonce)
      assert.deepEqual(nonces.toSorted(), [ours.nonce, left.nonce].toSorted())
      assert.deepEqual(await store.adopt(10), [])
    })

    it('gives a row of this process back to it where it works on none, from ten seconds after the write on', async () => {
      const payment = await settling()
      assert.deepEqual(await store.adopt(10), [])
      const age = () => opened.change(payment, `claimed_until = claimed_until - interval '11 s'`)
      await age()
      const others = [newPayment(), payment, newPayment()]
      assert.deepEqual(await store.adopt(10, undefined, others), [])
      assert.deepEqual(await store.adopt(10, payment, others), [])
      assert.deepEqual(
        (await store.adopt(10)).map(({ nonce, undelivered }) => [nonce, undelivered]),
        [[payment.nonce, true]],
      )
      assert.deepEqual(await store.adopt(10, payment), [])
      await age()
      assert.equal((await store.adopt(10, payment)).length, 1)
      // The clock of the database was ahead at the write, and was set back.
      await opened.change(payment, `claimed_until = claimed_until + interval '1 day'`)
      assert.equal((await store.adopt(10, payment)).length, 1)
    })

    it('keeps its first answer and transaction', async () => {
      const payment = await settling()
      const first = paid('one')
      const ended = await Promise.all([store.done(payment, first), store.done(payment, first)])
      assert.deepEqual(ended, [
        { answer: 'one', isNew: true },
        { answer: 'one', isNew: false },
      ])
      assert.deepEqual(await store.done(payment, paid('two')), { answer: 'one', isNew: false })
      const row = await store.find(payment)
      assert.deepEqual([row?.state, row?.transaction, row?.answer], ['done', first.transaction, 'one'])
      await store.reject(payment, 'authorization_expired')
      assert.equal((await store.find(payment))?.state, 'done')
      await assert.rejects(store.done(newPayment(), first), /no row/)
    })

    it('rejects a payment with its reason, and drops one of its own process only', async () => {
      const one = await settling()
      await store.reject(one, 'nonce_already_used')
      const row = await store.find(one)
      assert.deepEqual([row?.state, row?.reason], ['rejected', 'nonce_already_used'])
      const other = await settling(opened.ledgerOf(deadProcess))
      await store.drop(other)
      assert.ok(await store.find(other))
      await store.adopt(10, other)
      await store.drop(other)
      assert.equal(await store.find(other), undefined)
    })

    it('names the blocks of recent payments, and the payments of a block', async () => {
      const [one, two] = [await settling(), await settling()]
      const settled = paid('one')
      await Promise.all([store.done(one, settled), store.done(two, { ...paid('two'), block: settled.block })])
      const blocks = await store.recentBlocks(60)
      const { age, ...block } = blocks.find(({ hash }) => hash === settled.block.hash) ?? { age: -1 }
      assert.ok(age >= 0 && age < 60)
      assert.deepEqual(block, { ...settled.block, hasRemoved: false })
      const nonces = (await store.settledIn(settled.block)).map(({ nonce }) => nonce)
      assert.deepEqual(nonces.toSorted(), [one.nonce, two.nonce].toSorted())
    })

    it('deletes unpaid rows and lost transactions after days, paid ones and their transactions after years', async () => {
      const [payment, refused] = [await settling(), await settling()]
      await store.done(payment, paid('one'))
      await store.reject(refused, 'payment_rejected')
      for (const state of ['mined', 'lost']) await opened.transaction(randomHex(32), { state })
      const transactions = async () =>
        (await database.query<{ state: string }>('select state from settlement order by nonce')).map(
          ({ state }) => state,
        )
      const ages = { paidDays: 3_650, otherDays: 7 }
      await assert.rejects(store.prune({ ...ages, otherDays: 0.5 }), /at least one day/)
      const age = async (days: number) => {
        await database.query(`update payment set settled_at = settled_at - make_interval(days => ${days})`)
        await database.query(
          `update settlement set sent_at = sent_at - make_interval(days => ${days}), mined_at = mined_at - make_interval(days => ${days})`,
        )
        await store.prune(ages)
        return [await store.find(payment), await store.find(refused)].map((row) => row?.state)
      }
      assert.deepEqual(await age(6), ['done', 'rejected'])
      await database.query(`update payment set settled_at = settled_at - interval '20 years'`)
      await store.prune(ages, Date.now() - 20 * 366 * 86_400_000)
      assert.ok(await store.find(payment), 'the clock of the database alone is twenty years ahead')
      await database.query(`update payment set settled_at = settled_at + interval '20 years'`)
      assert.deepEqual([await age(2), await transactions()], [['done', undefined], ['mined']])
      assert.deepEqual([await age(3_650), await transactions()], [[undefined, undefined], []])
    })
  })
}
