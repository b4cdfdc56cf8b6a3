/** Several gateways on one PostgreSQL, and gateways that are killed at work (spec §4.8). */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { PrivateKeyAccount } from 'viem/accounts'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { startGatewayWorld, type GatewayWorld } from '../../support/payments/gateway.ts'
import { buy, buySettled, codesOf, keyOf, price, sign, type SignedPayment } from '../../support/payments/buyer.ts'
import { startGatewayProcess } from '../../support/payments/process.ts'
import { until } from '../../support/wait.ts'

describe('gateway processes on one PostgreSQL', { skip: noPostgres }, () => {
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let world: GatewayWorld
  let token: bigint
  let another: bigint
  let payer: PrivateKeyAccount
  let held: bigint
  const running: { kill: () => Promise<void> }[] = []

  before(async () => {
    database = await openOwnDatabase('migrated')
    world = await startGatewayWorld({ database })
    token = await world.mint()
    another = await world.mint()
  })
  after(async () => {
    await world?.end()
    await database?.close()
  })
  beforeEach(async () => {
    // The proof of a killed process answers the next payment of its payer.
    payer = await world.payer(1_000n * price)
    held = await world.balance()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((one) => one.kill()))
    await world.heal()
  })

  const start = (more: { diesPaid?: boolean } = {}) =>
    startGatewayProcess({
      ...more,
      databaseUrl: database.url,
      rpcUrl: world.payFaults.url,
      contract: world.contract,
      facilitatorKey: world.facilitatorSecret,
      signerKey: world.signer.secret,
    })
  /** Starts one that ends with its test. */
  async function startForNow(more: { diesPaid?: boolean } = {}) {
    const started = await start(more)
    running.push(started)
    return started
  }

  const charged = async () => (await world.balance()) - held
  const longLived = () => sign(payer, { validBefore: BigInt(Math.floor(Date.now() / 1000)) + 600n })

  const stateOf = async (payment: SignedPayment) => (await world.store.find(keyOf(payment)))?.state

  describe('beside each other', () => {
    let one: Awaited<ReturnType<typeof start>>
    let two: typeof one
    before(async () => {
      ;[one, two] = await Promise.all([start(), start()])
    })
    after(() => Promise.all([one, two].map((it) => it?.kill())))

    it('the same header at once settles once and is answered with the same bytes', async () => {
      for (let round = 0; round < 3; round += 1) {
        held = await world.balance()
        const payment = await longLived()
        const answers = await Promise.all(
          Array.from({ length: 10 }, (_, n) => buySettled(n % 2 === 0 ? one.url : two.url, token, payment)),
        )
        const others = answers.filter(({ status }) => status !== 200).map(({ status, text }) => `${status} ${text}`)
        assert.deepEqual(others, [])
        assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
        assert.equal(await charged(), price)
      }
    })

    it('the same header at once for two assets proves one', async () => {
      const payment = await longLived()
      const answers = await Promise.all([buySettled(one.url, token, payment), buySettled(two.url, another, payment)])
      assert.deepEqual(
        answers.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 402],
      )
      assert.equal(await charged(), price)
    })

    it('twenty payments at once over both, with one facilitator key, all settle', async () => {
      const payments = await Promise.all(Array.from({ length: 20 }, longLived))
      const answers = await Promise.all(
        payments.map((payment, n) => buySettled(n % 2 === 0 ? one.url : two.url, token, payment)),
      )
      assert.deepEqual(
        answers.map(({ status }) => status),
        Array(20).fill(200),
      )
      assert.equal(await charged(), 20n * price)
    })
  })

  it('a header that another process sells after the look into the ledger is answered with the same bytes', async () => {
    const late = await world.open({
      rpc: createRpcClient({ url: world.payFaults.url, timeoutMs: 20_000 }),
      deadlines: { verifyMs: 20_000 },
    })
    const early = await world.open({ rpc: world.provider })
    const payment = await longLived()
    const held = Promise.withResolvers<void>()
    world.payFaults.set({ methods: ['eth_call'], held: held.promise })
    const second = buySettled(late.url, token, payment)
    await until(() => world.payFaults.struck() > 0) // the check of a payment that the ledger does not have
    const first = await buySettled(early.url, token, payment)
    held.resolve()
    assert.deepEqual([first.status, (await second).status], [200, 200])
    assert.equal((await second).text, first.text)
    assert.equal(await charged(), price)
    await Promise.all([late, early].map((gateway) => gateway.close()))
  })

  it('killed after the broadcast: the next process answers the retry, charged once', async () => {
    const first = await startForNow()
    const payment = await longLived()
    await world.automine(false)
    const lost = buy(first.url, token, payment).catch(() => 'broken off')
    await until(async () => ((await world.rpc('txpool_status')) as { pending: string }).pending !== '0x0')
    await first.kill()
    assert.equal(await lost, 'broken off')
    await world.mineAgain()
    const second = await startForNow()
    const answer = await buySettled(second.url, token, payment)
    assert.equal(answer.status, 200)
    assert.equal((await buy(second.url, token, payment)).text, answer.text)
    assert.equal(await charged(), price)
  })

  it('killed after the broadcast: the next payment of its buyer gets the proof, charged once', async () => {
    const first = await startForNow()
    const payment = await longLived()
    await world.automine(false)
    void buy(first.url, token, payment).catch(() => {})
    await until(async () => ((await world.rpc('txpool_status')) as { pending: string }).pending !== '0x0')
    await first.kill()
    await world.mineAgain()
    const second = await startForNow()
    await until(async () => (await stateOf(payment)) === 'done')
    const next = await buySettled(second.url, token, await longLived())
    assert.deepEqual([next.status, await charged()], [200, price])
    assert.equal((await buySettled(second.url, token, payment)).text, next.text)
  })

  it('killed after the broadcast: the next payment gets the proof although no process has looked for what was left', async () => {
    await using other = await world.open({}) // it has looked at its start
    const killed = await startForNow()
    const payment = await longLived()
    await world.automine(false)
    void buy(killed.url, token, payment).catch(() => {})
    await until(async () => ((await world.rpc('txpool_status')) as { pending: string }).pending !== '0x0')
    await killed.kill()
    await until(async () => (await world.store.find(keyOf(payment)))?.undelivered === true) // its session has ended
    await world.mineAgain()
    const next = await buySettled(other.url, token, await longLived())
    assert.deepEqual([next.status, await charged()], [200, price])
    assert.equal((await buySettled(other.url, token, payment)).text, next.text)
  })

  it('killed between the stored answer and the response: the next payment of its buyer gets the proof, charged once', async () => {
    const first = await startForNow({ diesPaid: true })
    const payment = await longLived()
    assert.equal(await buy(first.url, token, payment).catch(() => 'broken off'), 'broken off')
    assert.equal(await stateOf(payment), 'done')
    const second = await startForNow()
    const next = await buySettled(second.url, token, await longLived())
    assert.deepEqual([next.status, await charged()], [200, price])
    assert.equal((await buySettled(second.url, token, payment)).text, next.text)
  })

  it('killed between the stored proof and the broadcast: retries get 503, then the proof, charged once', async () => {
    const first = await startForNow()
    const payment = await longLived()
    world.payFaults.set({ name: 'hang', methods: ['eth_getTransactionCount'] })
    const lost = buy(first.url, token, payment).catch(() => 'broken off')
    await until(async () => (await stateOf(payment)) === 'settling')
    await first.kill()
    await lost
    await world.heal()
    const second = await startForNow()
    await until(async () => {
      const answer = await buy(second.url, token, payment)
      if (answer.status !== 200) assert.deepEqual(codesOf(answer), [503, 'settlement_pending'])
      return answer.status === 200
    })
    assert.equal(await charged(), price)
  })

  it('killed, and no buyer retries: the next process settles by itself, charged once', async () => {
    const first = await startForNow()
    const payment = await longLived()
    await world.automine(false)
    void buy(first.url, token, payment).catch(() => {})
    await until(async () => (await stateOf(payment)) === 'settling')
    await first.kill()
    await world.mineAgain()
    await startForNow()
    await until(async () => (await stateOf(payment)) === 'done')
    assert.equal(await charged(), price)
  })
})
