/** Gateways on one PostgreSQL that sell through one payment channel, and that are killed under vouchers (spec §4.8). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { voucherDigest } from '../../../src/payments/channels/channel.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { price, type Answered } from '../../support/payments/buyer.ts'
import {
  buyThrough,
  channelOf,
  depositPayload,
  startChannelWorld,
  stockBuyer,
  voucherPayload,
} from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import type { GatewayWorld } from '../../support/payments/gateway.ts'
import { startGatewayProcess } from '../../support/payments/process.ts'
import { until } from '../../support/wait.ts'

/** TEST_KILLS=100 runs the long form. */
const kills = Number(process.env['TEST_KILLS'] ?? 4)
const authorizer = attestationKey()
type Process = Awaited<ReturnType<typeof startGatewayProcess>>
const deposit = 10_000n * price

describe('payment channels of processes on one PostgreSQL', { skip: noPostgres }, () => {
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let world: GatewayWorld
  let token: bigint
  /** Minted long before it is bought: a process may know a head of a second ago. */
  let another: bigint
  const running = new Set<Process>()

  before(async () => {
    database = await openOwnDatabase('migrated')
    world = await startChannelWorld(async () => database)
    token = await world.mint()
    another = await world.mint()
  })
  after(async () => {
    for (const one of running) await one.kill()
    await world?.end()
  })

  async function start(more: { diesPaid?: boolean } = {}) {
    const started = await startGatewayProcess({
      ...more,
      databaseUrl: database.url,
      rpcUrl: world.chainUrl,
      contract: world.contract,
      facilitatorKey: world.facilitatorSecret,
      signerKey: world.signer.secret,
      channelKey: authorizer.secret,
    })
    running.add(started)
    return started
  }

  /** Returns two processes: those that the test before left, or new ones. */
  async function startTwo(): Promise<[Process, Process]> {
    while (running.size < 2) await start()
    return [...running] as [Process, Process]
  }

  async function openChannel() {
    const payer = await world.payer(deposit)
    const own = channelOf(payer.address, authorizer.address)
    return {
      own,
      payer,
      voucher: async (sum: bigint) =>
        sum === price ? depositPayload(payer, own, { amount: deposit, sum }) : voucherPayload(payer, own, sum),
      /** The sum of all sales, and the purchases that are stored. */
      books: async () => {
        const [row] = await database.query<{ charged: string; sold: bigint; bodies: bigint }>(
          `select c.charged::text, count(p.pk) as sold, count(distinct p.answer) as bodies from channel c
           join payment p on p.channel = c.id and p.kind = 'voucher' where c.id = $1 group by 1`,
          [Buffer.from(own.id.slice(2), 'hex')],
        )
        return row && { charged: BigInt(row.charged), sold: Number(row.sold), bodies: Number(row.bodies) }
      },
    }
  }

  it('two stock clients of one payer, each at another process, buy from one channel', async () => {
    const [one, two] = await startTwo()
    const { payer, books } = await openChannel()
    const options = { depositPolicy: { depositMultiplier: 3 } }
    const first = stockBuyer(payer, world.chainUrl, options)
    const opening = await first.buy(one.url, token)
    assert.equal(opening.status, 200)
    const second = stockBuyer(payer, world.chainUrl, options)
    const bought = new Set([JSON.stringify(opening.body['payment'])])
    // A client that loses the race twice gets a 402, and asks again.
    const buyAll = async (client: typeof first, url: string) => {
      for (let n = 0; n < 10;) {
        const { status, body } = await client.buy(url, token)
        if (status !== 200) continue
        n += 1
        bought.add(JSON.stringify(body['payment']))
      }
    }
    await Promise.all([buyAll(first, one.url), buyAll(second, two.url)])
    const found = await books()
    assert.equal(found?.charged, BigInt(found?.sold ?? 0) * price)
    // Vouchers over the same sum for the same request are one purchase, whichever client sent them.
    assert.equal(found?.sold, bought.size)
  })

  it('the same voucher at once at both is one purchase', async () => {
    const [one, two] = await startTwo()
    const { voucher, books } = await openChannel()
    assert.equal((await buyThrough(one.url, token, await voucher(price))).status, 200)
    for (let sum = 2n * price; sum <= 6n * price; sum += price) {
      const payload = await voucher(sum)
      const answers = await Promise.all([one, two, one, two].map(({ url }) => buyThrough(url, token, payload)))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
    }
    assert.deepEqual(await books(), { charged: 6n * price, sold: 6, bodies: 6 })
  })

  it('killed between a sale and its response: the buyer, who has no records any more, gets that proof, charged once', async () => {
    const [one] = await startTwo()
    const { payer, own, books } = await openChannel()
    const buyer = stockBuyer(payer, world.chainUrl)
    assert.equal((await buyer.buy(one.url, token)).status, 200)
    const rowOf = (sum: bigint) => world.store.find({ payer: own.payer, nonce: voucherDigest(own.id, sum) })
    const unsent = `select from payment where undelivered and channel = decode($1, 'hex')`
    await until(async () => (await database.query(unsent, [own.id.slice(2)])).length === 0)
    const dying = await start({ diesPaid: true })
    assert.equal(await buyer.buy(dying.url, another).catch(() => 'broken off'), 'broken off')
    running.delete(dying)
    const sold = { charged: 2n * price, sold: 2, bodies: 2 }
    assert.deepEqual(await books(), sold)
    await until(async () => (await rowOf(2n * price))?.undelivered === true)
    const { status, body } = await stockBuyer(payer, world.chainUrl).buy(one.url, another)
    assert.deepEqual([status, body, await books()], [200, JSON.parse((await rowOf(2n * price))?.answer ?? ''), sold])
  })

  it(`killed ${kills} times under vouchers: proofs = charged / price, nothing twice, nothing lost`, async () => {
    const processes = await startTwo()
    const channels: Awaited<ReturnType<typeof openChannel>>[] = []
    for (let n = 0; n < 4; n += 1) channels.push(await openChannel())
    const [target] = process.env['TEST_KILLS'] === undefined ? [12] : [3 * kills]
    let answered = 0
    let isOver = false

    /** Buys with one voucher after another; each is sent until its proof is there. */
    async function buyAll({ voucher, own }: (typeof channels)[number]): Promise<string[]> {
      const proofs: string[] = []
      for (let n = 1n; proofs.length < target || !isOver; n += 1n) {
        const payload = await voucher(n * price)
        let answer: Answered | undefined
        await until(async () => {
          const { url } = processes[Math.floor(Math.random() * 2)] as (typeof processes)[number]
          answer = await buyThrough(url, token, payload).catch(() => undefined)
          assert.ok(answer === undefined || answer.status === 200 || answer.status >= 500, `${own.id} ${answer?.text}`)
          return answer?.status === 200
        })
        answered += 1
        // The mark «not delivered» outlives a process that is killed after its response. A later voucher then gets that proof, uncharged. It
        // may be any later one, because the database may find only after a while that the process has ended.
        const { text = '' } = answer ?? {}
        if (proofs.includes(text)) n -= 1n
        else proofs.push(text)
      }
      return proofs
    }

    async function killAll(): Promise<void> {
      for (let n = 0; n < kills; n += 1) {
        const from = answered
        await until(() => answered > from + Math.floor(Math.random() * 4))
        const victim = processes[n % 2] as (typeof processes)[number]
        await victim.kill()
        running.delete(victim)
        processes[n % 2] = await start()
      }
      isOver = true
    }

    const [, ...all] = await Promise.all([killAll(), ...channels.map(buyAll)])
    for (const [index, proofs] of all.entries()) {
      const found = await channels[index]?.books()
      assert.deepEqual(found, { charged: BigInt(proofs.length) * price, sold: proofs.length, bodies: proofs.length })
      assert.equal(new Set(proofs).size, proofs.length)
    }
    // Each channel got its one deposit, once.
    for (const { payer } of channels) assert.equal(await world.balance(payer.address), 0n)
  })
})
