/** A buyer whose first answer was no proof pays once (spec §4.8). Stock clients sign a new authorization when they are called again. */
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { hexToBytes } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'
import { buyAttestation } from '../../../src/cli/payments/buy.ts'
import type { GatewayOptions } from '../../../src/hosts/gateway/gateway.ts'
import {
  buyThrough,
  channelHeader,
  deposit,
  installChannels,
  openChannel,
  stockBuyer,
} from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import { openSale } from '../../support/payments/gateway.ts'
import {
  buy,
  buySettled,
  codesOf,
  headerV1,
  keyOf,
  price,
  sign,
  type SignedPayment,
} from '../../support/payments/buyer.ts'
import { buyWith, stockClients } from '../../support/payments/stock.ts'
import { until } from '../../support/wait.ts'

const { world, token, payer, charged } = await openSale()
const impatient = { deadlines: { settleMs: 500 } } satisfies Partial<GatewayOptions>
const gateway = await world.open(impatient)
afterEach(() => world.heal())

/** Sends a payment and breaks the connection as soon as `reached` holds. */
async function buyAndBreak(url: string, headers: Record<string, string>, reached: () => boolean | Promise<boolean>) {
  const broken = new AbortController()
  const sent = fetch(`${url}/verify`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ assetId: String(token) }),
    signal: broken.signal,
  }).catch((error: unknown) => error)
  await until(reached)
  broken.abort()
  assert.ok((await sent) instanceof Error)
}

const isStored = (payment: SignedPayment) => async () => (await world.store.find(keyOf(payment))) !== undefined

/** Buys a proof, and loses it on its way to the buyer. */
async function loseProof(buyer = payer) {
  const first = await sign(buyer)
  const sold = await buySettled(gateway.url, token, first)
  assert.equal(sold.status, 200)
  await world.undeliver(first)
  return { first, sold }
}

/** Mines a payment once it is stored that its proof was not delivered. */
async function mineUndelivered(): Promise<void> {
  await until(async () => (await world.database.query('select from payment where undelivered')).length > 0)
  await world.mineAgain()
}

/** Commits the end of a mark, and loses the answer. */
const unmarkWithoutAnswer: typeof world.store.setUndelivered = async (key, undelivered) => {
  const transaction = await world.store.setUndelivered(key, undelivered)
  if (!undelivered) throw new Error('connection terminated')
  return transaction
}

/** Makes a ledger that looks for no payment before `find`. `marks` are those that it would have set and ended. */
function holdLedger() {
  const held = Promise.withResolvers<void>()
  const marks: boolean[] = []
  let isFinding = false
  const ledger: typeof world.store = {
    ...world.store,
    async find(key) {
      if (key.requestHash === undefined) return world.store.find(key) // the self-check
      isFinding = true
      await held.promise
      return world.store.find(key)
    },
    setUndelivered: async (_, undelivered) => (marks.push(undelivered), null),
  }
  return { ledger, marks, isFinding: () => isFinding, find: () => held.resolve() }
}

describe('a stock client that is called again after 503 settlement_pending', () => {
  for (const client of stockClients)
    it(`${client} gets one proof for one price`, async (t) => {
      const key = generatePrivateKey()
      const { address } = privateKeyToAccount(key)
      await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address, amount: 10n * price }] })
      const purchase = { url: gateway.url, key, tokenId: token }
      await world.automine(false)
      const first = await buyWith(client, purchase)
      if (first === null) await world.mineAgain()
      if (first === null) return t.skip('the npm registry, which the client is installed from, does not answer')
      assert.deepEqual([first.status, first.body['error']], [503, 'settlement_pending'])
      assert.deepEqual([first.receipt['success'], first.receipt['payer']], [false, address])
      await world.mineAgain()
      let last = first
      await until(async () => (last = (await buyWith(client, purchase)) ?? last).status !== 503)
      assert.equal(last.status, 200)
      await gateway.reconcile()
      assert.equal(await charged(), price)
    })
})

describe('touchstone pay', () => {
  it('gets one proof for one price when it is called again after it gave up on a pending settlement', async () => {
    const purchase = {
      gateway: new URL(gateway.url),
      tokenId: token,
      account: await world.payer(),
      most: price,
      retryMs: 0,
    }
    await world.automine(false)
    await assert.rejects(buyAttestation(purchase), /settlement_pending.*charged once or not at all/)
    await world.mineAgain()
    const { answer } = await buyAttestation({ ...purchase, retryMs: 300_000 })
    assert.equal((answer as { assetId?: string }).assetId, String(token))
    await gateway.reconcile()
    assert.equal(await charged(), price)
  })
})

