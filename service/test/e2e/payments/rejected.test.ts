/** A payment whose transfer has failed (spec §4.8). It is paid once a stranger executes it, in every answer and in the books. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, toHex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { hiddenLogs } from '../../support/fault-rpc.ts'
import {
  asset,
  buy,
  buySettled,
  codesOf,
  headerV1,
  price,
  sign,
  type Answered,
  type SignedPayment,
} from '../../support/payments/buyer.ts'
import { openSale, type Opened } from '../../support/payments/gateway.ts'
import { until } from '../../support/wait.ts'

const { world, token, charged } = await openSale()
afterEach(() => world.heal())

const setMoney = (address: Hex, amount: bigint) => world.rpc('anvil_dealERC20', [address, asset, toHex(amount)])

describe('a stranger submits it after its transfer has failed', () => {
  let poor: PrivateKeyAccount
  let payment: SignedPayment
  let gateway: Opened

  beforeEach(async () => {
    poor = await world.payer(price)
    payment = await sign(poor)
    gateway = await world.open({ deadlines: { settleMs: 500 } })
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
    await world.sent(payment)
    await setMoney(poor.address, 0n)
    await world.mineAgain()
    const failed = await buySettled(gateway.url, token, payment)
    assert.deepEqual(codesOf(failed), [402, 'insufficient_funds'])
    assert.equal((await status())['status'], 'rejected')
    // The failed transaction shows the authorization to everyone.
    await setMoney(poor.address, 2n * price)
    await world.submit(payment)
  })
  afterEach(() => gateway.close())

  async function status(): Promise<Record<string, unknown>> {
    const url = `${gateway.url}/payments/${payment.from}/${payment.nonce}`
    return (await fetch(url, { headers: headerV1(payment) })).json() as Promise<Record<string, unknown>>
  }

  /** Asserts that another payment of the buyer gets the proof of the first one, and is not executed. */
  async function assertPaidOnce(): Promise<void> {
    await using other = await world.open()
    const next = await buySettled(other.url, token, await sign(poor))
    assert.equal(next.status, 200)
    assert.equal(next.text, (await buySettled(gateway.url, token, payment)).text)
    assert.equal(await charged(), price)
    assert.equal((await world.book.find(payment.from, payment.nonce))?.outcome, 'settled')
  }

  it('a repeat gets the proof, charged once', async () => {
    const answer = await buySettled(gateway.url, token, payment)
    assert.deepEqual([answer.status, answer.body.assetId], [200, String(token)])
    assert.equal((await buySettled(gateway.url, token, payment)).text, answer.text)
    await assertPaidOnce()
  })

  it('its status is done, with the proof', async () => {
    const { status: state, proof } = await status()
    assert.equal(state, 'done')
    assert.deepEqual(proof, (await buySettled(gateway.url, token, payment)).body)
    await assertPaidOnce()
  })

  it('the reconciliation finds it, so that the books have it', async () => {
    await gateway.reconcile()
    assert.equal((await world.book.find(payment.from, payment.nonce))?.outcome, 'settled')
    await assertPaidOnce()
  })

  it('another authorization under its nonce needs a new nonce', async () => {
    const other = await buy(gateway.url, token, await sign(poor, { nonce: payment.nonce, validAfter: 1n }))
    assert.deepEqual(codesOf(other), [402, 'nonce_already_used'])
  })

  it('another payment of its payer gets 429 with the time to wait', async () => {
    const next = await buy(gateway.url, token, await sign(poor))
    assert.deepEqual(codesOf(next), [429, 'payer_blocked'])
    const wait = Number(next.headers.get('retry-after'))
    assert.ok(wait > 500 && wait <= 600, String(wait))
    assert.equal(await charged(), price)
  })

  it('nothing is said of it while the chain cannot be read, or does not show by what it was paid', async () => {
    for (const fault of ['die', hiddenLogs] as const) {
      world.payFaults.set(fault)
      for (const answer of [await buy(gateway.url, token, payment), { body: await status() }])
        assert.equal(answer.body['error'], 'settlement_pending')
    }
    await world.heal()
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
  })
})

describe('a transaction that fails, because the authorization is used already', () => {
  for (const [what, isCancelled, ends, paid] of [
    ['is the fault of a payer that cancelled it, who is blocked', true, [402, 'nonce_already_used', 429], 0n],
    ['is no fault of the payer where a stranger executed it', false, [200, undefined, 200], 2n],
  ] as const)
    it(what, async () => {
      await using gateway = await world.open({ deadlines: { settleMs: 500 } })
      const [buyer, before] = [await world.payer(), await world.transactions()]
      const payment = await sign(buyer)
      await world.automine(false)
      assert.equal((await buy(gateway.url, token, payment)).status, 503)
      await world.sent(payment)
      const [sent] = await world.database.query<{ raw: Uint8Array }>(
        'select raw from settlement order by pk desc limit 1',
      )
      await world.rpc('anvil_dropAllTransactions')
      await world.automine(true)
      await (isCancelled ? world.cancel(buyer, payment.nonce) : world.submit(payment))
      await world.rpc('eth_sendRawTransaction', [bytesToHex(sent?.raw ?? new Uint8Array())])
      await until(async () => (await world.transactions()) - before === 1)
      const first = await buySettled(gateway.url, token, payment)
      await until(async () => (await gateway.metrics()).gas > 0)
      const next = await buySettled(gateway.url, await world.mint(), await sign(buyer))
      assert.deepEqual([first.status, first.body.error, next.status], ends)
      assert.equal(await charged(), paid * price)
    })
})

it('a buyer whose payment failed after 503 buys with the next one, whose answer does not name that failure', async () => {
  await using patient = await world.open({ deadlines: { settleMs: 5_000, followMs: 500 } })
  const buyer = await world.payer()
  const first = await sign(buyer)
  await world.automine(false)
  assert.equal((await buy(patient.url, token, first)).status, 503)
  await world.sent(first)
  await world.rpc('anvil_dropAllTransactions')
  await world.rpc('anvil_setNonce', [world.facilitator.address, toHex((await world.transactions()) + 1)])
  await world.automine(true)
  await world.cancel(buyer, first.nonce)
  let next: Answered | undefined
  buySettled(patient.url, token, await sign(buyer)).then((answer) => (next = answer), assert.fail)
  await until(async () => (await world.mine(4), next !== undefined))
  assert.deepEqual([next?.status, next?.body.error, await charged()], [200, undefined, price])
})
