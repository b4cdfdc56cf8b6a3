/**
 * Payments that are refused: the right code, no money moved, no proof (spec §4.8, §5). And one authorization buys one proof for one request,
 * however often and from wherever it comes.
 */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import type { PrivateKeyAccount } from 'viem/accounts'
import { openSale } from '../../support/payments/gateway.ts'
import {
  acceptedV2,
  base64,
  buy,
  buySettled,
  codesOf,
  headerV1,
  headerV2,
  keyOf,
  payloadOf,
  post,
  price,
  sign,
  type Answered,
  type SignedPayment,
} from '../../support/payments/buyer.ts'
import { until } from '../../support/wait.ts'

const { world, token, payer, charged } = await openSale()
const gateway = await world.open()
const another = await world.mint()

async function refuses(
  headers: Record<string, string>,
  error: string,
  status = 402,
  assetId = String(token),
  moved = 0n,
) {
  const answer = await post(gateway.url, { assetId }, headers)
  assert.deepEqual(codesOf(answer), [status, error])
  assert.equal(answer.body['attestation'], undefined)
  assert.equal(await charged(), moved)
  if (status === 402) {
    assert.equal(answer.body['x402Version'], 1)
    const header = JSON.parse(Buffer.from(answer.headers.get('payment-required') ?? '', 'base64').toString()) as {
      error: string
    }
    assert.equal(header.error, error)
  }
}

const now = () => BigInt(Math.floor(Date.now() / 1000))
const other = '0x00000000000000000000000000000000000bad01' as const

describe('a payment that differs from the offer', () => {
  const cases: readonly [string, () => Promise<SignedPayment>, string][] = [
    ['less than the price', () => sign(payer, { value: price - 1n }), 'amount_mismatch'],
    ['nothing', () => sign(payer, { value: 0n }), 'amount_mismatch'],
    ['more than the price', () => sign(payer, { value: price + 1n }), 'amount_mismatch'],
    ['another recipient', () => sign(payer, { to: other }), 'recipient_mismatch'],
    ['another token', () => sign(payer, { domain: { verifyingContract: other } }), 'invalid_signature'],
    ['another chain', () => sign(payer, { domain: { chainId: 1 } }), 'invalid_signature'],
    ['another version of the token', () => sign(payer, { domain: { version: '1' } }), 'invalid_signature'],
    ['a value changed after signing', () => sign(payer, { value: 1n }, { value: price }), 'invalid_signature'],
    [
      'the signature of somebody else',
      async () => sign(await world.payer(0n), { from: payer.address }),
      'invalid_signature',
    ],
    ['a signature of 64 bytes', () => sign(payer, {}, { signature: `0x${'11'.repeat(64)}` }), 'invalid_signature'],
    ['a signature of 2 kB', () => sign(payer, {}, { signature: `0x${'11'.repeat(2_000)}` }), 'invalid_signature'],
    [
      'a signature that ends as one of a wallet that is not deployed',
      () => sign(payer, {}, { signature: `0x${'11'.repeat(100)}${'6492'.repeat(16)}` }),
      'invalid_signature',
    ],
    ['an authorization that has expired', () => sign(payer, { validBefore: now() - 1n }), 'authorization_expired'],
    ['one that is about to', () => sign(payer, { validBefore: now() + 4n }), 'authorization_expired'],
    ['one that has not begun', () => sign(payer, { validAfter: now() + 100n }), 'authorization_not_yet_valid'],
    [
      'one for longer than an hour and 30 s',
      () => sign(payer, { validBefore: now() + 3_700n }),
      'authorization_valid_too_long',
    ],
    ['a payer without money', async () => sign(await world.payer(0n)), 'insufficient_funds'],
  ]
  for (const [what, make, error] of cases) {
    it(`${what}: 402 ${error}, in both versions`, async () => {
      await refuses(headerV1(await make()), error)
      await refuses(headerV2(await make()), error)
    })
  }
})

