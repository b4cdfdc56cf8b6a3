/** The quotas of POST {gateway_url}/verify: requests without a payment, and payments that are refused (decisions/0015). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { headerV1, post, price, sign, type SignedPayment } from '../../support/payments/buyer.ts'
import { openSale } from '../../support/payments/gateway.ts'

const { world, token, payer } = await openSale()

describe('the quotas of a client at the gateway', () => {
  it('answers 429 above the limit, also for a header that is no payment', async () => {
    const limited = await world.open({ limiter: createRateLimiter({ limit: 2 }) })
    await post(limited.url, {})
    await post(limited.url, { assetId: String(token) }, { 'X-PAYMENT': 'AAAA' })
    for (const headers of [{}, { 'X-PAYMENT': 'AAAA' }, { 'PAYMENT-SIGNATURE': 'AAAA' }]) {
      const answer = await post(limited.url, { assetId: String(token) }, headers)
      assert.deepEqual([answer.status, answer.body.error], [429, 'rate_limited'])
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
    }
    await limited.close()
  })

  it('sells to a client that has used up its limit of unpaid requests', async () => {
    const limited = await world.open({ limiter: createRateLimiter({ limit: 0 }) })
    assert.equal((await post(limited.url, {})).status, 429)
    const answer = await post(limited.url, { assetId: String(token) }, headerV1(await sign(payer)))
    assert.equal(answer.status, 200)
    await limited.close()
  })

  it('answers 429 to a client whose payments were refused as often as the limit, whatever it sends as payment', async () => {
    const limited = await world.open({ refusals: createRateLimiter({ limit: 2 }) })
    const buyWith = (payment: SignedPayment) => post(limited.url, { assetId: String(token) }, headerV1(payment))
    assert.equal((await buyWith(await sign(payer))).status, 200)
    const forged = { ...(await sign(payer)), signature: `0x${'11'.repeat(64)}1b` } as const
    assert.deepEqual([(await buyWith(forged)).status, (await buyWith(forged)).status], [402, 402])
    for (const payment of [forged, await sign(payer)]) {
      const answer = await buyWith(payment)
      assert.deepEqual([answer.status, answer.body.error], [429, 'rate_limited'])
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
    }
    assert.equal((await post(limited.url, {})).status, 402, 'unpaid requests are counted apart')
    const { units, gas, lostGas, balances, refused } = await limited.metrics()
    assert.deepEqual([units, lostGas, refused], [Number(price), 0, { invalid_signature: 2, rate_limited: 2 }])
    assert.ok(gas > 0 && (balances[world.facilitator.address] ?? 0) > 0)
    await limited.close()
  })
})
