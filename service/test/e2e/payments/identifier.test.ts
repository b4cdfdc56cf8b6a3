/** The x402 extension `payment-identifier` (spec §4.8): payments with one id are one purchase, whatever authorization they come with. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, describe, it } from 'node:test'
import { ExactEvmScheme } from '@x402/evm'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'
import { openSale } from '../../support/payments/gateway.ts'
import {
  acceptedV2,
  codesOf,
  headerV2,
  post,
  price,
  sign,
  type Answered,
  type SignedPayment,
} from '../../support/payments/buyer.ts'
import { buyWith } from '../../support/payments/stock.ts'
import { until } from '../../support/wait.ts'

const { world, token, payer, charged } = await openSale()
const gateway = await world.open()
const hasty = await world.open({ deadlines: { settleMs: 500 } })
afterEach(() => world.heal())

const newId = () => `pay_${randomUUID().replaceAll('-', '')}`
const extensionOf = (info: unknown) => ({ extensions: { 'payment-identifier': { info } } })

/** Sends a payment with an identifier, once. */
function send(payment: SignedPayment, id: string, { url = gateway.url, assetId = token, more = {} } = {}) {
  const extension = extensionOf({ required: false, id })
  return post(url, { assetId: String(assetId), ...more }, headerV2(payment, acceptedV2, extension))
}

/** Sends it again while the answer is 502 or 503. */
async function settled(...[payment, id, where]: Parameters<typeof send>): Promise<Answered> {
  let answer = await send(payment, id, where)
  await until(async () => answer.status < 502 || (answer = await send(payment, id, where)).status < 502)
  return answer
}

describe('the extension payment-identifier', () => {
  it('is announced with its schema, and asks for no id', async () => {
    const { headers } = await post(gateway.url, {})
    const offer = JSON.parse(Buffer.from(headers.get('payment-required') ?? '', 'base64').toString()) as {
      extensions: Record<string, { info: unknown; schema: { properties: { id: object } } }>
    }
    const { info, schema } = offer.extensions['payment-identifier'] ?? {}
    assert.deepEqual(info, { required: false })
    assert.deepEqual(schema?.properties.id, {
      type: 'string',
      minLength: 16,
      maxLength: 128,
      pattern: '^[a-zA-Z0-9_-]+$',
    })
  })

  it('may be sent back without an id', async () => {
    const more = extensionOf({ required: false })
    const payment = headerV2(await sign(payer), acceptedV2, more)
    await until(async () => (await post(gateway.url, { assetId: String(token) }, payment)).status === 200)
    assert.equal(await charged(), price)
  })

  it('is refused with 400 where it is malformed, and nothing is charged', async () => {
    const malformed = [
      ...['', 'x'.repeat(15), 'x'.repeat(129), `${'x'.repeat(16)} `, `${'x'.repeat(16)}é`, 17, null, [], {}].map(
        (id) => ({
          required: false,
          id,
        }),
      ),
      { id: newId() },
      { required: 'no', id: newId() },
      null,
      'id',
    ].map(extensionOf)
    for (const more of [
      ...malformed,
      { extensions: { 'payment-identifier': [] } },
      { extensions: { 'payment-identifier': 'x' } },
    ]) {
      const answer = await post(gateway.url, { assetId: String(token) }, headerV2(await sign(payer), acceptedV2, more))
      assert.deepEqual(codesOf(answer), [400, 'invalid_payment_identifier'], JSON.stringify(more))
    }
    assert.equal(await charged(), 0n)
  })
})

