/** Payers that are smart wallets (spec §4.8): deployed ones (ERC-1271), and ones that their factory deploys with the payment (ERC-6492). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checksumAddress, type Hex } from '@touchstone/verdict'
import { toHex } from 'viem'
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { buy, buySettled, codesOf, price, sign, type SignedPayment } from '../../support/payments/buyer.ts'
import { buyWithFetch } from '../../support/payments/stock.ts'
import {
  creationOf,
  factoryCreation,
  predictWallet,
  walletSigner,
  wrapSignature,
} from '../../support/payments/wallet.ts'
import { until } from '../../support/wait.ts'

const { world, token, charged } = await openSale()
const [factory, stranger] = [await world.deploy(factoryCreation), await world.deploy(factoryCreation)]
const gateway = await world.open({ facilitator: { accounts: [world.facilitator], walletFactories: [factory] } })
const holder = await world.payer(0n)

const creation = creationOf(holder.address)

const fund = async (address: Hex) => {
  await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address, amount: 3n * price }] })
  return address
}

/** Signs a payment of the wallet as a client does that does not know whether it is deployed. */
async function signWrapped(from: Hex, deployer: Hex, by = holder): Promise<SignedPayment> {
  const payment = await sign(by, { from })
  return { ...payment, signature: wrapSignature(payment.signature, deployer, by.address) }
}

const walletOf = (deployer: Hex) => predictWallet(deployer, holder.address)

/** The gas of the transaction that settled a payment. */
async function gasOf({ status, body }: Awaited<ReturnType<typeof buySettled>>): Promise<bigint> {
  assert.deepEqual([status, body.error], [200, undefined])
  const receipt = await world.rpc('eth_getTransactionReceipt', [body.payment?.transaction])
  return BigInt((receipt as { gasUsed: Hex }).gasUsed)
}

const hasCode = async (address: Hex) => (await world.rpc('eth_getCode', [address, 'latest'])) !== '0x'

describe('a deployed wallet', () => {
  it('pays with the signature that its contract takes', async () => {
    const from = await fund(await world.deploy(creation))
    const { status, body } = await buySettled(gateway.url, token, await sign(holder, { from }))
    assert.deepEqual([status, body.error], [200, undefined])
    assert.equal(await charged(), price)
    const forged = await buy(gateway.url, token, await sign(await world.payer(0n), { from }))
    assert.deepEqual(codesOf(forged), [402, 'invalid_signature'])
  })

  it('gets its proof again although no provider answers, and a payment with another signature gets none', async () => {
    const from = await fund(await world.deploy(creation))
    const payment = await sign(holder, { from })
    const sold = await buySettled(gateway.url, token, payment)
    const forged = { ...payment, signature: (await sign(await world.payer(0n), { from })).signature }
    world.payFaults.set('die')
    const again = await buy(gateway.url, token, payment)
    const unknown = await buy(gateway.url, token, forged)
    await world.heal()
    assert.deepEqual([again.status, again.text], [200, sold.text])
    assert.deepEqual(codesOf(unknown), [503, 'settlement_pending'])
    assert.equal(await charged(), price)
  })
})

describe('a wallet that takes any signature, for more gas than a transfer has', () => {
  it('is refused, which counts for the quota of refused payments', async () => {
    const wallet = await fund((await world.payer(0n)).address)
    // It burns about 400,000 gas.
    await world.rpc('anvil_setCode', [wallet, '0x612ee05b6001900380600357631626ba7e60e01b60005260206000f3'])
    await using limited = await world.open({ refusals: createRateLimiter({ limit: 1 }) })
    const errors = []
    for (let n = 0; n < 2; n += 1)
      errors.push((await buy(limited.url, token, await sign(holder, { from: wallet }))).body.error)
    assert.deepEqual(errors, ['payment_rejected', 'rate_limited'])
    assert.equal(await charged(), 0n)
  })
})

describe('a proof that was not delivered to a wallet', () => {
  it('answers its next payment, and no payment that another signed in its name', async () => {
    const from = await fund(await world.deploy(creation))
    const first = await sign(holder, { from })
    const sold = await buySettled(gateway.url, token, first)
    assert.equal(sold.status, 200)
    await world.undeliver(first)
    const other = await world.payer(0n)
    for (const forged of [
      await sign(other, { from }),
      { ...first, nonce: toHex(9n, { size: 32 }), signature: '0x12' as Hex },
    ]) {
      const { status, body } = await buy(gateway.url, token, forged)
      assert.deepEqual([status, body.error], [402, 'invalid_signature'])
    }
    assert.equal((await buySettled(gateway.url, token, await sign(holder, { from }))).text, sold.text)
    assert.equal(await charged(), price)
  })
})