describe('a second payment for a proof that was not delivered', () => {
  it('waits with the first one, and is not executed', async () => {
    await world.automine(false)
    for (let n = 0; n < 3; n += 1) {
      assert.deepEqual(codesOf(await buy(gateway.url, token, await sign(payer))), [503, 'settlement_pending'])
    }
    await world.mineAgain()
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    await gateway.reconcile()
    assert.equal(await charged(), price)
  })

  it('is answered by the first one although another process settles that', async () => {
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, await sign(payer))).status, 503)
    let looks = 0
    await using other = await world.open({ ledger: { ...world.store, adopt: async () => ((looks += 1), []) } })
    const sold = buy(other.url, token, await sign(payer))
    await until(() => looks >= 4)
    await world.mineAgain()
    assert.equal((await sold).status, 200)
    assert.equal(await charged(), price)
  })

  it('gets nothing with a payment to another seller, and the buyer is not charged for that either', async () => {
    const { sold } = await loseProof()
    const elsewhere = await buy(gateway.url, token, await sign(payer, { to: world.signer.address }))
    assert.deepEqual(codesOf(elsewhere), [402, 'recipient_mismatch'])
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).text, sold.text)
    assert.equal(await charged(), price)
  })

  it('waits for its buyer although a stranger repeats the first payment, which is public on the chain', async () => {
    const { first, sold } = await loseProof()
    const repeated = await buySettled(gateway.url, token, first)
    assert.deepEqual([repeated.status, repeated.text], [200, sold.text])
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).text, sold.text)
    assert.equal(await charged(), price)
    assert.notEqual((await buySettled(gateway.url, token, await sign(payer))).text, sold.text)
    assert.equal(await charged(), 2n * price)
  })

  it('waits for its buyer although a stranger sends a payment that the chain shows as used', async () => {
    const { sold } = await loseProof()
    // It paid the same seller through another service.
    const used = await sign(payer)
    await world.submit(used)
    assert.deepEqual(codesOf(await buy(gateway.url, token, used)), [402, 'nonce_already_used'])
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).text, sold.text)
    assert.equal(await charged(), 2n * price)
  })

  it('waits for its buyer although a stranger sends a payment of theirs that has expired unused', async () => {
    const { first, sold } = await loseProof()
    // A transaction that failed shows it to everyone, and from its end on it cannot be used any more.
    const expired = await sign(payer, { validBefore: BigInt(Math.floor(Date.now() / 1000) - 60) })
    assert.deepEqual(codesOf(await buy(gateway.url, token, expired)), [402, 'authorization_expired'])
    assert.equal((await world.store.find(keyOf(first)))?.undelivered, true)
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).text, sold.text)
    assert.equal(await charged(), price)
  })

  it('is not executed where the statement that ends the mark has no answer', async () => {
    const { sold } = await loseProof()
    await using lossy = await world.open({ ledger: { ...world.store, setUndelivered: unmarkWithoutAnswer } })
    const next = await buySettled(lossy.url, token, await sign(payer))
    assert.deepEqual([next.status, next.text], [200, sold.text])
    assert.equal(await charged(), price)
  })

  it('is not executed although the ledger was away when the first one got 503', async () => {
    let isAway = true
    const setUndelivered: typeof world.store.setUndelivered = (...args) =>
      isAway ? Promise.reject(new Error('connection terminated')) : world.store.setUndelivered(...args)
    await using hasty = await world.open({ ...impatient, ledger: { ...world.store, setUndelivered } })
    const first = await sign(payer)
    await world.automine(false)
    assert.equal((await buy(hasty.url, token, first)).status, 503)
    isAway = false
    await world.mineAgain()
    await until(async () => (await world.store.find(keyOf(first)))?.undelivered === true)
    assert.equal((await buySettled(hasty.url, token, await sign(payer))).status, 200)
    assert.equal(await charged(), price)
  })

  it('brings it although its buyer has no money left', async () => {
    const poor = await world.payer(price)
    const { sold } = await loseProof(poor)
    const next = await buySettled(gateway.url, token, await sign(poor))
    assert.deepEqual([next.status, next.text, await charged()], [200, sold.text, price])
  })

  it('leaves the mark where its own connection breaks', async () => {
    await loseProof()
    const { ledger, isFinding, find, marks } = holdLedger()
    const slow = await world.open({ ledger })
    await buyAndBreak(slow.url, headerV1(await sign(payer)), isFinding)
    find()
    await slow.close()
    assert.deepEqual(marks, [true])
    assert.equal(await charged(), price)
  })

  it('is executed for another asset', async () => {
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, await sign(payer))).status, 503)
    await world.mineAgain()
    const other = await world.mint()
    const sold = await buySettled(gateway.url, other, await sign(payer))
    assert.deepEqual([sold.status, sold.body.assetId], [200, String(other)])
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    assert.equal(await charged(), 2n * price)
  })

  it('is executed once the proof is an hour old', async () => {
    await world.automine(false)
    const first = await sign(payer)
    assert.equal((await buy(gateway.url, token, first)).status, 503)
    await world.mineAgain()
    await until(async () => (await charged()) === price)
    await until(async () => {
      const moved = await world.database.query(
        `update payment set settled_at = settled_at - interval '61 min'
          where nonce = $1 and undelivered and state = 'done' returning pk`,
        [hexToBytes(first.nonce)],
      )
      return moved.length > 0
    })
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    assert.equal(await charged(), 2n * price)
  })
})

