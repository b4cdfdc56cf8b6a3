/** A facilitator behind a URL: its word is never taken for the chain's (spec §4.8). */
import assert from 'node:assert/strict'
import { after, afterEach, describe, it } from 'node:test'
import { startFacilitator, type FacilitatorFault } from '../../support/payments/facilitator.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { buy, price, sign } from '../../support/payments/buyer.ts'

const { world, token, payer, charged } = await openSale()
const facilitator = await startFacilitator(world)
const gateway = await world.open({ facilitator: { url: facilitator.url } })
after(() => facilitator.close())
afterEach(() => {
  facilitator.set('none')
  return world.heal()
})

const longLived = () => sign(payer, { validBefore: BigInt(Math.floor(Date.now() / 1000)) + 120n })

describe('a remote facilitator', () => {
  it('sells, refuses a payer without money, and is asked for what it supports', async () => {
    assert.equal((await buy(gateway.url, token, await sign(payer))).status, 200)
    assert.equal(await charged(), price)
    const poor = await buy(gateway.url, token, await sign(await world.payer(0n)))
    assert.deepEqual([poor.status, poor.body.error], [402, 'insufficient_funds'])
    facilitator.set('status500', 'supported')
    const degraded = await world.open({ facilitator: { url: facilitator.url } })
    assert.equal(((await (await fetch(`${degraded.url}/health`)).json()) as { status: string }).status, 'degraded')
    await degraded.close()
  })

  for (const name of ['status500', 'garbage', 'hang', 'gone', 'blames', 'redirect'] satisfies FacilitatorFault[]) {
    it(`${name} on verify: 503 payment_unavailable, and the same header pays later`, async () => {
      const payment = await longLived()
      facilitator.set(name, 'verify')
      const answer = await buy(gateway.url, token, payment)
      assert.deepEqual([answer.status, answer.body.error], [503, 'payment_unavailable'])
      assert.equal(await charged(), 0n)
      facilitator.set('none')
      assert.equal((await buy(gateway.url, token, payment)).status, 200)
      assert.equal(await charged(), price)
    })
  }

  for (const name of ['status500', 'garbage', 'hang', 'gone', 'lost', 'lie', 'blames'] satisfies FacilitatorFault[]) {
    it(`${name} on settle: the proof or 503, one charge, and the same header gets the proof`, async () => {
      const payment = await longLived()
      facilitator.set(name, 'settle')
      const answer = await buy(gateway.url, token, payment)
      if (name === 'lost') assert.equal(answer.status, 200)
      else assert.deepEqual([answer.status, answer.body.error], [503, 'settlement_pending'])
      facilitator.set('none')
      assert.equal((await buy(gateway.url, token, payment)).status, 200)
      assert.equal(await charged(), price)
    })
  }

  it('that blames the buyer while the provider serves another chain: 503', async () => {
    const payment = await sign(await world.payer(0n))
    world.payFaults.set('other-chain')
    const answer = await buy(gateway.url, token, payment)
    assert.deepEqual([answer.status, answer.body.error], [503, 'payment_unavailable'])
  })
})
