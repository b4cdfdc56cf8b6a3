/** A payment that finds an undelivered proof gets an answer that is true now (spec §4.8). It is not charged. */
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { verifyAttestation, type Hex } from '@touchstone/verdict'
import { buyThrough, installChannels, openChannel } from '../../support/payments/channels.ts'
import { attestationKey, published } from '../../support/payments/components.ts'
import { openSale } from '../../support/payments/gateway.ts'
import {
  acceptedV2,
  buy,
  buySettled,
  codesOf,
  headerV1,
  headerV2,
  keyOf,
  post,
  price,
  sign,
  type Answered,
  type SignedPayment,
} from '../../support/payments/buyer.ts'
import { until } from '../../support/wait.ts'

const { world, payer, charged } = await openSale()
const gateway = await world.open()
afterEach(() => world.heal())

const stolen = 2
const isMarked = async (payment: SignedPayment) => (await world.store.find(keyOf(payment)))?.undelivered
const isDelivered = (payment: SignedPayment) => until(async () => (await isMarked(payment)) === false)

/** Buys the proof of a new token, and loses it on its way to the buyer. */
async function loseProof(more: object = {}, { url } = gateway) {
  const token = await world.mint()
  const first = await sign(payer)
  const sold = await post(url, { assetId: String(token), ...more }, headerV1(first))
  assert.deepEqual([sold.status, sold.body['authentic']], [200, true])
  await isDelivered(first)
  await world.undeliver(first)
  return { token, first, sold }
}

/** Opens a gateway with channels, and buys the proof of a new token through one. */
async function newChannel(more: Parameters<typeof world.open>[0] = {}) {
  await installChannels(world.rpc)
  const authorizer = attestationKey()
  const seller = await world.open({ ...world.through(authorizer), ...more })
  const token = await world.mint()
  const channel = await openChannel(world, { url: seller.url, token, authorizer })
  const key = channel.keyAt(price)
  const isDelivered = async () => (await world.store.find(key))?.undelivered === false
  await until(isDelivered)
  return { ...channel, seller, token, key, isDelivered }
}

/** Checks that an answer is valid, shows the theft, and was paid by the payment of `sold`. */
function checkReported(answer: Answered, sold: Answered, signer: Hex = world.signer.address): void {
  const { state, authentic, flagged, assetId, payment } = answer.body
  assert.deepEqual([answer.status, state, authentic, flagged], [200, 'FLAGGED', false, true])
  assert.ok(verifyAttestation(answer.body, { signer, tokenId: BigInt(assetId ?? 0) }).ok)
  assert.deepEqual(payment, sold.body.payment)
}

