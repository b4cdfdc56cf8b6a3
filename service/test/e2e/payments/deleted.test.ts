/**
 * The row of a payment that could not be sent is deleted. Its header may come again, and is charged for one proof (spec §4.8). A row whose
 * transfer failed is rejected, and not executed again. The database may lose the answer to either.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toHex } from 'viem'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import { asset, buy, buySettled, codesOf, keyOf, price, sign } from '../../support/payments/buyer.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { until } from '../../support/wait.ts'

type Store = typeof world.store
const { world, token, payer, charged } = await openSale()
const another = await world.mint()

/** Opens a gateway; `isIdle` returns whether it settles nothing any more. */
async function openWatched(changed: Partial<Store>, more: Parameters<typeof world.open>[0] = {}) {
  let working = Infinity
  const adopt: Store['adopt'] = (...args) => {
    const [, key, own] = args
    if (key === undefined) working = own?.length ?? 0
    return world.store.adopt(...args)
  }
  const ledger = { ...world.store, adopt, ...changed }
  const gateway = await world.open({ ledger, deadlines: { settleMs: 500 }, ...more })
  return { gateway, isIdle: async () => (await gateway.reconcile(), working === 0) }
}

/** Opens a gateway that can send nothing before `cheapen`, because fees are above the limit. */
async function openWhileDear(changed: Partial<Store>) {
  let isDear = true
  const rpc: RpcClient = async (method, params) => {
    const answer = await world.provider(method, params)
    return isDear && method === 'eth_maxPriorityFeePerGas' ? toHex(200n * 10n ** 9n) : answer
  }
  return { ...(await openWatched(changed, { rpc })), cheapen: () => (isDear = false) }
}

/** Deletes the row, and loses the answer. */
const dropWithoutAnswer: Store['drop'] = async (key) => {
  await world.store.drop(key)
  throw new Error('connection terminated')
}

describe('a payment whose row was deleted without an answer', () => {
  for (const [what, failures] of [
    ['is not settled', 0],
    ['is not settled while the ledger does not answer either', 2],
  ] as const)
    it(`${what}, and the next try of its header is charged once`, async () => {
      let [drops, looks] = [0, 0]
      const { gateway, cheapen, isIdle } = await openWhileDear({
        drop: (key) => ((drops += 1) === 1 ? dropWithoutAnswer(key) : world.store.drop(key)),
        async find(key) {
          const isOfSettlement = key.requestHash === undefined && drops > 0
          if (isOfSettlement && (looks += 1) <= failures) throw new Error('connection terminated')
          return world.store.find(key)
        },
      })
      const payment = await sign(payer)
      assert.deepEqual(codesOf(await buy(gateway.url, token, payment)), [503, 'settlement_pending'])
      cheapen()
      await until(async () => (await isIdle()) || (await charged()) > 0n)
      assert.equal(await charged(), 0n)
      assert.ok(looks > failures)
      assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
      assert.equal(await charged(), price)
      await gateway.close()
    })

  it('proves another asset, where its header comes back for that', async () => {
    const { gateway, cheapen } = await openWhileDear({ drop: dropWithoutAnswer })
    const payment = await sign(payer)
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
    cheapen()
    const sold = await buySettled(gateway.url, another, payment)
    assert.deepEqual([sold.status, sold.body.assetId, await charged()], [200, String(another), price])
    await gateway.close()
  })
})

describe('a payment whose row is deleted while its header comes again', () => {
  it('begins anew after the end of that: no answer says that nothing was charged', async () => {
    const answered = Promise.withResolvers<void>()
    let [isDropped, finds] = [false, 0]
    const { gateway, cheapen } = await openWhileDear({
      async drop(key) {
        const fate = await world.store.drop(key)
        isDropped = true
        await answered.promise
        return fate
      },
      async find(key) {
        const row = await world.store.find(key)
        if (isDropped && key.requestHash !== undefined) finds += 1
        return row
      },
    })
    const payment = await sign(payer)
    const key = keyOf(payment)
    assert.deepEqual(codesOf(await buy(gateway.url, token, payment)), [503, 'settlement_pending'])
    await until(() => isDropped)
    cheapen()
    const again = buy(gateway.url, token, payment)
    await until(async () => finds > 1 || (await world.store.find(key)) !== undefined)
    answered.resolve()
    const { error } = (await again).body
    if (error === 'payment_unavailable') assert.equal(await world.store.find(key), undefined)
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.equal(await charged(), price)
    await gateway.close()
  })
})

describe('a payment that was rejected without an answer', () => {
  it('is not executed again', async () => {
    const poor = await world.payer(price)
    const payment = await sign(poor)
    let [isRejected, looks] = [false, 0]
    const { gateway, isIdle } = await openWatched({
      async reject(...args) {
        await world.store.reject(...args)
        isRejected = true
        throw new Error('connection terminated')
      },
      async find(key) {
        if (isRejected && key.nonce === payment.nonce) looks += 1
        return world.store.find(key)
      },
    })
    const setMoney = (amount: bigint) => world.rpc('anvil_dealERC20', [poor.address, asset, toHex(amount)])
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
    await world.sent(payment)
    await setMoney(0n)
    await world.mineAgain()
    await until(() => isRejected)
    await setMoney(price)
    await until(async () => (await isIdle()) || looks > 1)
    assert.deepEqual([looks, await charged()], [1, 0n])
    assert.deepEqual(codesOf(await buy(gateway.url, token, payment)), [402, 'insufficient_funds'])
    await gateway.close()
  })
})
