/** GET /payments/{payer}/{nonce}: what became of a payment, for the holder of its header and for its payer only (spec §4.8). */
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { encodeDeployData, parseAbi, toHex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import testWallet from '../../../../contracts/artifacts/TestWallet.json' with { type: 'json' }
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { statusDomain, statusTypes } from '../../../src/hosts/gateway/status.ts'
import { depositNonce } from '../../../src/payments/channels/channel.ts'
import {
  buy,
  buySettled,
  headerV1,
  headerV2,
  keyOf,
  price,
  sign,
  type SignedPayment,
} from '../../support/payments/buyer.ts'
import {
  buyThrough,
  channelHeader,
  installChannels,
  openChannel,
  voucherPayload,
} from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { until } from '../../support/wait.ts'

const { world, token, payer } = await openSale()
const gateway = await world.open({ deadlines: { settleMs: 500 } })
afterEach(() => world.heal())

type Key = Pick<SignedPayment, 'from' | 'nonce'>
type Claim = { readonly resource?: string; readonly payer?: Hex; readonly nonce?: Hex; readonly age?: number }

/** The header by which a payer proves who asks; `claim` is what differs in the signed message. */
async function signed(signer: PrivateKeyAccount, key: Key, claim: Claim = {}): Promise<Record<string, string>> {
  const { age = 0, ...rest } = claim
  const issuedAt = Math.floor(Date.now() / 1000) - age
  const resource = `${gateway.url}/verify`
  const message = { resource, payer: key.from, nonce: key.nonce, issuedAt: BigInt(issuedAt), ...rest }
  const types = statusTypes
  const signature = await signer.signTypedData({ domain: statusDomain, types, primaryType: 'PaymentStatus', message })
  return { Authorization: `EIP712 ${issuedAt}.${signature}` }
}

async function ask({ from, nonce }: Key, headers: Record<string, string> = {}, method = 'GET', { url } = gateway) {
  const response = await fetch(`${url}/payments/${from}/${nonce}`, { method, headers })
  const text = await response.text()
  return {
    status: response.status,
    text,
    body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>,
    headers: response.headers,
  }
}

describe('the status of a payment', () => {
  it('is settling with its transaction, then done with the proof, which the next payment does not get again', async () => {
    const payment = await sign(payer)
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
    await world.sent(payment)
    const settling = await ask(payment, headerV1(payment))
    assert.deepEqual([settling.status, settling.body['status']], [200, 'settling'])
    assert.match(String(settling.body['transaction']), /^0x[0-9a-f]{64}$/)
    await world.mineAgain()
    const proof = await buySettled(gateway.url, token, payment)
    for (const headers of [headerV1(payment), headerV2(payment), await signed(payer, payment)]) {
      const { status, text, headers: answered } = await ask(payment, headers)
      assert.equal(status, 200)
      const { transaction } = proof.body.payment ?? {}
      assert.equal(text, `{"status":"done","transaction":"${transaction}","proof":${proof.text}}`)
      assert.equal(answered.get('cache-control'), 'no-store')
    }
    assert.notEqual((await buySettled(gateway.url, token, await sign(payer))).text, proof.text)
  })

  it('gives an undelivered proof, after which the next payment buys a new one', async () => {
    const payment = await sign(payer)
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    await world.undeliver(payment)
    assert.equal((await ask(payment, await signed(payer, payment))).body['status'], 'done')
    await until(async () => (await world.store.find(keyOf(payment)))?.undelivered === false)
  })

  it('gives it although the statement that ends the mark fails, so that the next payment still gets it', async () => {
    const payment = await sign(payer)
    const sold = await buySettled(gateway.url, token, payment)
    await world.undeliver(payment)
    const setUndelivered = () => Promise.reject(new Error('connection terminated'))
    const broken = await world.open({ ledger: { ...world.store, setUndelivered } })
    const headers = await signed(payer, payment, { resource: `${broken.url}/verify` })
    const answer = await fetch(`${broken.url}/payments/${payment.from}/${payment.nonce}`, { headers })
    assert.deepEqual([answer.status, ((await answer.json()) as { proof?: object }).proof], [200, sold.body])
    await broken.close()
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).text, sold.text)
  })

  it('leaves an undelivered proof to the payer when a stranger asks with the payment, which is public on the chain', async () => {
    const payment = await sign(payer)
    const sold = await buySettled(gateway.url, token, payment)
    await world.undeliver(payment)
    assert.equal((await ask(payment, headerV1(payment))).body['status'], 'done')
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).text, sold.text)
  })

  it('delivers no proof to a request without a body, so that the next payment still gets it', async () => {
    const payment = await sign(payer)
    const sold = await buySettled(gateway.url, token, payment)
    await world.undeliver(payment)
    const own = await world.open()
    const headers = await signed(payer, payment, { resource: `${own.url}/verify` })
    assert.equal((await ask(payment, headers, 'HEAD', own)).status, 200)
    await own.close() // waits for the end of the answer, at which a delivered proof loses its mark
    assert.equal((await world.store.find(keyOf(payment)))?.undelivered, true)
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).text, sold.text)
  })

  it('is rejected with its reason', async () => {
    const payment = await sign(payer)
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
    await world.store.reject(keyOf(payment), 'authorization_expired')
    const { status, body } = await ask(payment, headerV1(payment))
    assert.deepEqual([status, body['status'], body['reason']], [200, 'rejected', 'authorization_expired'])
  })

  it('is there for a smart wallet, whose contract checks the signature', async () => {
    const abi = parseAbi(['constructor(address holder)'])
    const data = encodeDeployData({ abi, bytecode: testWallet.bytecode as Hex, args: [payer.address] })
    const from = await world.deploy(data)
    await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address: from, amount: price }] })
    const payment = await sign(payer, { from })
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.equal((await ask(payment, await signed(payer, payment))).body['status'], 'done')
    const other = await world.payer(0n)
    assert.equal((await ask(payment, await signed(other, payment))).status, 404)
  })
})

