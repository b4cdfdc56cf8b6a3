import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serve } from '../../../test/support/http.ts'
import { publishedAccounts } from '../../domain/published-accounts.ts'
import { buyAttestation } from './buy.ts'

const [account = assert.fail()] = publishedAccounts(1)
const terms = {
  scheme: 'exact',
  network: 'base-sepolia',
  maxAmountRequired: '10000',
  resource: 'http://127.0.0.1/verify',
  description: '',
  mimeType: 'application/json',
  payTo: account.address,
  maxTimeoutSeconds: 60,
  asset: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
  extra: { name: 'USDC', version: '2' },
}

describe('a purchase whose outcome is unknown', () => {
  it('is asked for once a second at most, whatever pause the gateway names', async () => {
    for (const pause of ['-1', '0', '0.001', 'soon', '']) {
      let paid = 0
      await using opened = new AsyncDisposableStack()
      const gateway = opened.adopt(
        await serve((request, response) => {
          if (request.headers['x-payment'] === undefined)
            return void response.writeHead(402).end(JSON.stringify({ x402Version: 1, accepts: [terms] }))
          paid += 1
          response.writeHead(503, { 'retry-after': pause }).end('{}')
        }),
        (it) => it.close(),
      )
      const purchase = { gateway: new URL(gateway.url), tokenId: 1n, account, most: 10_000n, retryMs: 500 }
      await assert.rejects(buyAttestation(purchase), /The outcome is not known: 503/)
      assert.equal(paid, 1, pause)
    }
  })
})