describe('an envelope that is wrong', () => {
  const v1 = async (more: object) => headerV1(await sign(payer), more)
  const v2 = async (accepted: object, more: object = {}) =>
    headerV2(await sign(payer), { ...acceptedV2, ...accepted }, more)
  const cases: readonly [string, () => Promise<Record<string, string>>, string][] = [
    ['network base', () => v1({ network: 'base' }), 'invalid_network'],
    ['an unknown network', () => v1({ network: 'eip155:84532' }), 'invalid_network'],
    ['scheme upto', () => v1({ scheme: 'upto' }), 'unsupported_scheme'],
    ['version 2 in X-PAYMENT', () => v1({ x402Version: 2 }), 'invalid_x402_version'],
    ['no version', () => v1({ x402Version: undefined }), 'invalid_x402_version'],
    ['version 1 in PAYMENT-SIGNATURE', () => v2({}, { x402Version: 1 }), 'invalid_x402_version'],
    ['accepted: other scheme', () => v2({ scheme: 'upto' }), 'unsupported_scheme'],
    ['accepted: other network', () => v2({ network: 'eip155:8453' }), 'invalid_network'],
    ['accepted: other amount', () => v2({ amount: '1' }), 'invalid_payment_requirements'],
    ['accepted: other recipient', () => v2({ payTo: other }), 'invalid_payment_requirements'],
    ['accepted: other domain', () => v2({ extra: { name: 'USD Coin', version: '2' } }), 'invalid_payment_requirements'],
    ['accepted: nothing', async () => headerV2(await sign(payer), [] as object), 'invalid_payment_requirements'],
    ['no payload', () => v1({ payload: undefined }), 'invalid_payload'],
    ['a list for a payload', () => v1({ payload: [] }), 'invalid_payload'],
  ]
  for (const [what, make, error] of cases) {
    it(`${what}: 402 ${error}`, async () => refuses(await make(), error))
  }

  for (const [field, value] of [
    ['value', 10_000],
    ['value', '1e4'],
    ['value', '-10000'],
    ['value', '0x2710'],
    ['value', '010000'],
    ['value', `${2n ** 256n}`],
    ['validBefore', 1_900_000_000],
    ['validAfter', null],
    ['nonce', '0x01'],
    ['from', 'payer'],
    ['to', '__proto__'],
    ['to', { toString: 'x' }],
  ] as const) {
    it(`${field} ${JSON.stringify(value)}: 402 invalid_payload`, async () => {
      const payload = payloadOf(await sign(payer))
      const changed = { ...payload, authorization: { ...payload.authorization, [field]: value } }
      await refuses(await v1({ payload: changed }), 'invalid_payload')
    })
  }
})

describe('a header that is no payment', () => {
  for (const [what, header] of [
    ['not base64', '{"x402Version":1}'],
    ['base64 of text', Buffer.from('hello').toString('base64')],
    ['base64 of null', base64(null)],
    ['base64 of []', base64([])],
    [
      'deep JSON',
      Buffer.from(`${'['.repeat(3_000)}${']'.repeat(3_000)}`)
        .toString('base64')
        .slice(0, 8_000),
    ],
    ['a prototype', Buffer.from('{"__proto__":{"x402Version":1,"scheme":"exact"}}').toString('base64')],
  ] as const) {
    it(`${what}: 402`, async () => {
      for (const name of ['X-PAYMENT', 'PAYMENT-SIGNATURE']) {
        const answer = await post(gateway.url, { assetId: String(token) }, { [name]: header })
        assert.equal(answer.status, 402)
        assert.match(String(answer.body.error), /^invalid_(payload|x402_version)$/)
      }
      assert.equal(await charged(), 0n)
    })
  }

  it('a blank header is no payment, and 200 kB of headers are too much', async () => {
    assert.equal((await post(gateway.url, { assetId: '1' }, { 'X-PAYMENT': '' })).status, 402)
    assert.equal((await post(gateway.url, { assetId: '1' }, { 'X-PAYMENT': ' ' })).status, 402)
    assert.match(
      await raw(`POST /verify HTTP/1.1\r\nHost: a\r\nX-PAYMENT: ${'A'.repeat(200_000)}\r\n\r\n`),
      /^HTTP\/1.1 431/,
    )
  })

  it('the same header twice is malformed; unpadded base64 buys, URL-safe base64 at most once', async () => {
    const header = headerV1(await sign(payer))['X-PAYMENT'] ?? ''
    const body = JSON.stringify({ assetId: String(token) })
    const twice = await raw(
      `POST /verify HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\nX-PAYMENT: ${header}\r\nX-PAYMENT: ${header}\r\n\r\n${body}`,
    )
    assert.match(twice, /^HTTP\/1.1 402 [\s\S]*invalid_payload/)
    assert.equal(await charged(), 0n)
    const urlSafe = Buffer.from(header, 'base64').toString('base64url')
    assert.ok([200, 402].includes((await post(gateway.url, body, { 'X-PAYMENT': urlSafe })).status))
    assert.equal((await post(gateway.url, body, { 'X-PAYMENT': header.replace(/=+$/, '') })).status, 200)
    assert.equal(await charged(), price)
  })
})