describe('the status of a voucher', () => {
  it('is there for the holder of its header, whose deposit has one too; no other header shows them', async () => {
    await installChannels(world.rpc)
    const authorizer = attestationKey()
    await using seller = await world.open(world.through(authorizer))
    const channel = await openChannel(world, { url: seller.url, token, authorizer })
    const { payer: own, first, voucher, keyAt } = channel
    const second = await voucher(2n * price)
    const sold = [channel.bought, await buyThrough(seller.url, token, second)]
    const [one, two] = [price, 2n * price].map((sum) => ({ from: own.address, nonce: keyAt(sum).nonce }))
    const { salt } = first.deposit.authorization.erc3009Authorization
    const deposit = { from: own.address, nonce: depositNonce(channel.own.id, salt) }
    const read = async (key: Key | undefined, payload: object) => {
      assert.ok(key)
      const { status, body } = await ask(key, channelHeader(payload), 'GET', seller)
      return status === 200 ? body : status
    }
    const { transaction } = sold[0]?.body.payment ?? {}
    assert.deepEqual(await read(one, first), { status: 'done', transaction: null, proof: sold[0]?.body })
    assert.deepEqual(await read(deposit, first), { status: 'done', transaction })
    await world.store.setUndelivered(keyAt(2n * price), true)
    assert.deepEqual(await read(two, second), { status: 'done', transaction: null, proof: sold[1]?.body })
    const next = await buyThrough(seller.url, token, await voucher(3n * price))
    assert.equal(next.text, sold[1]?.text)

    const stranger = await voucherPayload(await world.payer(0n), channel.own, 2n * price)
    for (const payload of [first, stranger, { ...second, type: 'refund' }]) assert.equal(await read(two, payload), 404)
    assert.equal(await read(deposit, second), 404)
  })
})

describe('others', () => {
  it('get one and the same 404, as for a payment that does not exist', async () => {
    const payment = await sign(payer)
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    const other = await world.payer(0n)
    const unknown = await ask({ from: payer.address, nonce: toHex(7n, { size: 32 }) }, headerV1(payment))
    assert.deepEqual([unknown.status, unknown.body['error']], [404, 'not_found'])
    const forged = await sign(other, payment)
    const own = await sign(payer)
    for (const headers of [
      {},
      headerV1(forged),
      headerV1(own),
      { 'X-PAYMENT': '!' },
      { Authorization: 'EIP712 1.0x' },
      await signed(other, payment),
      await signed(payer, payment, { age: 310 }),
      await signed(payer, payment, { age: -120 }),
      await signed(payer, payment, { nonce: own.nonce }),
      await signed(payer, payment, { payer: other.address }),
      await signed(payer, payment, { resource: 'https://other.example/verify' }),
    ]) {
      const { status, text } = await ask(payment, headers)
      assert.deepEqual([status, text], [unknown.status, unknown.text], JSON.stringify(headers))
    }
    for (const path of ['', '/', '/0x12/0x34', `/${payer.address}`, `/${payer.address}/${payment.nonce}/more`])
      assert.equal((await fetch(`${gateway.url}/payments${path}`, { headers: headerV1(payment) })).status, 404, path)
  })

  it('get 405 for another method, and 429 beyond the quota of unpaid requests', async () => {
    const payment = await sign(payer)
    const posted = await ask(payment, headerV1(payment), 'POST')
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
    const preflight = await ask(payment, {}, 'OPTIONS')
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /PAYMENT-SIGNATURE.*, Authorization/)
    await using limited = await world.open({ limiter: createRateLimiter({ limit: 1 }) })
    const statuses = []
    for (let n = 0; n < 2; n += 1)
      statuses.push((await fetch(`${limited.url}/payments/${payer.address}/${payment.nonce}`)).status)
    assert.deepEqual(statuses, [404, 429])
  })

  it('get 503 while the ledger, or the chain that checks a signature, does not answer', async () => {
    const payment = await sign(payer)
    const broken = await world.open({ ledger: { ...world.store, find: () => Promise.reject(new Error('closed')) } })
    const url = `${broken.url}/payments/${payment.from}/${payment.nonce}`
    const down = await fetch(url, { headers: headerV1(payment) })
    assert.deepEqual([down.status, ((await down.json()) as { error: string }).error], [503, 'ledger_unavailable'])
    assert.match(down.headers.get('retry-after') ?? '', /^\d+$/)
    await broken.close()
    world.payFaults.set('die')
    const away = await ask(payment, await signed(await world.payer(0n), payment))
    assert.deepEqual([away.status, away.body['error']], [503, 'payment_unavailable'])
  })
})