describe('a payment whose write into the ledger has no answer', () => {
  it('in time, but is stored later: the next payment gets its proof', async () => {
    const inserting = Promise.withResolvers<void>()
    await using slow = await world.open({
      ledger: { ...world.store, insert: (payment) => inserting.promise.then(() => world.store.insert(payment)) },
    })
    const first = await sign(payer)
    assert.deepEqual(codesOf(await buy(slow.url, token, first)), [503, 'settlement_pending'])
    inserting.resolve()
    const key = keyOf(first)
    await until(async () => (await world.store.find(key))?.undelivered === true)
    const sold = await buySettled(slow.url, token, await sign(payer))
    assert.equal(sold.status, 200)
    assert.equal((await buySettled(slow.url, token, first)).text, sold.text)
    assert.equal(await charged(), price)
  })

  it('where it is done: the proof is sent, and counts as delivered once the ledger has it', async () => {
    const payment = await sign(payer)
    let failures = 1
    const done: typeof world.store.done = (...args) =>
      failures-- > 0 ? Promise.reject(new Error('connection terminated')) : world.store.done(...args)
    await using failing = await world.open({ ledger: { ...world.store, done } })
    for (let n = 0; n < 2; n += 1) assert.equal((await buySettled(failing.url, token, payment)).status, 200)
    const rowOf = async () => {
      const [row] = await world.database.query<{ state: string; undelivered: boolean; isHeld: boolean }>(
        'select state, undelivered, holder is not null as "isHeld" from payment where nonce = $1',
        [hexToBytes(payment.nonce)],
      )
      return row
    }
    await until(async () => (await rowOf())?.state === 'done')
    await until(async () => (await rowOf())?.isHeld === false)
    assert.deepEqual(await rowOf(), { state: 'done', undelivered: false, isHeld: false })
    assert.equal((await failing.metrics()).units, Number(price))
  })

  it('and cannot be given to another process either: this one settles it later', async () => {
    await using lossy = await world.open({
      ledger: {
        ...world.store,
        async insert(payment) {
          await world.store.insert(payment)
          throw new Error('connection terminated')
        },
        release: () => Promise.reject(new Error('connection terminated')),
      },
    })
    const first = await sign(payer)
    assert.deepEqual(codesOf(await buy(lossy.url, token, first)), [503, 'settlement_pending'])
    await world.database.query(
      `update payment set claimed_until = claimed_until - interval '11 s' where state = 'settling'`,
    )
    await lossy.reconcile()
    assert.equal(await charged(), price)
    assert.equal((await buySettled(lossy.url, token, await sign(payer))).status, 200)
    assert.equal((await buySettled(lossy.url, token, first)).status, 200)
    assert.equal(await charged(), price)
  })
})

