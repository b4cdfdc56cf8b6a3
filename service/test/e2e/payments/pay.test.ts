/** `touchstone pay` against a real gateway: real test money, a real settlement, an attestation that is checked (spec §4.8). */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { verifyAttestation, type Hex } from '@touchstone/verdict'
import type { PrivateKeyAccount } from 'viem/accounts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { installTestMoney, moneyAccounts } from '../../../src/chain/devchain/test-money.ts'
import { buyAttestation } from '../../../src/cli/payments/buy.ts'
import { payCommand } from '../../../src/cli/payments/pay.ts'
import { createAttest, withPayment } from '../../../src/payments/attestation/attest.ts'
import { errors } from '../../../src/payments/errors.ts'
import { parseOrder } from '../../../src/payments/order.ts'
import { formatError } from '../../../src/cli/session/output.ts'
import { serve } from '../../support/http.ts'
import { published } from '../../support/payments/components.ts'
import { touchstone, type Ran } from '../../support/processes/cli.ts'
import { payTo, price, startGatewayWorld, type GatewayWorld, type Opened } from '../../support/payments/gateway.ts'

const demoPayer = publishedAddresses[moneyAccounts.payer] as Hex

describe('touchstone pay', () => {
  let world: GatewayWorld
  let gateway: Opened
  before(async () => {
    world = await startGatewayWorld()
    gateway = await world.open()
    await world.mint()
    await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address: demoPayer, amount: 10n * price }] })
  })
  after(() => world?.end())

  const pay = (args: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
    touchstone(['pay', ...args], env).ended

  it('pays a gateway of this machine with the demonstration’s payer, and prints what it got', async () => {
    const before_ = await world.balance()
    const { exit, out, err } = await pay(['1', '--gateway', gateway.url])
    assert.equal(err, '')
    assert.equal(exit, 0)
    assert.equal((await world.balance()) - before_, price)
    for (const line of [
      /^ {2}paid {9}0\.01 USDC to 0x0{35}caFE1, by 0x976E/im,
      /^ {2}transaction {2}0x[0-9a-f]{64}$/m,
      /^ {2}asset {8}1: MINTED, not flagged$/m,
      /^ {2}authentic {4}yes/m,
      /^ {2}signed by {4}0x[0-9a-fA-F]{40}, a key that the gateway publishes/m,
      /^Both signatures are valid/m,
    ])
      assert.match(out, line)
  })

  it('prints the whole answer with --json, for a later check', async () => {
    const args = ['1', '--gateway', `${gateway.url}/`, '--signer', world.signer.address, '--json']
    const { exit, out, err } = await pay([...args, '--contract', world.contract, '--eas'])
    assert.equal(exit, 0, err)
    assert.match(err, /the signer you named/)
    const answer = JSON.parse(out) as { attestation: { eas?: { signer: Hex } } }
    assert.ok(verifyAttestation(answer, { signer: world.signer.address, tokenId: 1n }).ok)
    assert.equal(answer.attestation.eas?.signer, world.signer.address)
  })

  it('buys once under one name, however often it is called', async () => {
    const held = await world.balance()
    const args = ['1', '--gateway', gateway.url, '--id', 'order_0123456789_abcdef', '--json']
    const bought = [await pay(args), await pay(args)]
    assert.deepEqual(
      bought.map(({ exit }) => exit),
      [0, 0],
    )
    assert.equal(bought[0]?.out, bought[1]?.out)
    assert.equal((await world.balance()) - held, price)
  })

  it('says of an attestation that was signed before the purchase how old it is', async () => {
    const keys = { active: () => world.signer, published: () => [{ ...published(world.signer), validFrom: 0 }] }
    const seller = await world.open({ keys })
    const attest = createAttest({ verdicts: world.verdicts, key: keys.active, now: () => Date.now() - 150_000 })
    const order = parseOrder('{"assetId":"1"}')
    assert.ok(order.kind === 'order')
    const old = withPayment((await attest(order.order)) ?? '', {})
    await using replaying = await standIn(async (request, response, body) => {
      if (request.headers['payment-signature'] !== undefined) return void response.end(old)
      const { status, headers, text } = await passOn(request, seller, body)
      response.writeHead(status, headers).end(text)
    })
    const args = ['1', '--gateway', replaying.url.href]
    const [shown, json] = [await pay(args), await pay([...args, '--json'])]
    assert.deepEqual([shown.exit, json.exit], [0, 0])
    for (const text of [shown.out, json.err])
      assert.match(text, /^ {2}OLD {10}signed \d minutes before this purchase.*later changes are not in it\.$/m)
    const { out } = await pay(['1', '--gateway', gateway.url])
    assert.doesNotMatch(out, /OLD/)
  })

  it('says what does not hold, and ends with 1', async () => {
    const { exit, out } = await pay(['1', '--gateway', gateway.url, '--signer', payTo])
    assert.equal(exit, 1)
    assert.match(out, /WRONG +signer trusted: 0x[0-9a-f]{40} {2}\(found: 0x0{35}cafe1\)/)
    assert.match(out, /is not valid: do not rely on it/)
    assert.doesNotMatch(out, /MINTED/)
  })

  it('says of an attestation in the old form what is not signed, and ends with 1', async () => {
    await using old = await standIn(async (request, response, body) => {
      const { status, headers, text } = await passOn(request, gateway, body)
      const unsigned = JSON.stringify(JSON.parse(text), (name, value: unknown) => (name === 'v2' ? undefined : value))
      response.writeHead(status, headers).end(unsigned)
    })
    const { exit, out } = await pay(['1', '--gateway', old.url.href])
    assert.equal(exit, 1)
    assert.match(out, /NOT SIGNED +authentic: true .*\n +NOT SIGNED +flagged: false /)
    assert.match(out, /has the old form: do not rely on what is not signed\.$/m)
    assert.doesNotMatch(out, /MINTED/)
  })

  it('says what was paid whatever the answer calls its transaction', async () => {
    await using seller = await standIn(async ({ method, headers }, response) => {
      const sold = method === 'GET' ? { keys: [] } : { payment: { transaction: { toString: 1 } } }
      const isSold = method === 'GET' || headers['x-payment'] !== undefined
      response.writeHead(isSold ? 200 : 402).end(JSON.stringify(isSold ? sold : offerOf(v1Terms)))
    })
    const { exit, out, err } = await pay(['1', '--gateway', seller.url.href])
    assert.deepEqual([exit, err], [1, ''])
    assert.match(out, /^ {2}paid {9}0\.01 USDC to /m)
    assert.match(out, /^ {2}transaction {2}none was named$/m)
    assert.match(out, /is not valid: do not rely on it/)
  })

  it('explains in one sentence what cannot be bought, and moves nothing', async () => {
    const before_ = await world.balance()
    const at = ['--gateway', gateway.url]
    const cases: [args: string[], env: Record<string, string>, sentence: RegExp][] = [
      [['999', ...at], {}, /Nothing was bought: 404 asset_not_found/],
      [['0x1', ...at], {}, /"0x1" is not a decimal token id/],
      [['1', ...at, '--max', '0.001'], {}, /The price is 0\.01 USDC; to pay that much, say --max 0\.01\./],
      [['1', ...at, '--max', '1e3'], {}, /--max is an amount/],
      [['1', ...at, '--id', 'short'], {}, /--id takes 16 to 128 letters/],
      [['1', ...at, '--signer', '0x12'], {}, /--signer is an address/],
      [['1', ...at], { PAYER_KEY: `0x${'77'.repeat(32)}` }, /insufficient_funds.*Send USDC on Base Sepolia to 0x/],
      [['1', ...at], { PAYER_KEY: 'secret' }, /PAYER_KEY must be 32 bytes in hex, or empty; found something else/],
      [['1', ...at], { PAYER_KEY: '00'.repeat(32) }, /PAYER_KEY holds no private key/],
      [['1', '--gateway', 'https://gateway.invalid'], {}, /Set PAYER_KEY to the private key that pays/],
      [['1', '--gateway', 'ftp://x'], {}, /--gateway is an http or https URL/],
      [['1', '--gateway', 'http://127.0.0.1:1'], {}, /http:\/\/127\.0\.0\.1:1 cannot be reached/],
    ]
    for (const [args, env, sentence] of cases) {
      Object.assign(process.env, env)
      try {
        await assert.rejects(payCommand().parseAsync(args, { from: 'user' }), (error) => {
          assert.match(formatError(error), sentence)
          assert.doesNotMatch(formatError(error), /\n|7777/)
          return true
        })
      } finally {
        delete process.env['PAYER_KEY']
      }
    }
    assert.equal(await world.balance(), before_)
  })

  it('sends the same payment again while the outcome is unknown: charged once', async () => {
    const account = await world.payer()
    const before_ = await world.balance()
    const seen: string[] = []
    await using impatient = await standIn(async (request, response, body) => {
      if (isPaid(request)) seen.push(JSON.stringify(paymentOf(request)))
      const { status, headers, text } = await passOn(request, gateway, body)
      // The first paid answer is lost on its way; the second is held to be unknown.
      if (seen.length === 1) return void response.destroy()
      response.writeHead(seen.length === 2 ? 503 : status, { ...headers, 'retry-after': '1' }).end(text)
    })
    const { answer } = await buyAttestation({ gateway: impatient.url, tokenId: 1n, account, most: price })
    assert.ok(verifyAttestation(answer, { signer: world.signer.address, tokenId: 1n }).ok)
    assert.equal(new Set(seen).size, 1)
    assert.equal(seen.length, 3)
    assert.equal((await world.balance()) - before_, price)
  })

  /** Buys from a gateway that answers payments with these in turn, or cuts the connection. Returns what the buyer reads. */
  async function readFrom(
    answers: readonly (ErrorAnswer | undefined)[],
    buyer: { account: PrivateKeyAccount; retryMs?: number },
  ) {
    let paid = 0
    await using down = await standIn(async (request, response) => {
      if (!isPaid(request)) return void response.writeHead(402).end(JSON.stringify(offerOf(v1Terms)))
      const answer = answers[Math.min(paid++, answers.length - 1)]
      if (answer === undefined) return void response.destroy()
      response.writeHead(answer.status, { 'retry-after': '1' }).end(JSON.stringify(answer))
    })
    return await buyAttestation({ gateway: down.url, tokenId: 1n, most: price, ...buyer }).then(
      () => 'bought',
      ({ message }: Error) => message,
    )
  }

  it('says that nothing was charged or bought only where no answer leaves it open', async () => {
    const account = await world.payer()
    const { settlement_pending: pending, payment_unavailable: unavailable } = errors
    const { rate_limited: limited, internal_error: failed, nonce_already_used: used } = errors
    const ofProxy = (status: number) => ({ status, error: `proxy_${status}`, message: 'Try again.' })
    const cases = [
      [[unavailable], false],
      [[limited], false],
      [[unavailable, limited], false],
      [[failed], true],
      [[ofProxy(504)], true],
      [[ofProxy(403)], true],
      [[pending, ofProxy(404)], true],
      [[used], true],
      [[undefined, used], true],
      [[pending, unavailable], true],
      [[undefined, unavailable], true],
      [[undefined, limited], true],
      [[pending, limited], true],
      [[pending, failed], true],
      [[pending, ofProxy(408)], true],
      [[pending, ofProxy(504)], true],
    ] as const
    await Promise.all(cases.map(([answers, charged]) => check(answers, charged)))

    async function check(answers: readonly (ErrorAnswer | undefined)[], charged: boolean): Promise<void> {
      const said = await readFrom(answers, { account, retryMs: (answers.length - 1) * 5_000 })
      const last = answers.at(-1)
      assert.ok(said.includes(`${last?.status} ${last?.error}`), said)
      const claims = [/Nothing was (charged|bought)/.test(said), /charged once or not at all/.test(said)]
      assert.deepEqual(claims, [!charged, charged], said)
    }
  })

  it('says of a payment that expired while no answer was final what the gateway said meanwhile', async () => {
    const account = await world.payer()
    const { ledger_unavailable: unavailable, authorization_expired: expired } = errors
    const [waited, asked] = await Promise.all([
      readFrom([unavailable, expired], { account }),
      readFrom([expired], { account }),
    ])
    assert.match(waited, /^Nothing was bought: .* 503 ledger_unavailable/)
    assert.doesNotMatch(waited, /clock/)
    assert.match(asked, /Compare your clock/)
  })

  it('sends a payment again once a second at most, whatever pause the gateway names', async () => {
    const account = await world.payer()
    for (const pause of ['-1', '0', '0.001', 'soon', '']) {
      let paid = 0
      await using seller = await standIn(async (request, response) => {
        if (!isPaid(request)) return void response.writeHead(402).end(JSON.stringify(offerOf(v1Terms)))
        paid += 1
        response.writeHead(503, { 'Retry-After': pause }).end('{}')
      })
      const buying = buyAttestation({ gateway: seller.url, tokenId: 1n, account, most: price, retryMs: 500 })
      await assert.rejects(buying, /The outcome is not known: 503/)
      assert.equal(paid, 1, pause)
    }
  })

  it('trusts no gateway: not its texts, not its terms', async () => {
    const account = await world.payer()
    await using evil = await standIn(async (_request, response) => {
      response.writeHead(500).end(JSON.stringify({ error: '\u001b[31mpay\u202e', message: `${'x'.repeat(9_999)}` }))
    })
    const buy = () => buyAttestation({ gateway: evil.url, tokenId: 1n, account, most: price, retryMs: 100 })
    await assert.rejects(buy(), (error: Error) => {
      assert.match(error.message, /offers no attestation: 500 /)
      return error.message.length < 400 && !/\p{C}/u.test(error.message)
    })

    const offers: [offer: unknown, sentence: RegExp][] = [
      [offerOf(), /offers nothing that this command can pay/],
      [offerOf({ ...v1Terms, network: 'base' }), /offers nothing that this command can pay/],
      [offerOf({ ...v1Terms, maxAmountRequired: '-5' }), /offers nothing that this command can pay/],
      [offerOf({ ...v1Terms, maxAmountRequired: '10001' }), /The price is 0\.010001 USDC/],
      [offerOf({ ...v1Terms, asset: payTo }), /cannot be paid/],
      ['nonsense', /offers nothing that this command can pay/],
    ]
    for (const [offer, sentence] of offers) {
      await using seller = await standIn(async (request, response) => {
        assert.equal(request.headers['x-payment'], undefined)
        response.writeHead(402).end(JSON.stringify(offer))
      })
      const buying = buyAttestation({ gateway: seller.url, tokenId: 1n, account, most: price, retryMs: 100 })
      await assert.rejects(buying, sentence)
    }
  })
})

