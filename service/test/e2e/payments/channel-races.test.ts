/** Purchases through one payment channel that meet in one process or two, and the last unit of a deposit (spec §4.8). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { hexToBytes } from 'viem'
import { voucherDigest } from '../../../src/payments/channels/channel.ts'
import {
  buyThrough,
  channelHeader,
  channelOf,
  deposit,
  depositPayload,
  installChannels,
  openChannel,
} from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import { codesOf, price } from '../../support/payments/buyer.ts'
import { startGatewayWorld, type GatewayWorld, type Opened } from '../../support/payments/gateway.ts'
import { until } from '../../support/wait.ts'

const authorizer = attestationKey()

describe('a payment channel', () => {
  let world: GatewayWorld
  let gateway: Opened
  let token: bigint
  let signatures = 0

  before(async () => {
    world = await startGatewayWorld()
    await installChannels(world.rpc)
    token = await world.mint()
    gateway = await openGateway()
  })
  after(() => world?.end())

  const openGateway = (store = world.channels, more: Parameters<typeof world.open>[0] = {}) => {
    const { signer } = world
    const counting = {
      ...signer,
      sign: (...given: Parameters<typeof signer.sign>) => ((signatures += 1), signer.sign(...given)),
    }
    const keys = { active: () => counting, published: () => [] }
    return world.open({ keys, ...world.through(authorizer, { store }), ...more })
  }

  /** Opens a channel with one purchase. */
  const newChannel = () => openChannel(world, { url: gateway.url, token, authorizer, money: 2n * deposit })

  it('makes one proof for a voucher that comes often at the same moment, and counts one sale', async () => {
    const { voucher, charged } = await newChannel()
    const figures = async () => {
      const { units, sales } = await gateway.metrics()
      return [units / Number(price), sales.vouchers ?? 0, signatures]
    }
    const before = await figures()
    /** Sends the voucher over so many prices several times at once; returns what the purchase has added. */
    const flood = async (prices: bigint, times: number) => {
      const payload = await voucher(prices * price)
      const answers = await Promise.all(Array.from({ length: times }, () => buyThrough(gateway.url, token, payload)))
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
      assert.equal(await charged(), prices * price)
      const added = (await figures()).map((figure, index) => figure - (before[index] ?? 0))
      before.splice(0, before.length, ...(await figures()))
      return added
    }
    const [alone, often] = [await flood(2n, 1), await flood(3n, 10)]
    assert.deepEqual(often, alone)
    assert.deepEqual(alone.slice(0, 2), [1, 1])
  })

  it('sells a voucher once that another process sells after the look into the ledger', async () => {
    const { own, voucher, charged } = await newChannel()
    const payload = await voucher(2n * price)
    let looks = 0
    const find: typeof world.store.find = async (key) =>
      key.payer === own.payer && (looks += 1) === 1 ? undefined : world.store.find(key)
    await using late = await openGateway(world.channels, { ledger: { ...world.store, find } })
    const sold = await buyThrough(gateway.url, token, payload)
    const again = await buyThrough(late.url, token, payload)
    assert.deepEqual([again.status, again.text, await charged()], [200, sold.text, 2n * price])
  })

  it('sells a voucher once that another process sells while the proof is made', async () => {
    const { voucher, charged } = await newChannel()
    const payload = await voucher(2n * price)
    const sold: string[] = []
    const sell: typeof world.channels.sell = async (sale) => {
      sold.push((await buyThrough(gateway.url, token, payload)).text)
      return world.channels.sell(sale)
    }
    await using late = await openGateway({ ...world.channels, sell })
    const again = await buyThrough(late.url, token, payload)
    assert.deepEqual([again.status, [again.text], await charged()], [200, sold, 2n * price])
  })

  it('is charged although its client hangs up while the deposit is on its way, and keeps the proof for it', async () => {
    let losses = 0
    const setUndelivered: typeof world.store.setUndelivered = (...args) =>
      (losses += 1) === 1 ? Promise.reject(new Error('connection terminated')) : world.store.setUndelivered(...args)
    await using lossy = await openGateway(world.channels, { ledger: { ...world.store, setUndelivered } })
    const payer = await world.payer(deposit)
    const own = channelOf(payer.address, authorizer.address)
    const payload = await depositPayload(payer, own)
    const leaving = new AbortController()
    await world.automine(false)
    const sent = fetch(`${lossy.url}/verify`, {
      method: 'POST',
      headers: channelHeader(payload),
      body: JSON.stringify({ assetId: String(token) }),
      signal: leaving.signal,
    })
    const isOnItsWay = `select from payment where kind = 'deposit' and state = 'settling' and tx_hash is not null`
    await until(async () => (await world.database.query(isOnItsWay)).length > 0)
    leaving.abort()
    await assert.rejects(sent)
    await world.heal()
    await world.mine()
    await until(async () => (await world.channels.find(own.id))?.charged === price)
    const key = { payer: own.payer, nonce: voucherDigest(own.id, price) }
    await until(async () => (await world.store.find(key))?.undelivered === true)
    assert.ok(losses > 0)
    const bought = await world.database.query(
      `select kind, token_id is null as "isForNone" from payment where channel = $1 order by kind`,
      [hexToBytes(own.id)],
    )
    assert.deepEqual(bought, [
      { kind: 'deposit', isForNone: true },
      { kind: 'voucher', isForNone: false },
    ])
    assert.equal((await buyThrough(gateway.url, token, payload)).status, 200)
  })

  it('sells up to the last unit of its deposit, and with a new one up to the last unit of both', async () => {
    const { own, payer, voucher, charged } = await newChannel()
    const setCharged = (sum: bigint) =>
      world.database.query('update channel set charged = $1::numeric where id = $2', [String(sum), hexToBytes(own.id)])
    await setCharged(deposit - price)
    let reads = 0
    await using counted = await openGateway({
      ...world.channels,
      refresh: (given) => ((reads += 1), world.channels.refresh(given)),
    })
    assert.equal((await buyThrough(counted.url, token, await voucher(deposit))).status, 200)
    assert.equal(reads, 0)
    await setCharged(2n * deposit - price)
    const last = await depositPayload(payer, own, { sum: 2n * deposit })
    assert.equal((await buyThrough(counted.url, token, last)).status, 200)
    assert.equal(await charged(), 2n * deposit)
    const refused = await buyThrough(counted.url, token, await voucher(2n * deposit + price))
    assert.deepEqual(codesOf(refused), [402, 'channel_underfunded'])
  })
})
