/** No fault makes an answer say «Nothing was charged» of what the ledger has (spec §4.8). */
import assert from 'node:assert/strict'
import { afterEach, before, describe, it } from 'node:test'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import type { GatewayOptions } from '../../../src/hosts/gateway/gateway.ts'
import { channelContract } from '../../../src/payments/channels/channel.ts'
import { buy, buySettled, codesOf, price, sign, type SignedPayment } from '../../support/payments/buyer.ts'
import {
  buyThrough,
  channelOf,
  deposit,
  depositPayload,
  installChannels,
  voucherPayload,
} from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { creationOf } from '../../support/payments/wallet.ts'
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'

type Ledger = typeof world.store
const { world, token, payer, charged } = await openSale()
const another = await world.mint()
afterEach(() => world.heal())

const connectionLost = () => Promise.reject(new Error('connection terminated'))
const pending = [503, 'settlement_pending']

describe('a payment that another process stores after the look into the ledger', () => {
  /** Stores a payment with its proof, as a process does that is killed then. */
  async function store(payment: SignedPayment): Promise<void> {
    const insert: Ledger['insert'] = (row) => world.store.insert(row).then(connectionLost)
    const killed = await world.open({ ledger: { ...world.store, insert, release: connectionLost } })
    assert.deepEqual(codesOf(await buy(killed.url, token, payment)), pending)
    await killed.close()
    await world.database.query(
      `update payment set claimed_until = claimed_until - interval '11 s' where state = 'settling'`,
    )
  }

  /** Opens a gateway whose first look for a payment is from before it was stored. */
  function openLate({ nonce }: SignedPayment, options: Partial<GatewayOptions>) {
    let looks = 0
    const find: Ledger['find'] = async (key) =>
      key.nonce === nonce && (looks += 1) === 1 ? undefined : world.store.find(key)
    return world.open({ ledger: { ...world.store, find }, deadlines: { settleMs: 500 }, ...options })
  }

  async function signAsWallet(): Promise<SignedPayment> {
    const from = await world.deploy(creationOf(payer.address))
    await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address: from, amount: price }] })
    return sign(payer, { from })
  }

  const signer = { ...world.signer, sign: connectionLost }
  for (const [what, fails, options = {}, signNew = async () => sign(await world.payer())] of [
    ['the provider does not answer', () => world.payFaults.set('die')],
    ['the signer fails', () => {}, { keys: { active: () => signer, published: () => [] } }],
    ['the asset cannot be read', () => world.readFaults.set('die')],
    ['the code of a wallet cannot be read', () => world.payFaults.set('die'), {}, signAsWallet],
  ] satisfies [string, () => void, Partial<GatewayOptions>?, (() => Promise<SignedPayment>)?][])
    it(`is settled for the same header, although ${what}`, async () => {
      const payment = await signNew()
      await using late = await openLate(payment, options)
      await store(payment)
      fails()
      const answer = await buy(late.url, token, payment)
      if (answer.status !== 200) assert.deepEqual(codesOf(answer), pending)
      await world.heal()
      assert.equal((await buySettled(late.url, token, payment)).status, 200)
      assert.equal(await charged(), price)
    })
})

describe('a payment channel whose provider fails', () => {
  const authorizer = attestationKey()
  before(() => installChannels(world.rpc))

  /** Opens a gateway whose provider does not answer while `isBroken` holds. */
  async function open() {
    const state = { isBroken: (_method: string, _isOfChannels: boolean) => false, isMined: false }
    const rpc: RpcClient = async (method, params) => {
      const [call] = (params ?? []) as [{ to?: string }?]
      if (state.isBroken(method, call?.to === channelContract)) throw new Error('no answer in time')
      const answer = await world.provider(method, params)
      if (method === 'eth_getTransactionReceipt' && answer !== null) state.isMined = true
      return answer
    }
    const gateway = await world.open({ rpc, ...world.through(authorizer) })
    const own = await world.payer(2n * deposit)
    const channel = channelOf(own.address, authorizer.address)
    return { gateway, own, channel, state }
  }

  it('leaves it open whether a deposit was made, and makes no second one', async () => {
    const { gateway, own, channel, state } = await open()
    const payload = await depositPayload(own, channel)
    state.isBroken = (method, isOfChannels) => state.isMined && method === 'eth_call' && isOfChannels
    assert.deepEqual(codesOf(await buyThrough(gateway.url, token, payload)), pending)
    state.isBroken = () => true
    assert.deepEqual(codesOf(await buyThrough(gateway.url, token, payload)), pending)
    state.isBroken = () => false
    assert.equal((await buyThrough(gateway.url, token, payload)).status, 200)
    assert.equal(await world.balance(own.address), deposit)
    await gateway.close()
  })

  it('leaves it open what a voucher has bought that comes for another asset, or an hour later', async () => {
    const { gateway, own, channel, state } = await open()
    const first = await depositPayload(own, channel)
    assert.equal((await buyThrough(gateway.url, token, first)).status, 200)
    const voucher = await voucherPayload(own, channel, price)
    await world.database.query(`update channel set read_at = read_at - interval '11 minutes'`)
    state.isBroken = () => true
    assert.deepEqual(codesOf(await buyThrough(gateway.url, another, voucher)), pending)
    await world.ageSettled()
    assert.deepEqual(codesOf(await buyThrough(gateway.url, token, voucher)), pending)
    state.isBroken = () => false
    assert.deepEqual(codesOf(await buyThrough(gateway.url, token, voucher)), [402, 'payment_already_used'])
    await gateway.close()
  })

  it('says that nothing was charged of a voucher that is new', async () => {
    const { gateway, own, channel, state } = await open()
    state.isBroken = () => true
    const { status, body } = await buyThrough(gateway.url, token, await voucherPayload(own, channel, price))
    assert.deepEqual([status, body.error], [503, 'payment_unavailable'])
    await gateway.close()
  })
})
