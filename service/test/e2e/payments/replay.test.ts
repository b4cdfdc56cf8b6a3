/** One authorization buys one proof for one request, however often and from wherever it comes (spec §4.8). */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { describe, it } from 'node:test'
import type { PrivateKeyAccount } from 'viem/accounts'
import { openSale } from '../../support/payments/gateway.ts'
import { buy, buySettled, headerV1, headerV2, post, price, sign, type Answered } from '../../support/payments/buyer.ts'
import { until } from '../../support/wait.ts'

const { world, token, payer, charged } = await openSale()
const gateway = await world.open()
const another = await world.mint()

const times = <T>(count: number, work: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)))
const statuses = (answers: readonly Answered[]) => answers.map(({ status }) => status).toSorted((a, b) => a - b)

describe('the same payment again', () => {
  it('gives the same bytes and receipts for the same request, and is charged once', async () => {
    const payment = await sign(payer)
    const answers = [
      await buySettled(gateway.url, token, payment),
      await buy(gateway.url, token, payment),
      await post(gateway.url, { assetId: `000${token}` }, headerV2(payment)),
    ]
    assert.deepEqual(statuses(answers), [200, 200, 200])
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
    assert.equal(new Set(answers.map(({ headers }) => headers.get('x-payment-response'))).size, 1)
    assert.equal(await charged(), price)
  })

  it('buys no second asset', async () => {
    const payment = await sign(payer)
    assert.equal((await buy(gateway.url, token, payment)).status, 200)
    const second = await buy(gateway.url, another, payment)
    assert.deepEqual([second.status, second.body.error], [402, 'payment_already_used'])
    assert.equal(second.body['attestation'], undefined)
  })

  it('buys nothing under a nonce of another authorization', async () => {
    const payment = await sign(payer)
    assert.equal((await buy(gateway.url, token, payment)).status, 200)
    const other = await sign(payer, { nonce: payment.nonce, validBefore: payment.validBefore + 100n })
    assert.equal((await buy(gateway.url, token, other)).body.error, 'payment_already_used')
  })

  it('twenty times at once is one charge and one proof', async () => {
    const payment = await sign(payer)
    const answers = await times(20, () => buySettled(gateway.url, token, payment))
    assert.deepEqual(statuses(answers), Array(20).fill(200))
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
    assert.equal(await charged(), price)
  })

  it('twenty times at once over two assets proves one of them', async () => {
    const payment = await sign(payer)
    const answers = await times(20, (n) => buySettled(gateway.url, n % 2 === 0 ? token : another, payment))
    assert.equal(await charged(), price)
    const sold = answers.filter(({ status }) => status === 200)
    assert.equal(new Set(sold.map(({ text }) => text)).size, 1)
    assert.equal(sold.length, 10)
    for (const { status, body } of answers)
      if (status !== 200) assert.deepEqual([status, body.error], [402, 'payment_already_used'])
  })

  it('is answered from the ledger while the chain does not answer, and after the price has changed', async () => {
    const payment = await sign(payer)
    const first = await buy(gateway.url, token, payment)
    world.payFaults.set('hang')
    assert.equal((await buy(gateway.url, token, payment)).text, first.text)
    await world.heal()
    const dearer = await world.open({ terms: { ...termsOf(gateway.url), price: 2n * price } })
    assert.equal((await buy(dearer.url, token, payment)).text, first.text)
    assert.equal((await buy(dearer.url, token, await sign(payer))).body.error, 'amount_mismatch')
    await dearer.close()
  })
})

describe('payments at once', () => {
  const transactionsSent = async () =>
    Number(await world.rpc('eth_getTransactionCount', [world.facilitator.address, 'latest']))

  it('20 of one payer all settle', async () => {
    const payments = await times(20, () => sign(payer))
    const sentBefore = await transactionsSent()
    const answers = await Promise.all(payments.map((payment) => buySettled(gateway.url, token, payment)))
    assert.deepEqual(statuses(answers), Array(20).fill(200))
    assert.equal(new Set(answers.map(({ body }) => body.payment?.transaction)).size, 20)
    assert.equal(await charged(), 20n * price)
    assert.equal((await transactionsSent()) - sentBefore, 20)
  })

  it('20 of 20 payers all settle', async () => {
    const payers: PrivateKeyAccount[] = []
    for (let n = 0; n < 20; n += 1) payers.push(await world.payer(price))
    const payments = await Promise.all(payers.map((one) => sign(one)))
    const sentBefore = await transactionsSent()
    const answers = await Promise.all(payments.map((payment) => buySettled(gateway.url, token, payment)))
    assert.deepEqual(statuses(answers), Array(20).fill(200))
    assert.equal(await charged(), 20n * price)
    assert.equal((await transactionsSent()) - sentBefore, 20)
  })

  it('two of a payer with money for one: one proof, one 402 insufficient_funds', async () => {
    const poor = await world.payer(price)
    const payments = await times(2, () => sign(poor))
    const answers = await Promise.all(payments.map((payment) => buySettled(gateway.url, token, payment)))
    assert.deepEqual(statuses(answers), [200, 402])
    assert.equal(answers.find(({ status }) => status === 402)?.body.error, 'insufficient_funds')
    assert.equal(await charged(), price)
  })

  it('both headers with different payments: version 2 pays, one charge', async () => {
    const [first, second] = [await sign(payer), await sign(payer)]
    const answer = await post(gateway.url, { assetId: String(token) }, { ...headerV1(first), ...headerV2(second) })
    assert.equal(answer.status, 200)
    assert.equal(await charged(), price)
    assert.equal((await world.store.find({ payer: lower(payer), nonce: second.nonce }))?.state, 'done')
    assert.equal(await world.store.find({ payer: lower(payer), nonce: first.nonce }), undefined)
  })

  it('a buyer who hangs up while it settles finds the proof by retrying, charged once', async () => {
    const payment = await sign(payer)
    await world.automine(false)
    const hangUp = startBuying(JSON.stringify({ assetId: String(token) }), headerV1(payment))
    await until(
      async () => (await world.store.find({ payer: lower(payer), nonce: payment.nonce }))?.state === 'settling',
    )
    hangUp()
    await world.automine(true)
    await world.mine()
    const answer = await buySettled(gateway.url, token, payment)
    assert.equal(answer.status, 200)
    assert.equal(await charged(), price)
  })
})

const lower = (account: PrivateKeyAccount) => account.address.toLowerCase() as `0x${string}`

function termsOf(url: string) {
  return { ...world.terms, resource: `${url}/verify` }
}

/** Returns what breaks the connection off. */
function startBuying(body: string, headers: Record<string, string>): () => void {
  const request = httpRequest(`${gateway.url}/verify`, { method: 'POST', headers })
  request.on('error', () => {})
  request.end(body)
  return () => request.destroy()
}