describe('a voucher whose sale has no answer', () => {
  it('is not paid for again, although a stock client buys another asset in between', async () => {
    await installChannels(world.rpc)
    let sales = 0
    const store: typeof world.channels = {
      ...world.channels,
      async sell(sale) {
        const isSold = await world.channels.sell(sale)
        if ((sales += 1) === 2) throw new Error('connection terminated')
        return isSold
      },
    }
    await using seller = await world.open(world.through(attestationKey(), { store }))
    const client = stockBuyer(await world.payer(deposit), world.chainUrl)
    const [first, other] = [await world.mint(), await world.mint()]
    const answers = []
    for (const asset of [first, token, other, token]) answers.push(await client.buy(seller.url, asset))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 503, 200, 200],
    )
    const sold = await world.database.query<{ answer: string }>(
      `select answer from payment where kind = 'voucher' order by pk`,
    )
    assert.equal(sold.length, 3)
    assert.deepEqual(answers[3]?.body, JSON.parse(sold[1]?.answer ?? ''))
    const next = await client.buy(seller.url, token)
    assert.equal(next.status, 200)
    assert.notDeepEqual(next.body, answers[3]?.body)
  })
})

describe('a voucher that finds the undelivered proof of an earlier one', () => {
  it('gets it where the statement that ends the mark has no answer, and is not charged', async () => {
    await installChannels(world.rpc)
    const authorizer = attestationKey()
    const ledger = { ...world.store, setUndelivered: unmarkWithoutAnswer }
    await using lossy = await world.open({ ...world.through(authorizer), ledger })
    const channel = await openChannel(world, { url: lossy.url, token, authorizer })
    await world.store.setUndelivered(channel.keyAt(price), true)
    const next = await buyThrough(lossy.url, token, await channel.voucher(2n * price))
    assert.deepEqual([next.status, next.text, await channel.charged()], [200, channel.bought.text, price])
  })
})

describe('a connection that breaks before the proof was read', () => {
  it('while the payment settles: the next payment gets that proof', async () => {
    await using patient = await world.open({ deadlines: { settleMs: 600_000 } })
    const first = await sign(payer)
    await world.automine(false)
    await buyAndBreak(patient.url, headerV1(first), isStored(first))
    await mineUndelivered()
    assert.equal((await buySettled(patient.url, token, await sign(payer))).status, 200)
    assert.equal(await charged(), price)
  })

  it('while the payment is stored: the next payment gets that proof', async () => {
    const inserting = Promise.withResolvers<void>()
    const inserted = Promise.withResolvers<void>()
    let isInserting = false
    await using slow = await world.open({
      deadlines: { settleMs: 600_000 },
      ledger: {
        ...world.store,
        async insert(payment) {
          isInserting = true
          await inserting.promise
          const result = await world.store.insert(payment)
          inserted.resolve()
          return result
        },
      },
    })
    await world.automine(false)
    await buyAndBreak(slow.url, headerV1(await sign(payer)), () => isInserting)
    inserting.resolve()
    await inserted.promise
    await mineUndelivered()
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    assert.equal(await charged(), price)
  })

  it('of a replay changes nothing: the next payment buys a new proof', async () => {
    const first = await sign(payer)
    const sold = await buySettled(gateway.url, token, first)
    assert.equal(sold.status, 200)
    await until(async () => (await world.store.find(keyOf(first)))?.undelivered === false)
    const { ledger, isFinding, find, marks } = holdLedger()
    const slow = await world.open({ ledger })
    await buyAndBreak(slow.url, headerV1(first), isFinding)
    find()
    await slow.close()
    assert.deepEqual(marks, [])
    const next = await buySettled(gateway.url, token, await sign(payer))
    assert.deepEqual([next.status, next.text === sold.text, await charged()], [200, false, 2n * price])
  })

  it('of a repeated voucher changes nothing either', async () => {
    await installChannels(world.rpc)
    const authorizer = attestationKey()
    await using seller = await world.open(world.through(authorizer))
    const channel = await openChannel(world, { url: seller.url, token, authorizer })
    await until(async () => (await world.store.find(channel.keyAt(price)))?.undelivered === false)
    const { ledger, isFinding, find, marks } = holdLedger()
    const slow = await world.open({ ledger, ...world.through(authorizer) })
    await buyAndBreak(slow.url, channelHeader(await channel.voucher(price)), isFinding)
    find()
    await until(async () => (await slow.metrics()).sales['replayed'] === 1)
    await slow.close()
    assert.deepEqual(marks, [])
  })
})
