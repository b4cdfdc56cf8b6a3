/** The quotas of POST {gateway_url}/verify: requests without a payment, and payments that are refused (decisions/0015). */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { buyThrough, channelHeader, installChannels, openChannel } from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import {
  buy,
  buySettled,
  codesOf,
  headerV1,
  post,
  price,
  sign,
  type Answered,
  type SignedPayment,
} from '../../support/payments/buyer.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { until } from '../../support/wait.ts'

const { world, token, payer, charged } = await openSale()

describe('the quotas of a client at the gateway', () => {
  it('answers 429 above the limit, also for a header that is no payment', async () => {
    await using limited = await world.open({ limiter: createRateLimiter({ limit: 2 }) })
    await post(limited.url, {})
    await post(limited.url, { assetId: String(token) }, { 'X-PAYMENT': 'AAAA' })
    for (const headers of [{}, { 'X-PAYMENT': 'AAAA' }, { 'PAYMENT-SIGNATURE': 'AAAA' }]) {
      const answer = await post(limited.url, { assetId: String(token) }, headers)
      assert.deepEqual(codesOf(answer), [429, 'rate_limited'])
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
    }
  })

  it('sells to a client that has used up its limit of unpaid requests', async () => {
    await using limited = await world.open({ limiter: createRateLimiter({ limit: 0 }) })
    assert.equal((await post(limited.url, {})).status, 429)
    const answer = await post(limited.url, { assetId: String(token) }, headerV1(await sign(payer)))
    assert.equal(answer.status, 200)
  })

  it('answers 429 to a client whose payments were refused as often as the limit, whatever it sends as payment', async () => {
    await using limited = await world.open({ refusals: createRateLimiter({ limit: 2 }) })
    const buyWith = (payment: SignedPayment) => post(limited.url, { assetId: String(token) }, headerV1(payment))
    assert.equal((await buyWith(await sign(payer))).status, 200)
    const forged = { ...(await sign(payer)), signature: `0x${'11'.repeat(64)}1b` } as const
    assert.deepEqual([(await buyWith(forged)).status, (await buyWith(forged)).status], [402, 402])
    for (const payment of [forged, await sign(payer)]) {
      const answer = await buyWith(payment)
      assert.deepEqual(codesOf(answer), [429, 'rate_limited'])
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
    }
    assert.equal((await post(limited.url, {})).status, 402, 'unpaid requests are counted apart')
    const { units, gas, lostGas, balances, refused } = await limited.metrics()
    assert.deepEqual([units, lostGas, refused], [Number(price), 0, { invalid_signature: 2, rate_limited: 2 }])
    assert.ok(gas > 0 && (balances[world.facilitator.address] ?? 0) > 0)
  })

  it('sells to a buyer whose payment was tried as often as the limit while its outcome was not known', async () => {
    await using limited = await world.open({ refusals: createRateLimiter({ limit: 2 }), deadlines: { settleMs: 300 } })
    const payment = await sign(payer)
    await world.automine(false)
    for (let n = 0; n < 3; n += 1) {
      assert.deepEqual(codesOf(await buy(limited.url, token, payment)), [503, 'settlement_pending'])
    }
    await world.mineAgain()
    assert.equal((await buySettled(limited.url, token, payment)).status, 200)
    assert.equal(await charged(), price)
  })
})

type Request = { readonly request: IncomingMessage; readonly response: ServerResponse }

describe('a client that hangs up before its purchase is stored', () => {
  /** Opens a gateway, and a function that hangs up while a purchase looks into the ledger. It resolves once the gateway has ended that. */
  async function openAbandoned(more: Parameters<typeof world.open>[0] = {}) {
    let whileLooking = async () => {}
    const find: typeof world.store.find = async (key) => {
      if (key.requestHash !== undefined) await whileLooking()
      return world.store.find(key)
    }
    const refusals = createRateLimiter({ limit: 2 })
    const gateway = await world.open({ ledger: { ...world.store, find }, refusals, ...more })
    const ended = async () => (await gateway.metrics()).refused['settlement_pending'] ?? 0

    /** `meanwhile` runs before the client hangs up. */
    async function abandon(headers: Record<string, string>, meanwhile = async () => {}): Promise<void> {
      const connection = new AbortController()
      const isClosed = Promise.withResolvers<void>()
      const onRequest = (message: unknown) => {
        const { request, response } = message as Request
        if (request.url === '/verify') response.once('close', () => isClosed.resolve())
      }
      const before = await ended()
      subscribe('http.server.request.start', onRequest)
      whileLooking = async () => {
        whileLooking = () => Promise.reject(new Error('The second client did not join the first one.'))
        await meanwhile()
        whileLooking = async () => {}
        connection.abort()
        await isClosed.promise
      }
      const body = JSON.stringify({ assetId: String(token) })
      await assert.rejects(fetch(`${gateway.url}/verify`, { method: 'POST', headers, body, signal: connection.signal }))
      await until(async () => (await ended()) > before)
      unsubscribe('http.server.request.start', onRequest)
    }
    return { ...gateway, abandon }
  }

  async function openAbandonedChannel() {
    await installChannels(world.rpc)
    const authorizer = attestationKey()
    const gateway = await openAbandoned(world.through(authorizer))
    const { voucher } = await openChannel(world, { url: gateway.url, token, authorizer })
    return { gateway, voucher: await voucher(2n * price) }
  }

  /** Sends a purchase, and waits until the gateway has read it. */
  async function sendAndWait(send: () => Promise<Answered>): Promise<{ readonly answer: Promise<Answered> }> {
    const isRead = Promise.withResolvers<void>()
    const onRequest = (message: unknown) => (message as Request).request.once('end', () => setImmediate(isRead.resolve))
    subscribe('http.server.request.start', onRequest)
    const answer = send()
    await isRead.promise
    unsubscribe('http.server.request.start', onRequest)
    return { answer }
  }

  it('uses up its quota of refused payments', async () => {
    await using gateway = await openAbandoned()
    for (let n = 0; n < 2; n += 1) await gateway.abandon(headerV1(await sign(payer)))
    assert.equal((await buy(gateway.url, token, await sign(payer))).body.error, 'rate_limited')
    assert.equal(await charged(), 0n)
  })

  it('uses it up with vouchers, too', async () => {
    const { gateway, voucher } = await openAbandonedChannel()
    for (let n = 0; n < 2; n += 1) await gateway.abandon(channelHeader(voucher))
    assert.equal((await buyThrough(gateway.url, token, voucher)).body.error, 'rate_limited')
    await gateway.close()
  })

  it('leaves the purchase to a second one that has sent the same payment, which is charged once', async () => {
    const exact = { gateway: await openAbandoned(), headers: headerV1(await sign(payer)), charge: price }
    const channel = await openAbandonedChannel()
    const vouched = { gateway: channel.gateway, headers: channelHeader(channel.voucher), charge: 0n }
    for (const { gateway, headers, charge } of [exact, vouched]) {
      const before = await charged()
      let second: { readonly answer?: Promise<Answered> } = {}
      await gateway.abandon(headers, async () => {
        second = await sendAndWait(() => post(gateway.url, { assetId: String(token) }, headers))
      })
      assert.equal((await second.answer)?.status, 200)
      assert.deepEqual((await gateway.metrics()).refused, { settlement_pending: 1 })
      assert.equal((await charged()) - before, charge)
      await gateway.close()
    }
  })
})
