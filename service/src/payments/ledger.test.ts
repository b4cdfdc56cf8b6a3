import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Hex } from '@touchstone/verdict'
import { testDatabases } from '../../test/support/database/databases.ts'
import type { Database } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { createLedger } from './ledger.ts'

const bytes = (count: number): Hex => `0x${randomBytes(count).toString('hex')}`
const newPayment = () => ({
  payer: bytes(20),
  nonce: bytes(32),
  requestHash: randomBytes(32).toString('hex'),
  payload: '{"from":"0x"}',
  validBefore: 2n ** 256n - 1n,
})

for (const { name, open, skip } of testDatabases()) {
  describe(`the ledger of payments on ${name}`, { skip }, () => {
    let database: Database
    let store: ReturnType<typeof createLedger>
    before(async () => {
      database = await open()
      await migrate(database)
      store = createLedger(database, { chainId: 84532, asset: bytes(20) })
    })
    after(() => database?.close())

    const kept = { proof: '{"a":1}', fromBlock: 7n, seconds: 30 }

    async function settling(seconds = 30) {
      const payment = newPayment()
      const claim = randomUUID()
      assert.ok(await store.claim(payment, claim, 30))
      assert.ok(await store.settling(payment, claim, { ...kept, seconds }))
      return { payment, claim }
    }

    it('is taken in by one claim of many at once', async () => {
      const payment = newPayment()
      const claimed = await Promise.all(Array.from({ length: 10 }, () => store.claim(payment, randomUUID(), 30)))
      assert.equal(claimed.filter(Boolean).length, 1)
      const row = await store.find(payment)
      assert.deepEqual([row?.state, row?.claimed, row?.requestHash], ['open', true, payment.requestHash])
    })

    it('is taken in anew, for another request too, when the claim on an open row has ended', async () => {
      const payment = newPayment()
      assert.ok(await store.claim(payment, randomUUID(), 0.01))
      await delay(30)
      assert.equal((await store.find(payment))?.claimed, false)
      const other = { ...payment, requestHash: randomBytes(32).toString('hex') }
      assert.ok(await store.claim(other, randomUUID(), 30))
      assert.equal((await store.find(payment))?.requestHash, other.requestHash)
    })

    it('goes to settling only under its own claim, and is then neither released nor claimed', async () => {
      const payment = newPayment()
      const claim = randomUUID()
      await store.claim(payment, claim, 30)
      assert.equal(await store.settling(payment, randomUUID(), kept), false)
      assert.equal(await store.settling(payment, claim, kept), true)
      assert.equal(await store.settling(payment, claim, kept), false)
      await store.dropOpen(payment, claim)
      assert.equal(await store.claim(payment, randomUUID(), 30), false)
      const row = await store.find(payment)
      assert.deepEqual([row?.state, row?.proof, row?.fromBlock], ['settling', kept.proof, 7n])
    })

    it('is forgotten when it is released, by its claim only', async () => {
      const payment = newPayment()
      const claim = randomUUID()
      await store.claim(payment, claim, 30)
      await store.dropOpen(payment, randomUUID())
      assert.ok(await store.find(payment))
      await store.dropOpen(payment, claim)
      assert.equal(await store.find(payment), undefined)
    })

    it('is leased to one at a time, after the claim has ended or was given back', async () => {
      const { payment, claim } = await settling()
      assert.equal(await store.lease(payment, randomUUID(), 30), undefined)
      await store.releaseClaim(payment, claim)
      const leases = await Promise.all(Array.from({ length: 5 }, () => store.lease(payment, randomUUID(), 30)))
      assert.equal(leases.filter((row) => row !== undefined).length, 1)
    })

    it('keeps its first answer and transaction', async () => {
      const { payment } = await settling()
      const [first, second] = [bytes(32), bytes(32)]
      await store.sent(payment, second)
      assert.equal((await store.find(payment))?.transaction, second)
      assert.equal(await store.done(payment, { transaction: first, answer: 'one' }), 'one')
      assert.equal(await store.done(payment, { transaction: second, answer: 'two' }), 'one')
      const row = await store.find(payment)
      assert.deepEqual([row?.state, row?.transaction, row?.answer], ['done', first, 'one'])
      await store.reject(payment, 'authorization_expired')
      assert.equal((await store.find(payment))?.state, 'done')
    })

    it('is dead with its reason, or dropped by its claim only', async () => {
      const one = await settling()
      await store.reject(one.payment, 'nonce_already_used')
      assert.deepEqual(
        [(await store.find(one.payment))?.state, (await store.find(one.payment))?.reason],
        ['rejected', 'nonce_already_used'],
      )
      const two = await settling()
      await store.dropSettling(two.payment, randomUUID())
      assert.ok(await store.find(two.payment))
      await store.dropSettling(two.payment, two.claim)
      assert.equal(await store.find(two.payment), undefined)
    })

    it('lists what has no end yet, without rows in work, and what was settled lately', async () => {
      const other = createLedger(database, { chainId: 84532, asset: bytes(20) })
      const left = newPayment()
      const claim = randomUUID()
      await other.claim(left, claim, 30)
      await other.settling(left, claim, { ...kept, seconds: 30 })
      assert.deepEqual(await other.unfinished(10, 60), [])
      await other.releaseClaim(left, claim)
      assert.deepEqual(await other.unfinished(10, 60), [{ payer: left.payer, nonce: left.nonce }])
      await other.done(left, { transaction: bytes(32), answer: 'one' })
      assert.equal((await other.unfinished(10, 60)).length, 1)
      await delay(20)
      assert.equal((await other.unfinished(10, 0.01)).length, 0)
    })

    it('forgets what is older than it must be, and keeps the rest', async () => {
      const { payment } = await settling()
      await store.done(payment, { transaction: bytes(32), answer: 'one' })
      await assert.rejects(store.prune(0.5), /at least one day/)
      await store.prune(1)
      assert.ok(await store.find(payment))
      await database.query(`update payment set settled_at = settled_at - interval '2 days'`)
      assert.ok((await store.prune(1)) >= 1)
      assert.equal(await store.find(payment), undefined)
    })

    it('lets one at a time work under a key', async () => {
      let inside = 0
      let most = 0
      const address = bytes(20)
      const work = async () => {
        most = Math.max(most, (inside += 1))
        await delay(5)
        inside -= 1
      }
      if (database.dialect === 'postgres') {
        await Promise.all(Array.from({ length: 5 }, () => store.locked(address, work)))
        assert.equal(most, 1)
      } else assert.equal(await store.locked(address, async () => 'done'), 'done')
    })
  })
}
