/** The ledger answers vouchers that come again, and those of a buyer whose earlier purchase was not delivered (spec §4.8). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { decodePaymentResponseHeader } from '@x402/fetch'
import { generatePrivateKey } from 'viem/accounts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { parseOrder } from '../../../src/payments/order.ts'
import { codesOf, price, type Answered } from '../../support/payments/buyer.ts'
import { buyThrough, channelOf, installChannels, openChannel, voucherPayload } from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import { startGatewayWorld, type GatewayWorld, type Opened } from '../../support/payments/gateway.ts'
import { newPayment } from '../../support/payments/ledger.ts'
import { until } from '../../support/wait.ts'

const authorizer = attestationKey()
/** Returns what a stock client reads of a sale: the price that it cost, and the sum of the channel. */
function chargeOf({ headers }: Answered): readonly unknown[] {
  const receipt = decodePaymentResponseHeader(headers.get('PAYMENT-RESPONSE') ?? '')
  const { chargedAmount, channelState } = receipt.extra as Record<string, Record<string, unknown>>
  return [chargedAmount, channelState?.['chargedCumulativeAmount']]
}
const used = [402, 'payment_already_used']

describe('a voucher', () => {
  let world: GatewayWorld
  let gateway: Opened
  let token: bigint
  let another: bigint

  before(async () => {
    world = await startGatewayWorld()
    await installChannels(world.rpc)
    token = await world.mint()
    another = await world.mint()
    gateway = await world.open(world.through(authorizer))
  })
  after(() => world?.end())

  /** Opens a channel with one purchase, whose proof was delivered. */
  async function newChannel() {
    const channel = await openChannel(world, { url: gateway.url, token, authorizer })
    const key = channel.keyAt(price)
    const isMarked = async () => (await world.store.find(key))?.undelivered
    const isSent = `select from payment where undelivered and payer = decode($1, 'hex')`
    await until(async () => (await world.database.query(isSent, [key.payer.slice(2)])).length === 0)
    return { ...channel, key, isMarked }
  }

  it('of an hour ago brings its proof where that was not delivered, and not where it was', async () => {
    const { voucher, bought, key, charged } = await newChannel()
    await world.ageSettled()
    assert.deepEqual(codesOf(await buyThrough(gateway.url, token, await voucher(price))), used)
    await world.store.setUndelivered(key, true)
    const again = await buyThrough(gateway.url, token, await voucher(price))
    assert.deepEqual([again.status, again.text, await charged()], [200, bought.text, price])
  })

  it('of an hour ago marks no proof when it comes for another request', async () => {
    const { voucher, isMarked } = await newChannel()
    await world.ageSettled()
    assert.deepEqual(codesOf(await buyThrough(gateway.url, another, await voucher(price))), used)
    assert.equal(await isMarked(), false)
    assert.deepEqual(codesOf(await buyThrough(gateway.url, token, await voucher(price))), used)
  })

  it('brings the purchase of its name as it was, however old that is', async () => {
    const { voucher, charged } = await newChannel()
    const id = `channel-${generatePrivateKey()}`.slice(0, 60)
    const extensions = { 'payment-identifier': { info: { required: false, id } } }
    const own = await world.mint()
    const named = await buyThrough(gateway.url, own, await voucher(2n * price), { extensions })
    assert.equal(named.status, 200)
    await world.ageSettled()
    await world.flag(own, 1)
    const again = await buyThrough(gateway.url, own, await voucher(3n * price), { extensions })
    assert.deepEqual([again.status, again.text, await charged()], [200, named.text, 2n * price])
  })

  it('that brings an earlier proof costs nothing, and binds its name to that', async () => {
    const { voucher, bought, key, isMarked, charged } = await newChannel()
    await world.store.setUndelivered(key, true)
    const id = `channel-${generatePrivateKey()}`.slice(0, 60)
    const extensions = { 'payment-identifier': { info: { required: false, id } } }
    for (let time = 0; time < 2; time += 1) {
      const next = await buyThrough(gateway.url, token, await voucher(2n * price), { extensions })
      assert.deepEqual([next.status, next.text, await charged()], [200, bought.text, price])
      if (time === 0) assert.deepEqual(chargeOf(next), ['0', String(price)])
      await until(async () => (await isMarked()) === false)
    }
    assert.deepEqual(chargeOf(await buyThrough(gateway.url, token, await voucher(price))), [
      String(price),
      String(price),
    ])
    const sold = await buyThrough(gateway.url, token, await voucher(2n * price))
    assert.deepEqual([sold.status, chargeOf(sold)], [200, [String(price), String(2n * price)]])
  })

  it('that comes again brings the same bytes, although the asset has changed', async () => {
    const { voucher, key, isMarked } = await newChannel()
    const own = await world.mint()
    const sold = await buyThrough(gateway.url, own, await voucher(2n * price))
    assert.equal(sold.status, 200)
    await world.flag(own, 1)
    const again = await buyThrough(gateway.url, own, await voucher(2n * price))
    assert.deepEqual([again.status, again.text, await isMarked()], [200, sold.text, false], key.nonce)
  })

  it('for another seller leaves an undelivered proof to its buyer, although its channel shows no claim', async () => {
    const { payer, own, voucher, bought, key, isMarked, charged } = await newChannel()
    await world.store.setUndelivered(key, true)
    const receiver = publishedAddresses[3]?.toLowerCase() as typeof own.receiver
    const elsewhere = channelOf(payer.address, authorizer.address, { receiver })
    const foreign = await buyThrough(gateway.url, token, await voucherPayload(payer, elsewhere, 2n * price))
    assert.deepEqual(codesOf(foreign), [402, 'recipient_mismatch'])
    assert.equal(await isMarked(), true)
    const next = await buyThrough(gateway.url, token, await voucher(2n * price))
    assert.deepEqual([next.status, next.text, await charged()], [200, bought.text, price])
  })

  it('is sold from a deposit that the ledger does not have yet', async () => {
    const { own, voucher, charged } = await newChannel()
    await world.database.query(`update channel set balance = charged where id = decode($1, 'hex')`, [own.id.slice(2)])
    assert.equal((await buyThrough(gateway.url, token, await voucher(2n * price))).status, 200)
    assert.equal(await charged(), 2n * price)
  })

  it('of a channel without a deposit leaves no record of that', async () => {
    const payer = await world.payer(0n)
    const own = channelOf(payer.address, authorizer.address)
    const refused = await buyThrough(gateway.url, token, await voucherPayload(payer, own, price))
    assert.deepEqual(codesOf(refused), [402, 'channel_underfunded'])
    assert.equal(await world.channels.find(own.id), undefined)
  })

  it('is sold while a transfer of its buyer for the same request is not settled', async () => {
    const { own, voucher, charged } = await newChannel()
    const body = parseOrder(JSON.stringify({ assetId: String(another) }))
    assert.ok(body.kind === 'order')
    const transfer = newPayment()
    const payment = { ...transfer.payment, from: own.payer }
    const row = { ...transfer, payment, payer: own.payer, requestHash: body.order.requestHash }
    assert.ok(await world.store.insert(row))
    await world.store.setUndelivered(row, true)
    assert.equal((await buyThrough(gateway.url, another, await voucher(2n * price))).status, 200)
    assert.equal(await charged(), 2n * price)
    await world.database.query(`delete from payment where state = 'settling'`)
  })
})
