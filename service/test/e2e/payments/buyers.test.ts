/** Buyers as they are, unmodified and with their defaults: both generations of x402 clients, and a page of another origin (spec §2.6, §4.8). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { verifyAttestation } from '@touchstone/verdict'
import { ExactEvmScheme } from '@x402/evm'
import { ExactEvmSchemeV1 } from '@x402/evm/v1'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'
import { serve, type Served } from '../../support/http.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { headerV1, headerV2, price, sign } from '../../support/payments/buyer.ts'
import { noBrowser, startBrowser } from '../../support/pages/browser.ts'
import { buyWith, stockClients } from '../../support/payments/stock.ts'

const { world, token, charged } = await openSale()
const gateway = await world.open()
const request = () => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ assetId: String(token), chain: 'base-sepolia' }),
})

function isProof(body: unknown): void {
  const { signer, contract } = { signer: world.signer.address, contract: world.contract }
  const report = verifyAttestation(body, { signer, contract, tokenId: token })
  assert.ok(report.ok, JSON.stringify(report.checks.filter(({ ok }) => !ok)))
}

describe('@x402/fetch 2.27', () => {
  it('pays with both versions registered', async () => {
    const payer = await world.payer()
    const pay = wrapFetchWithPaymentFromConfig(fetch, {
      schemes: [
        { network: 'eip155:*', client: new ExactEvmScheme(payer) },
        { network: 'base-sepolia' as 'eip155:84532', client: new ExactEvmSchemeV1(payer), x402Version: 1 },
      ],
    })
    const response = await pay(`${gateway.url}/verify`, request())
    assert.equal(response.status, 200)
    isProof(await response.json())
    assert.equal(await charged(), price)
  })

  it('pays with version 1 where the gateway sends no header', async () => {
    await using plain = await world.open({ v2Header: false })
    const client = new ExactEvmSchemeV1(await world.payer())
    const network = 'base-sepolia' as 'eip155:84532'
    const pay = wrapFetchWithPaymentFromConfig(fetch, { schemes: [{ network, client, x402Version: 1 }] })
    const response = await pay(`${plain.url}/verify`, request())
    assert.equal(response.status, 200)
    isProof(await response.json())
    assert.equal(await charged(), price)
  })
})

describe('a stock client', () => {
  for (const client of stockClients)
    it(`${client} pays and gets the proof`, async (t) => {
      const key = generatePrivateKey()
      const { address } = privateKeyToAccount(key)
      await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address, amount: price }] })
      const bought = await buyWith(client, { url: gateway.url, key, tokenId: token })
      if (bought === null) return t.skip('the npm registry, which the client is installed from, does not answer')
      assert.equal(bought.status, 200)
      isProof(bought.body)
      assert.deepEqual([bought.receipt['success'], bought.receipt['payer']], [true, address])
      assert.equal(await charged(), price)
    })
})

describe('a page of another origin', { skip: noBrowser }, () => {
  let pages: Served
  let browser: Awaited<ReturnType<typeof startBrowser>>
  let origin: string

  before(async () => {
    pages = await serve((_, response) =>
      response.setHeader('content-type', 'text/html').end('<h1>shop</h1><link rel=icon href=data:,>'),
    )
    origin = `http://localhost:${pages.port}`
    browser = await startBrowser([origin, origin.replace('localhost', '127.0.0.1'), gateway.url])
  })
  after(async () => {
    await browser?.close()
    await pages?.close()
  })

  it('reads the offer, sends a payment of each version, and reads proof and receipt', async () => {
    await using page = await browser.open(origin)
    const payer = await world.payer()
    const headers = [headerV1(await sign(payer)), headerV2(await sign(payer))]
    const answers = await page.evaluate(
      async ({ url, body, sent }) => {
        const exposed = 'X-PAYMENT-RESPONSE,PAYMENT-RESPONSE'
        const ask = async (more: Record<string, string>) => {
          const all = { 'Content-Type': 'application/json', 'Access-Control-Expose-Headers': exposed, ...more }
          const response = await fetch(url, { method: 'POST', headers: all, body })
          const seen = ['payment-required', 'x-payment-response', 'payment-response'].map((name) =>
            response.headers.get(name),
          )
          return { status: response.status, json: (await response.json()) as unknown, seen }
        }
        const answered = [await ask({})]
        for (const one of sent) answered.push(await ask(one))
        return answered
      },
      { url: `${gateway.url}/verify`, body: request().body, sent: headers as Record<string, string>[] },
    )
    assert.deepEqual(
      answers.map(({ status, seen }) => [status, ...seen.map((header) => header !== null)]),
      [
        [402, true, false, false],
        [200, false, true, true],
        [200, false, true, true],
      ],
    )
    for (const { json } of answers.slice(1)) isProof(json)
    assert.equal(await charged(), 2n * price)
  })
})