describe('a wallet without code', () => {
  it('is refused with a plain signature, and with a factory that is not listed', async () => {
    const plain = await buy(gateway.url, token, await sign(holder, { from: await fund(walletOf(factory)) }))
    assert.deepEqual(codesOf(plain), [402, 'invalid_signature'])
    const unlisted = await buy(gateway.url, token, await signWrapped(await fund(walletOf(stranger)), stranger))
    assert.deepEqual(codesOf(unlisted), [402, 'wallet_factory_not_allowed'])
    assert.equal(await charged(), 0n)
  })

  it('is deployed by its payment, and pays again with either form of signature', async () => {
    const from = await fund(walletOf(factory))
    assert.deepEqual(codesOf(await buySettled(gateway.url, token, await signWrapped(from, factory))), [200, undefined])
    assert.ok(await hasCode(from))
    // A second deployment would burn all of its gas.
    for (const payment of [await signWrapped(from, factory), await sign(holder, { from })])
      assert.ok((await gasOf(await buySettled(gateway.url, token, payment))) < 200_000n)
    assert.equal(await charged(), 3n * price)
  })

  it('is deployed by the payment that is sent, whichever was checked first, and once', async () => {
    const owner = await world.payer(0n)
    const from = await fund(predictWallet(factory, owner.address))
    const payments = await Promise.all(Array.from({ length: 3 }, () => signWrapped(from, factory, owner)))
    const [unsold, ...sold] = await Promise.all(
      [9_999n, token, token].map((id, n) => buySettled(gateway.url, id, payments[n] as SignedPayment)),
    )
    assert.equal(unsold?.status, 404)
    const [first = 0n, second = 0n] = (await Promise.all(sold.map(gasOf))).toSorted((a, b) => Number(b - a))
    assert.ok(first > 300_000n && second < 200_000n, `${first} and ${second} gas`)
    assert.equal(await charged(), 2n * price)
  })

  it('pays two gateways that deploy it at the same moment, and neither refuses it after that', async () => {
    const owner = await world.payer(0n)
    const from = await fund(predictWallet(factory, owner.address))
    const wrapped = () => signWrapped(from, factory, owner)
    // Their providers do not know what the other one has sent.
    const rpc: RpcClient = (method, params = []) =>
      world.provider(method, method === 'eth_call' && params[1] === 'pending' ? [params[0], 'latest'] : params)
    const options = { rpc, facilitator: { accounts: [world.facilitator], walletFactories: [factory] } }
    const gateways = [await world.open(options), await world.open(options)] as const
    await world.automine(false)
    const before = await world.transactions()
    const answers = gateways.map(async ({ url }) => buySettled(url, token, await wrapped()))
    await until(async () => Number(await world.rpc('eth_getBlockTransactionCountByNumber', ['pending'])) === 2)
    await world.heal()
    await world.mine()
    const gas = (await Promise.all((await Promise.all(answers)).map(gasOf))).toSorted((a, b) => Number(b - a))
    assert.ok((gas[1] ?? 0n) > 200_000n, `${gas.join()} gas`)
    assert.equal((await world.transactions()) - before, 2)
    await fund(from)
    for (const { url } of gateways) assert.equal((await buySettled(url, token, await wrapped())).status, 200)
    assert.equal(await charged(), 4n * price)
    for (const gateway of gateways) await gateway.close()
  })

  it('costs no deployment where the payer is an account', async () => {
    const account = await world.payer()
    const payment = await signWrapped(account.address, factory, account)
    assert.ok((await gasOf(await buySettled(gateway.url, token, payment))) < 200_000n)
    assert.equal(await charged(), price)
  })
})

describe('a wallet behind a stock client', () => {
  const impatient = world.open({
    facilitator: { accounts: [world.facilitator], walletFactories: [factory] },
    deadlines: { settleMs: 500 },
  })
  for (const form of ['ERC-1271', 'ERC-6492'] as const)
    it(`(${form}) gets one proof for one price although its first answer was 503`, async () => {
      const owner = await world.payer(0n)
      const isDeployed = form === 'ERC-1271'
      const address = isDeployed ? await world.deploy(creationOf(owner.address)) : predictWallet(factory, owner.address)
      await fund(address)
      const signer = walletSigner(address, owner, isDeployed ? undefined : factory)
      const purchase = { url: (await impatient).url, tokenId: token, signer }
      await world.automine(false)
      const first = await buyWithFetch(purchase)
      assert.deepEqual([first.status, first.body['error']], [503, 'settlement_pending'])
      await world.heal()
      await world.mine()
      let last = first
      await until(async () => (last = await buyWithFetch(purchase)).status !== 503)
      assert.deepEqual([last.status, last.receipt['payer']], [200, checksumAddress(address)])
      await (await impatient).reconcile()
      assert.equal(await charged(), price)
    })
})