describe('a second payment with the same id', () => {
  it('gets the stored answer, byte for byte, and is not executed', async () => {
    const id = newId()
    const first = await settled(await sign(payer), id)
    assert.deepEqual(codesOf(first), [200, undefined])
    const again = await send(await sign(payer), id)
    assert.equal(again.text, first.text)
    for (const name of ['payment-response', 'x-payment-response'])
      assert.equal(again.headers.get(name), first.headers.get(name))
    assert.equal(await charged(), price)
  })

  it('is 409 for another request, and nothing is charged', async () => {
    const id = newId()
    assert.equal((await settled(await sign(payer), id)).status, 200)
    const other = await world.mint()
    for (const where of [{ assetId: other }, { more: { eas: true } }])
      assert.deepEqual(codesOf(await send(await sign(payer), id, where)), [409, 'payment_identifier_used'])
    assert.equal(await charged(), price)
  })

  it('is a purchase of its own for another payer', async () => {
    const id = newId()
    const other = await world.payer()
    const sold = [await settled(await sign(payer), id), await settled(await sign(other), id)]
    assert.deepEqual(
      sold.map(({ status }) => status),
      [200, 200],
    )
    assert.equal(await charged(), 2n * price)
  })

  it('gets nothing with a signature of another, or with one for another seller', async () => {
    const id = newId()
    assert.equal((await settled(await sign(payer), id)).status, 200)
    const forged = await sign(await world.payer(0n), { from: payer.address })
    assert.deepEqual(codesOf(await send(forged, id)), [402, 'invalid_signature'])
    const elsewhere = await sign(payer, { to: world.signer.address })
    assert.deepEqual(codesOf(await send(elsewhere, id)), [402, 'recipient_mismatch'])
    assert.equal(await charged(), price)
  })

  it('waits for the first one, in this process and in another: twenty at once are one purchase', async () => {
    const id = newId()
    const payments = await Promise.all(Array.from({ length: 20 }, () => sign(payer)))
    const answers = await Promise.all(
      payments.map((payment, n) => settled(payment, id, { url: n % 2 === 0 ? gateway.url : hasty.url })),
    )
    assert.deepEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1)
    assert.equal(answers[0]?.status, 200)
    assert.equal(await charged(), price)
  })

  it('is executed where the first one was refused', async () => {
    const id = newId()
    const poor = await world.payer(0n)
    assert.deepEqual(codesOf(await send(await sign(poor), id)), [402, 'insufficient_funds'])
    await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address: poor.address, amount: price }] })
    assert.equal((await settled(await sign(poor), id)).status, 200)
    assert.equal(await charged(), price)
  })
})

describe('an id for a proof that was not delivered', () => {
  it('names that purchase from then on, beside the id that paid it', async () => {
    const [one, two] = [newId(), newId()]
    const first = await sign(payer)
    const sold = await settled(first, one)
    assert.equal(sold.status, 200)
    await world.undeliver(first)
    assert.equal((await send(await sign(payer), two)).text, sold.text)
    for (const id of [one, two]) assert.equal((await send(await sign(payer), id)).text, sold.text)
    assert.equal(await charged(), price)
  })
})

describe('@x402/fetch', () => {
  it('names its purchases as docs/gateway.md says', async () => {
    const client = new x402Client().register('eip155:84532', new ExactEvmScheme(await world.payer()))
    const id = newId()
    client.onBeforePaymentCreation(async ({ paymentRequired }) => {
      paymentRequired.extensions = { 'payment-identifier': { info: { required: false, id } } }
    })
    const pay = wrapFetchWithPayment(fetch, client)
    const bodies = new Set<string>()
    for (let n = 0; n < 2; n += 1)
      await until(async () => {
        const body = JSON.stringify({ assetId: String(token) })
        const response = await pay(`${gateway.url}/verify`, { method: 'POST', body })
        const text = await response.text()
        if (response.status === 200) bodies.add(text)
        return response.status === 200
      })
    assert.equal(bodies.size, 1)
    assert.equal(await charged(), price)
  })
})

describe('the stock client of the extension', () => {
  it('is charged once for one id, although its first answer was 503 and it signs anew each time', async (t) => {
    const key = generatePrivateKey()
    const { address } = privateKeyToAccount(key)
    await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address, amount: 10n * price }] })
    const purchase = { url: hasty.url, key, tokenId: token, identifier: newId() }
    await world.automine(false)
    const first = await buyWith('@x402/axios', purchase)
    if (first === null) return t.skip('the npm registry, which the client is installed from, does not answer')
    assert.deepEqual([first.status, first.body['error']], [503, 'settlement_pending'])
    await world.mineAgain()
    let last = first
    await until(async () => (last = (await buyWith('@x402/axios', purchase)) ?? last).status === 200)
    assert.deepEqual(await buyWith('@x402/axios', purchase), last)
    const other = await buyWith('@x402/axios', { ...purchase, tokenId: await world.mint() })
    assert.deepEqual([other?.status, other?.body['error']], [409, 'payment_identifier_used'])
    assert.equal(await charged(), price)
  })
})