describe('a purchase after a change of the asset, by a buyer whose last proof did not arrive', () => {
  it('gets the state of now under the payment of then, as does every repeat from then on', async () => {
    const { token, first, sold } = await loseProof()
    await world.flag(token, stolen)
    assert.equal((await buy(gateway.url, token, first)).text, sold.text)
    const next = await buySettled(gateway.url, token, await sign(payer))
    checkReported(next, sold)
    await isDelivered(first)
    assert.equal((await buy(gateway.url, token, first)).text, next.text)
    assert.equal(await charged(), price)
    assert.notEqual((await buySettled(gateway.url, token, await sign(payer))).text, next.text)
    assert.equal(await charged(), 2n * price)
  })

  it('gets it as an EAS attestation too', async () => {
    const { token, sold } = await loseProof({ eas: true })
    await world.flag(token, stolen)
    const next = await post(gateway.url, { assetId: String(token), eas: true }, headerV1(await sign(payer)))
    checkReported(next, sold)
    const { eas } = next.body['attestation'] as { eas: { signer: Hex; sig: { message: { time: string } } } }
    assert.equal(eas.signer, world.signer.address)
    assert.notDeepEqual(eas, (sold.body['attestation'] as { eas: object }).eas)
    assert.equal(await charged(), price)
  })

  it('gets it where it waits for the settlement of the first one', async () => {
    const recording = Promise.withResolvers<void>()
    const sought: Hex[] = []
    await using slow = await world.open({
      deadlines: { settleMs: 500 },
      ledger: {
        ...world.store,
        find: (key) => (sought.push(key.nonce), world.store.find(key)),
        done: (...args) => recording.promise.then(() => world.store.done(...args)),
      },
    })
    const token = await world.mint()
    assert.deepEqual(codesOf(await buy(slow.url, token, await sign(payer))), [503, 'settlement_pending'])
    await world.flag(token, stolen)
    const second = await sign(payer)
    const next = buySettled(slow.url, token, second)
    await until(() => sought.includes(second.nonce))
    recording.resolve()
    assert.deepEqual([(await next).status, (await next).body['state']], [200, 'FLAGGED'])
    assert.equal(await charged(), price)
  })

  it('gets a new signature where the key of the first one is not the one that signs now', async () => {
    const { token, sold } = await loseProof()
    const signer = attestationKey()
    const revoked = { ...published(world.signer), status: 'revoked' } as const
    const keys = { active: () => signer, published: () => [revoked, published(signer)] }
    await using rotated = await world.open({ keys })
    const next = await buySettled(rotated.url, token, await sign(payer))
    assert.deepEqual([next.status, next.body.payment], [200, sold.body.payment])
    assert.ok(verifyAttestation(next.body, { keys: { keys: keys.published() }, tokenId: token }).ok)
    assert.equal(await charged(), price)
  })

  it('gets a new signature once the proof is more than a minute old, because buyers take no old one', async () => {
    await using early = await world.open({ now: () => Date.now() - 40_000 })
    await using later = await world.open({ now: () => Date.now() + 25_000 })
    const { token, sold } = await loseProof({}, early)
    const next = await buySettled(later.url, token, await sign(payer))
    const issuedAt = ({ body }: Answered) =>
      (body['attestation'] as { v2: { message: { issuedAt: string } } }).v2.message.issuedAt
    assert.ok(Number(issuedAt(next)) - Number(issuedAt(sold)) > 60)
    assert.deepEqual([next.status, next.body.payment], [200, sold.body.payment])
    assert.equal(await charged(), price)
  })

  it('gets the answer that another process has stored meanwhile', async () => {
    const { token, sold } = await loseProof()
    await world.flag(token, stolen)
    const ledger: typeof world.store = { ...world.store, setUndelivered: async () => null } // leaves the mark
    const other = await world.open({ ledger })
    let theirs: Answered | undefined
    const late = await world.open({
      ledger: {
        ...world.store,
        async renew(...args) {
          theirs ??= await buySettled(other.url, token, await sign(payer))
          return world.store.renew(...args)
        },
      },
    })
    const next = await buySettled(late.url, token, await sign(payer))
    checkReported(next, sold)
    assert.equal(next.text, theirs?.text)
    assert.equal(await charged(), price)
    await Promise.all([other.close(), late.close()])
  })

  it('gets an error where the asset cannot be read; its name finds the state of now later', async () => {
    const { token, first, sold } = await loseProof()
    const second = headerV2(await sign(payer), acceptedV2, {
      extensions: { 'payment-identifier': { info: { required: false, id: `pay_${first.nonce.slice(2)}` } } },
    })
    world.readFaults.set('rpc-error')
    assert.deepEqual(codesOf(await post(gateway.url, { assetId: String(token) }, second)), [502, 'chain_unavailable'])
    await world.heal()
    await world.flag(token, stolen)
    const next = await post(gateway.url, { assetId: String(token) }, second)
    checkReported(next, sold)
    await isDelivered(first)
    assert.equal((await post(gateway.url, { assetId: String(token) }, second)).text, next.text)
    assert.equal(await charged(), price)
  })

  it('gets none with a time that is still to come, where the clock is ahead', async () => {
    const { token, first } = await loseProof()
    let clock = 0
    await using wrong = await world.open({ now: () => Date.now() + clock })
    clock = 300_000
    const second = await sign(payer, { validBefore: BigInt(Math.floor(Date.now() / 1000)) + 3_600n })
    assert.deepEqual(codesOf(await buy(wrong.url, token, second)), [503, 'not_ready'])
    assert.equal(await isMarked(first), true)
    clock = 0
    assert.equal((await buySettled(wrong.url, token, second)).status, 200)
    assert.equal(await charged(), price)
  })

  it('gets 404 where the asset is gone, and leaves the proof undelivered', async () => {
    const { token, first } = await loseProof()
    await using gone = await world.open({ verdicts: { ...world.verdicts, answer: async () => null } })
    assert.deepEqual(codesOf(await buy(gone.url, token, await sign(payer))), [404, 'asset_not_found'])
    assert.equal(await isMarked(first), true)
    assert.equal(await charged(), price)
  })

  it('gets it through a payment channel, and once more where its voucher comes for another request', async () => {
    const { seller, voucher, token, bought: sold, key, isDelivered, charged: spent } = await newChannel()
    assert.equal(sold.body['authentic'], true)
    await world.store.setUndelivered(key, true)
    await world.flag(token, stolen)
    const second = await voucher(2n * price)
    world.readFaults.set('rpc-error')
    assert.deepEqual(codesOf(await buyThrough(seller.url, token, second)), [502, 'chain_unavailable'])
    await world.heal()
    const next = await buyThrough(seller.url, token, second)
    checkReported(next, sold)
    await until(isDelivered)
    assert.equal((await buyThrough(seller.url, token, await voucher(price))).text, next.text)
    const another = await world.mint()
    for (const sum of [price, 2n * price]) {
      await until(isDelivered)
      await buyThrough(seller.url, another, await voucher(price))
      const { status } = await buyThrough(seller.url, token, second)
      assert.deepEqual([status, await spent()], [200, sum])
    }
    await seller.close()
  })
})

describe('an undelivered proof', () => {
  it('of a voucher is renewed ten times at most, also where its buyer reads no answer to the end', async () => {
    let signer = attestationKey()
    const {
      seller,
      voucher,
      token,
      key,
      isDelivered,
      charged: spent,
    } = await newChannel({
      keys: { active: () => signer, published: () => [published(signer)] },
    })
    const second = await voucher(2n * price)
    const proofs = new Set<string>()
    for (let n = 0; n < 11; n += 1) {
      await until(isDelivered)
      await world.store.setUndelivered(key, true)
      signer = attestationKey()
      proofs.add((await buyThrough(seller.url, token, second)).text)
    }
    assert.deepEqual([proofs.size, await spent()], [11, 2n * price])
    await seller.close()
  })

  it('is bound to the payment that it has answered, whose header brings it again and buys nothing', async () => {
    const { token, first, sold } = await loseProof()
    const second = await sign(payer)
    for (let n = 0; n < 2; n += 1) {
      assert.equal((await buy(gateway.url, token, second)).text, sold.text)
      await isDelivered(first)
    }
    assert.equal((await buy(gateway.url, await world.mint(), second)).body.error, 'payment_already_used')
    assert.equal(await charged(), price)
  })

  it('answers ten other payments at most', async () => {
    const { token, first, sold } = await loseProof()
    const answers: unknown[] = []
    for (let n = 0; n < 11; n += 1) {
      await world.undeliver(first)
      answers.push((await buy(gateway.url, token, await sign(payer))).body.payment?.transaction)
      await isDelivered(first)
    }
    const free = answers.filter((one) => one === sold.body.payment?.transaction)
    assert.deepEqual([answers.length, free.length, await charged()], [11, 10, 2n * price])
  })
})
