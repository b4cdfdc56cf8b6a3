/** An unknown outcome is resolved from the chain and reported once, whatever happened in between (spec §4.8). */
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { hexToBytes, toHex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import { readOpenApi } from '../../../src/discovery/openapi.ts'
import { createPaymentLedger } from '../../../src/payments/ledger/ledger.ts'
import { parseOrder } from '../../../src/payments/order.ts'
import { readContract } from '../../support/contract.ts'
import { hiddenLogs } from '../../support/fault-rpc.ts'
import { startFacilitator } from '../../support/payments/facilitator.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { deadProcess } from '../../support/payments/ledger.ts'
import { until } from '../../support/wait.ts'
import { asset, buy, buySettled, codesOf, keyOf, price, sign } from '../../support/payments/buyer.ts'
import type { Answered, SignedPayment } from '../../support/payments/buyer.ts'

const { world, token, payer, charged } = await openSale()
afterEach(() => world.heal())

/** A gateway in which `between` happens after the proof is stored and before the payment is executed. */
const interrupted = (between: () => Promise<unknown>) =>
  world.open({
    ledger: {
      ...world.store,
      async insert(...args) {
        const kept = await world.store.insert(...args)
        await between()
        return kept
      },
    },
  })

/** A proof that no gateway of these tests signs: the example of the OpenAPI document. */
const { payment: _paid, ...proof } = readContract(readOpenApi()).exampleOf('Attestation')

/** Asserts that a buyer got that proof. */
function isKept({ status, body }: Answered): void {
  const { payment: _payment, ...found } = body
  assert.deepEqual([status, found], [200, proof])
}

/** A row as another process left it. */
async function stored(
  payment: SignedPayment,
  ledger = createPaymentLedger(world.database, { chainId: 84532, asset, holder: deadProcess }),
) {
  const body = parseOrder(JSON.stringify({ assetId: String(token) }))
  assert.equal(body.kind, 'order')
  const requestHash = body.kind === 'order' ? body.order.requestHash : ''
  const key = keyOf(payment)
  const fromBlock = BigInt((await world.rpc('eth_blockNumber')) as string)
  const row = {
    ...key,
    tokenId: token,
    requestHash,
    payment: { ...payment, from: key.payer },
    proof: JSON.stringify(proof),
    fromBlock,
  }
  assert.ok(await ledger.insert(row))
  return key
}

/** Changes the row of a payment; the values are $2 and those after it. */
const change = (nonce: Hex, set: string, ...values: readonly unknown[]) =>
  world.database.query(`update payment set ${set} where nonce = $1`, [hexToBytes(nonce), ...values])

/** A ledger that adopts what a buyer asks for only. */
const onDemand = {
  ...world.store,
  adopt: async (...[limit, key]: Parameters<typeof world.store.adopt>) => (key ? world.store.adopt(limit, key) : []),
}

describe('between check and settlement', () => {
  it('the payer spends the nonce on himself: no proof, nothing charged', async () => {
    const payment = await sign(payer)
    await using gateway = await interrupted(async () =>
      world.submit(await sign(payer, { nonce: payment.nonce, to: payer.address })),
    )
    assert.deepEqual(codesOf(await buySettled(gateway.url, token, payment)), [402, 'nonce_already_used'])
    const again = await buySettled(gateway.url, token, payment)
    assert.deepEqual(
      [again.status, again.body.error, again.body['attestation']],
      [402, 'nonce_already_used', undefined],
    )
    assert.equal(await charged(), 0n)
  })

  it('the payer spends the nonce on a smaller payment: no proof', async () => {
    const payment = await sign(payer)
    await using gateway = await interrupted(async () =>
      world.submit(await sign(payer, { nonce: payment.nonce, value: 1n })),
    )
    assert.equal((await buySettled(gateway.url, token, payment)).body.error, 'nonce_already_used')
    assert.equal(await charged(), 1n)
  })

  it('the payer cancels the authorization: no proof, nothing charged', async () => {
    const payment = await sign(payer)
    await using gateway = await interrupted(() => world.cancel(payer, payment.nonce))
    assert.deepEqual(codesOf(await buySettled(gateway.url, token, payment)), [402, 'nonce_already_used'])
    assert.equal((await buySettled(gateway.url, token, payment)).status, 402)
    assert.equal(await charged(), 0n)
  })

  it('the payer spends the money elsewhere: 402 insufficient_funds, and the header buys once there is money again', async () => {
    const poor = await world.payer(price)
    const payment = await sign(poor)
    await using gateway = await interrupted(async () => world.submit(await sign(poor, { to: payer.address })))
    assert.deepEqual(codesOf(await buySettled(gateway.url, token, payment)), [402, 'insufficient_funds'])
    assert.equal(await charged(), 0n)
  })

  it('a stranger submits the same authorization: the proof, charged once', async () => {
    const payment = await sign(payer)
    await using gateway = await interrupted(() => world.submit(payment))
    const answer = await buySettled(gateway.url, token, payment)
    assert.equal(answer.status, 200)
    assert.ok(answer.body['attestation'])
    assert.equal((await buySettled(gateway.url, token, payment)).text, answer.text)
    assert.equal(await charged(), price)
  })

  for (const fault of [hiddenLogs, { name: 'null-result', methods: ['eth_getTransactionReceipt'] } as const])
    it(`a stranger submits it, which a provider with ${fault.name} does not show: 503 until it does, charged once`, async () => {
      const payment = await sign(payer)
      await using gateway = await interrupted(async () => (await world.submit(payment), world.payFaults.set(fault)))
      const { status, body } = await buy(gateway.url, token, payment)
      assert.deepEqual([status, body.error], [503, 'settlement_pending'])
      await world.heal()
      assert.deepEqual([(await buySettled(gateway.url, token, payment)).status, await charged()], [200, price])
    })

  it('a stranger submits it before the payment came in: no proof, because it may have paid another service', async () => {
    await using gateway = await world.open()
    const payment = await sign(payer)
    await world.submit(payment)
    assert.equal((await buySettled(gateway.url, token, payment)).body.error, 'nonce_already_used')
  })
})

describe('after a crash', () => {
  it('of a version that claims before it sells: the same header is sold anew, charged once', async () => {
    const payment = await sign(payer)
    await stored(payment)
    await world.database.query(
      `update payment set state = 'open', holder = null, claimed_until = clock_timestamp() where state = 'settling'`,
    )
    await using gateway = await world.open()
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.equal(await charged(), price)
  })

  it('in settling: the retry gets the stored proof, charged once', async () => {
    const payment = await sign(payer)
    await stored(payment)
    await using gateway = await world.open({ ledger: onDemand })
    const answer = await buySettled(gateway.url, token, payment)
    isKept(answer)
    assert.equal(await charged(), price)
  })

  it('in settling: the next start settles by itself, and the retry gets the proof', async () => {
    const payment = await sign(payer)
    const key = await stored(payment)
    await using gateway = await world.open()
    await gateway.reconcile()
    assert.equal((await world.store.find(key))?.state, 'done')
    assert.equal(await charged(), price)
    isKept(await buySettled(gateway.url, token, payment))
    assert.equal(await charged(), price)
  })

  it('in settling: the next start settles what is behind a row that cannot be read', async () => {
    const [unread, payment] = [await sign(payer), await sign(payer)]
    const keys = [await stored(unread), await stored(payment)] as const
    const { nonce, payer: from } = keys[0]
    await world.slots.assign({ sender: world.facilitator.address, count: 1_000, members: [keys[0]] }, async () => ({
      raw: '0x02',
      hash: nonce,
    }))
    await world.database.query(`update settlement set holder = 0 where hashes = array[$1::bytea]`, [hexToBytes(nonce)])
    await change(nonce, `payload = '{'`)
    const gateway = await world.open()
    await gateway.reconcile()
    assert.ok(world.lines.some((line) => line.includes('a payment of the ledger cannot be read')))
    assert.equal((await world.store.find(keys[1]))?.state, 'done')
    assert.equal((await world.store.find({ payer: from, nonce }))?.state, 'settling')
    assert.equal(await charged(), price)
    await gateway.close()
    await world.database.query(`delete from payment where nonce = $1`, [hexToBytes(nonce)])
    await world.database.query(`delete from settlement where hashes = array[$1::bytea]`, [hexToBytes(nonce)])
  })

  it('of a payment that was executed before it came in, which a provider that lags did not show: no proof', async () => {
    const payment = await sign(payer)
    await world.submit(payment)
    await world.mine()
    await stored(payment)
    await using gateway = await world.open({ ledger: onDemand })
    assert.deepEqual(codesOf(await buy(gateway.url, token, payment)), [402, 'nonce_already_used'])
  })

  /** Moves the block from which a payment counts, as a reorganisation moves the transfer. */
  const setFromBlock = (nonce: Hex, ahead: bigint) => change(nonce, 'from_block = from_block + $2', ahead)

  for (const isLate of [false, true])
    it(`of an own transfer that a reorganisation put into an earlier block: the proof, charged once${isLate ? ', also where its transaction was stored after the row was read' : ''}`, async () => {
      const payment = await sign(payer)
      const key = await stored(payment)
      const { transactionHash } = await world.submit(payment)
      await world.mine()
      await setFromBlock(key.nonce, 2n)
      const link = () => change(key.nonce, 'tx_hash = $2', hexToBytes(transactionHash))
      if (!isLate) await link()
      const adopt: typeof onDemand.adopt = async (...args) => {
        const rows = await onDemand.adopt(...args)
        if (isLate && rows.length > 0) await link()
        return rows
      }
      await using gateway = await world.open({ ledger: { ...onDemand, adopt } })
      assert.equal((await buy(gateway.url, token, payment)).status, 200)
      assert.equal(await charged(), price)
    })

  it('of an own transfer in an earlier block, where the clock of the database is ahead: the proof, charged once', async () => {
    const payment = await sign(payer)
    const key = await stored(payment)
    const { transactionHash } = await world.submit(payment)
    await world.mine()
    await setFromBlock(key.nonce, 2n)
    await world.slots.assign({ sender: world.facilitator.address, count: 2_000, members: [key] }, async () => ({
      raw: '0x02',
      hash: transactionHash,
    }))
    await change(key.nonce, `created_at = created_at + interval '1 hour'`)
    const gateway = await world.open({ ledger: onDemand })
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.equal(await charged(), price)
    await gateway.close()
    await world.database.query(`delete from settlement where hashes = array[$1::bytea]`, [hexToBytes(transactionHash)])
  })

  it('of an own transfer in an earlier block, by a remote facilitator: the proof, charged once', async () => {
    await using facilitator = await startFacilitator(world)
    const payment = await sign(payer)
    const key = await stored(payment)
    await setFromBlock(key.nonce, 5n)
    await using gateway = await world.open({ facilitator: { url: facilitator.url }, ledger: onDemand })
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.equal(await charged(), price)
  })

  it('of an own transfer in an earlier block, by a remote facilitator whose answer is lost: 503, charged once', async () => {
    await using facilitator = await startFacilitator(world)
    facilitator.set('lost', 'settle')
    const payment = await sign(payer)
    const key = await stored(payment)
    await setFromBlock(key.nonce, 5n)
    await using gateway = await world.open({
      facilitator: { url: facilitator.url },
      deadlines: { settleMs: 500 },
      ledger: onDemand,
    })
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
    await until(async () => (await charged()) === price)
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
  })

  for (const isNamed of [false, true])
    it(`of a transfer from before the payment came${isNamed ? ', which the facilitator names' : ''}: no proof`, async () => {
      await using facilitator = await startFacilitator(world)
      facilitator.set('lost', 'settle')
      const payment = await sign(payer)
      const key = await stored(payment)
      const { transactionHash } = await world.submit(payment)
      await world.mine()
      await setFromBlock(key.nonce, 5n)
      const { timestamp } = (await world.rpc('eth_getBlockByNumber', ['latest', false])) as { timestamp: Hex }
      const set = `tx_hash = $2, created_at = to_timestamp($3::float8) + interval '2 minutes'`
      await change(key.nonce, set, isNamed ? hexToBytes(transactionHash) : null, Number(timestamp))
      await using gateway = await world.open({ facilitator: { url: facilitator.url }, ledger: onDemand })
      assert.deepEqual(codesOf(await buySettled(gateway.url, token, payment)), [402, 'nonce_already_used'])
    })

  it('after the transfer, before the answer was stored: the proof, charged once', async () => {
    const payment = await sign(payer)
    await stored(payment)
    await world.submit(payment)
    await using gateway = await world.open()
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.equal(await charged(), price)
  })

  it('while another process writes that it is paid: the retry gets the proof, and it is counted once', async () => {
    const held = Promise.withResolvers<void>()
    let isPaid = false
    const done: typeof world.store.done = async (...args) => {
      isPaid = true
      await held.promise
      return world.store.done(...args)
    }
    const [slow, gateway] = [await world.open({ ledger: { ...world.store, done } }), await world.open()]
    const payment = await sign(payer)
    const first = buySettled(slow.url, token, payment)
    await until(() => isPaid)
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    held.resolve()
    assert.equal((await first).status, 200)
    const [one, other] = [await slow.metrics(), await gateway.metrics()]
    assert.deepEqual([one.units + other.units, await charged()], [Number(price), price])
    await slow.close()
    await gateway.close()
  })

  it('while another process works on it: the retry waits, and takes over once that one has left it', async () => {
    const payment = await sign(payer)
    const key = await stored(payment, world.store)
    let looks = 0
    const ledger: typeof world.store = {
      ...onDemand,
      async adopt(...args) {
        looks += 1
        if (looks === 2) await world.store.release(key)
        return onDemand.adopt(...args)
      },
    }
    await using gateway = await world.open({ ledger })
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.ok(looks >= 2)
    assert.equal(await charged(), price)
  })
})

describe('a payment that was mined too late', () => {
  type Block = { readonly timestamp: Hex }
  const chainTime = async () =>
    BigInt(((await world.rpc('eth_getBlockByNumber', ['latest', false])) as Block).timestamp)

  /**
   * Makes a payment expire between its transaction and the next block. Returns the answer to it. On a busy machine the payment may be too
   * old before it is sent; then the next one has twice the time.
   */
  async function expire(url: string, buyer: PrivateKeyAccount, isSent: () => Promise<boolean>, seconds = 12n) {
    const now = BigInt(Math.floor(Date.now() / 1000))
    const validBefore = ((time) => (time > now ? time : now) + seconds)(await chainTime())
    let isOver = false
    const answer = buySettled(url, token, await sign(buyer, { validBefore })).finally(() => (isOver = true))
    await until(async () => (await isSent()) || isOver)
    if (!(await isSent())) return expire(url, buyer, isSent, 2n * seconds)
    await world.rpc('evm_setNextBlockTimestamp', [toHex(validBefore + 1n)])
    await world.mine()
    await world.heal()
    await until(async () => (await world.mine(), isOver))
    return answer
  }

  const expired = [402, 'authorization_expired', 0n]

  it('does not block its payer, where the transfer itself was mined', async () => {
    await using gateway = await world.open()
    const buyer = await world.payer()
    const before = await world.transactions()
    await world.automine(false)
    const { status, body } = await expire(
      gateway.url,
      buyer,
      async () =>
        Number(await world.rpc('eth_getTransactionCount', [world.facilitator.address, 'pending'])) === before + 1,
    )
    assert.deepEqual([status, body.error, await charged()], expired)
    assert.equal((await buySettled(gateway.url, token, await sign(buyer))).status, 200)
  })

  it('does not block its payer, where no node took the transfer and one of nothing replaced it', async () => {
    let refused = 0
    const rpc: RpcClient = async (method, params) => {
      if (method !== 'eth_sendRawTransaction' || refused > 0) return world.provider(method, params)
      refused += 1
      throw new Error('the provider does not answer')
    }
    await using gateway = await world.open({ rpc })
    const buyer = await world.payer()
    const before = await world.transactions()
    const { status, body } = await expire(gateway.url, buyer, async () => refused > 0)
    assert.deepEqual([status, body.error, await charged()], expired)
    await until(async () => (await world.mine(), (await world.transactions()) === before + 1))
    const latest = `select gas_used from settlement where gas_used is not null order by pk desc limit 1`
    await until(async () => Number((await world.database.query<{ gas_used: bigint }>(latest))[0]?.gas_used) === 21_000)
    assert.equal((await buySettled(gateway.url, token, await sign(buyer))).status, 200)
  })
})

/** Stays last: it moves the clock of the chain ten minutes ahead. */
describe('a chain that does not mine', () => {
  it('for longer than the authorization is valid: 503 first, then 402 authorization_expired, nothing charged', async () => {
    await using gateway = await world.open({ deadlines: { settleMs: 1_000 } })
    const now = BigInt(Math.floor(Date.now() / 1000))
    const payment = await sign(payer, { validBefore: now + 600n })
    await world.automine(false)
    const pending = await buy(gateway.url, token, payment)
    assert.deepEqual(codesOf(pending), [503, 'settlement_pending'])
    assert.match(pending.headers.get('retry-after') ?? '', /^\d+$/)
    await world.rpc('evm_setNextBlockTimestamp', [toHex(now + 601n)])
    await world.mine()
    assert.deepEqual(codesOf(await buySettled(gateway.url, token, payment)), [402, 'authorization_expired'])
    assert.equal(await charged(), 0n)
  })
})