const v1Terms = {
  scheme: 'exact',
  network: 'base-sepolia',
  maxAmountRequired: '10000',
  resource: 'http://127.0.0.1/verify',
  description: '',
  mimeType: 'application/json',
  payTo,
  maxTimeoutSeconds: 30,
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  extra: { name: 'USDC', version: '2' },
}

type ErrorAnswer = { readonly status: number; readonly error: string }
type Answering = (request: IncomingMessage, response: ServerResponse, body: string) => Promise<void>

const offerOf = (...accepts: object[]) => ({ x402Version: 1, accepts })

const paymentOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    ['payment-signature', 'x-payment'].flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
const isPaid = (request: IncomingMessage): boolean => Object.keys(paymentOf(request)).length > 0

/** Sends a request with its payment on to a gateway. Of the headers of the answer, it keeps the offer. */
async function passOn(request: IncomingMessage, { url }: Opened, body: string) {
  const answer = await fetch(`${url}${request.url}`, {
    method: request.method ?? 'GET',
    headers: { 'content-type': 'application/json', ...paymentOf(request) },
    ...(body !== '' && { body }),
  })
  const offer = answer.headers.get('payment-required')
  const headers = offer === null ? {} : { 'payment-required': offer }
  return { status: answer.status, headers, text: await answer.text() }
}

/** A host that answers as a test wants. */
async function standIn(answer: Answering) {
  const { url, close } = await serve((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => void answer(request, response, body).catch(() => response.destroy()))
  })
  return { url: new URL(url), [Symbol.asyncDispose]: close }
}