describe('what is not sold', () => {
  it('an asset that does not exist: 404, and the header still buys another', async () => {
    const payment = await sign(payer)
    assert.deepEqual(codesOf(await buy(gateway.url, 999_999n, payment)), [404, 'asset_not_found'])
    assert.equal(await charged(), 0n)
    assert.equal((await buy(gateway.url, token, payment)).status, 200)
  })

  it('a malformed id with a payment: 400', async () => {
    await refuses(headerV1(await sign(payer)), 'invalid_asset_id', 400, '0x1')
  })

  it('a nonce that is spent elsewhere: 402', async () => {
    const payment = await sign(payer)
    await world.submit(payment)
    await refuses(headerV1(payment), 'nonce_already_used', 402, String(token), price)
  })

  it('an authorization that begins after the latest block of an idle chain is in time', async () => {
    const timeOf = async (block: string) =>
      ((await world.rpc('eth_getBlockByNumber', [block, false])) as { timestamp: Hex }).timestamp
    const timestamp = await timeOf('latest')
    // Blocks that came at once have later times than the clock. The clock of the chain may stand behind ours.
    await until(async () => BigInt(await timeOf('pending')) > BigInt(timestamp))
    const { status, text } = await buy(gateway.url, token, await sign(payer, { validAfter: BigInt(timestamp) }))
    assert.equal(status, 200, text)
  })

  it('while the token is paused: 402 payment_rejected, and 200 after it', async () => {
    const payment = await sign(payer)
    await world.pause(true)
    await refuses(headerV1(payment), 'payment_rejected')
    await world.pause(false)
    assert.equal((await buy(gateway.url, token, payment)).status, 200)
  })
})

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
    assert.deepEqual(codesOf(second), [402, 'payment_already_used'])
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
    await using dearer = await world.open({ terms: { ...termsOf(gateway.url), price: 2n * price } })
    assert.equal((await buy(dearer.url, token, payment)).text, first.text)
    assert.equal((await buy(dearer.url, token, await sign(payer))).body.error, 'amount_mismatch')
  })
})

describe('payments at once', () => {
  /** Settles all payments, 20, at once, in fewer transactions. */
  async function settled(payments: readonly SignedPayment[]): Promise<void> {
    const sentBefore = await world.transactions()
    const answers = await Promise.all(payments.map((payment) => buySettled(gateway.url, token, payment)))
    assert.deepEqual(statuses(answers), Array(20).fill(200))
    assert.equal(await charged(), 20n * price)
    assert.ok((await world.transactions()) - sentBefore < 20)
  }

  it('20 of one payer all settle, in fewer transactions', async () => {
    await settled(await times(20, () => sign(payer)))
  })

  it('20 of 20 payers all settle, in fewer transactions', async () => {
    const payers: PrivateKeyAccount[] = []
    for (let n = 0; n < 20; n += 1) payers.push(await world.payer(price))
    await settled(await Promise.all(payers.map((one) => sign(one))))
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
    assert.equal((await world.store.find(keyOf(second)))?.state, 'done')
    assert.equal(await world.store.find(keyOf(first)), undefined)
  })

  it('a buyer who hangs up while it settles finds the proof by retrying, charged once', async () => {
    const payment = await sign(payer)
    await world.automine(false)
    const hangUp = startBuying(JSON.stringify({ assetId: String(token) }), headerV1(payment))
    await until(async () => (await world.store.find(keyOf(payment)))?.state === 'settling')
    hangUp()
    await world.mineAgain()
    const answer = await buySettled(gateway.url, token, payment)
    assert.equal(answer.status, 200)
    assert.equal(await charged(), price)
  })
})

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

function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    socket.on('close', () => resolve(answer))
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? resolve(answer) : reject(error),
    )
  })
}
