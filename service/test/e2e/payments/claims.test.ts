/** Claims of payment channels (spec §4.8): many vouchers in one transaction, bad rows left out, and withdrawals that race with a claim. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { toHex, type PrivateKeyAccount } from 'viem'
import { channelContract } from '../../../src/payments/channels/channel.ts'
import { createChannelStore } from '../../../src/payments/channels/store.ts'
import { openHolder } from '../../../src/payments/holder.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { asset, codesOf, price, type Answered } from '../../support/payments/buyer.ts'
import {
  buyThrough,
  channelOf,
  deposit,
  openChannel,
  startChannelWorld,
  stockBuyer,
  withdrawals,
} from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import type { GatewayWorld, Opened } from '../../support/payments/gateway.ts'
import { until } from '../../support/wait.ts'

const authorizer = attestationKey()
const daySeconds = 86_400
const gwei = 10n ** 9n

for (const { name, open, skip } of testDatabases())
  describe(`claims of payment channels on ${name}`, { skip }, () => {
    let world: GatewayWorld
    let gateway: Opened
    let token: bigint
    let another: bigint
    let held: bigint

    before(async () => {
      world = await startChannelWorld(open)
      token = await world.mint()
      another = await world.mint()
      gateway = await openGateway(5n * price)
    })
    after(() => world?.end())
    beforeEach(async () => {
      await world.heal()
      await gateway.claim()
      await world.database.query(`delete from payment`)
      await world.database.query(`delete from channel`)
      held = await world.balance()
    })

    const openGateway = (claimUnits: bigint, store = world.channels) =>
      world.open(world.through(authorizer, { store, claimUnits }))
    /** Returns the buyer's channel as a 402 states it. */
    const foundIn = ({ headers }: Answered) => {
      const header = Buffer.from(headers.get('PAYMENT-REQUIRED') ?? '', 'base64').toString()
      const { accepts } = JSON.parse(header) as { accepts: { extra: { channelState: object; voucherState: object } }[] }
      const { channelState, voucherState } = accepts[0]?.extra ?? {}
      return { channelState, voucherState }
    }
    const earned = async () => (await world.balance()) - held

    /** A channel with so many purchases. */
    async function sell(purchases: number) {
      const channel = await openChannel(world, { url: gateway.url, token, authorizer })
      for (let n = 2n; n <= BigInt(purchases); n += 1n)
        assert.equal((await buyThrough(gateway.url, token, await channel.voucher(n * price))).status, 200)
      return { ...channel, state: () => world.channels.find(channel.own.id) }
    }

    /**
     * A transaction of the buyer; it is mined at once where the chain does that. In a block, the highest fee comes first. A node proposes the
     * tips of the last blocks, and the facilitator signs no fee above 100 gwei.
     */
    async function send(payer: PrivateKeyAccount, data: Hex, fee: 'highest' | 'lowest' = 'lowest'): Promise<Hex> {
      await world.rpc('anvil_setBalance', [payer.address, toHex(10n ** 20n)])
      await world.rpc('anvil_impersonateAccount', [payer.address])
      const { baseFeePerGas } = (await world.rpc('eth_getBlockByNumber', ['latest', false])) as { baseFeePerGas: Hex }
      const fees =
        fee === 'highest'
          ? { maxFeePerGas: toHex(100n * gwei), maxPriorityFeePerGas: toHex(50n * gwei) }
          : { maxFeePerGas: toHex(2n * BigInt(baseFeePerGas)), maxPriorityFeePerGas: '0x0' }
      const call = { from: payer.address, to: channelContract, data, gas: toHex(500_000), ...fees }
      return (await world.rpc('eth_sendTransaction', [call])) as Hex
    }
    const receiptOf = async (hash: Hex) =>
      (await world.rpc('eth_getTransactionReceipt', [hash])) as { readonly status: Hex } | null

    /** Resolves when the chain shows it: a sale or a change of the time that came before would not. */
    async function beginWithdrawal({ payer, own }: Pick<Awaited<ReturnType<typeof sell>>, 'payer' | 'own'>) {
      const begun = await send(payer, withdrawals.initiate(own, deposit))
      await until(async () => (await receiptOf(begun)) !== null)
    }

    it('waits for enough, then claims all channels in one transaction, which pays the seller', async () => {
      const [one, two] = [await sell(2), await sell(2)]
      const before = await world.transactions()
      await gateway.claim()
      assert.equal(await world.transactions(), before)
      const three = await sell(1)
      await gateway.claim()
      assert.equal(await world.transactions(), before + 2) // the third deposit, and the claim
      assert.equal(await earned(), 5n * price)
      for (const { state } of [one, two, three]) {
        const found = await state()
        assert.equal(found?.claimed, found?.charged)
      }
      await gateway.claim()
      assert.equal(await world.transactions(), before + 2)
    })

    it('shows a voucher to everyone: a repeat of it leaves an undelivered proof to the buyer', async () => {
      const { voucher, keyAt } = await sell(5)
      const [again, next] = [await voucher(5n * price), await voucher(6n * price)]
      const key = keyAt(5n * price)
      const isMarked = async () => (await world.store.find(key))?.undelivered
      for (const isPublic of [false, true]) {
        await world.store.setUndelivered(key, true)
        if (isPublic) await gateway.claim()
        assert.equal((await buyThrough(gateway.url, token, again)).status, 200)
        await until(async () => (await isMarked()) === isPublic)
      }
      const sold = await buyThrough(gateway.url, token, again)
      assert.equal((await buyThrough(gateway.url, token, next)).text, sold.text)
      await until(async () => (await isMarked()) === false)
      assert.notEqual((await buyThrough(gateway.url, token, next)).text, sold.text)
    })

    it('shows a voucher to everyone: with it a stranger learns no later one, and no sum beyond the claims', async () => {
      const { own, voucher, keyAt } = await sell(5)
      const known = await voucher(5n * price)
      const row = keyAt(5n * price)
      await gateway.claim()
      assert.equal((await buyThrough(gateway.url, token, await voucher(6n * price))).status, 200)
      for (const isOld of [false, true]) {
        if (isOld) await world.ageSettled()
        // The process that claimed may have ended before it read the channel again.
        await world.database.query(`update channel set claimed = 0, read_block = 0`)
        const refused = await buyThrough(gateway.url, isOld ? token : another, known)
        assert.deepEqual(codesOf(refused), [402, 'payment_already_used'])
        assert.deepEqual(foundIn(refused), {
          channelState: {
            channelId: own.id,
            balance: String(deposit),
            totalClaimed: String(5n * price),
            chargedCumulativeAmount: String(5n * price),
          },
          voucherState: undefined,
        })
        assert.equal((await world.store.find(row))?.undelivered, false)
      }
    })

    it('shows a voucher to everyone: one that another service has claimed uses up no undelivered proof', async () => {
      const { voucher, keyAt } = await sell(5)
      await gateway.claim()
      const sold = await buyThrough(gateway.url, token, await voucher(6n * price))
      await world.store.setUndelivered(keyAt(6n * price), true)
      await world.database.query(`delete from payment where nonce = decode($1, 'hex')`, [
        keyAt(5n * price).nonce.slice(2),
      ])
      const refused = await buyThrough(gateway.url, token, await voucher(5n * price))
      assert.deepEqual(codesOf(refused), [402, 'voucher_amount_mismatch'])
      assert.deepEqual(foundIn(refused).voucherState, undefined)
      const next = await buyThrough(gateway.url, token, await voucher(7n * price))
      assert.deepEqual([next.status, next.text], [200, sold.text])
    })

    it('shows a voucher to everyone: with one that this service did not sell a stranger learns what the chain has, not the ledger', async () => {
      const { voucher, keyAt } = await sell(5)
      await gateway.claim()
      assert.equal((await buyThrough(gateway.url, token, await voucher(6n * price))).status, 200)
      await world.database.query(`delete from payment where nonce = decode($1, 'hex')`, [
        keyAt(5n * price).nonce.slice(2),
      ])
      await world.database.query(`update channel set claimed = 0, read_block = 0`)
      const refused = await buyThrough(gateway.url, token, await voucher(5n * price))
      assert.deepEqual(codesOf(refused), [402, 'voucher_amount_mismatch'])
      const { channelState, voucherState } = foundIn(refused)
      assert.deepEqual(
        [(channelState as Record<string, string>)['chargedCumulativeAmount'], voucherState],
        [String(5n * price), undefined],
      )
    })

    it('stock clients find the sum after a claim: one without records at once, one with older records when it asks again', async () => {
      const payer = await world.payer(deposit)
      const [late, early] = [stockBuyer(payer, world.chainUrl), stockBuyer(payer, world.chainUrl)]
      const buys = async (client: typeof late, asset: bigint) => (await client.buy(gateway.url, asset)).status
      for (const client of [late, ...Array(5).fill(early)]) assert.equal(await buys(client, token), 200)
      await gateway.claim()
      for (let n = 0; n < 3; n += 1) assert.equal(await buys(early, token), 200)
      assert.equal(await buys(stockBuyer(payer, world.chainUrl), another), 200)
      assert.deepEqual([await buys(late, another), await buys(late, another)], [402, 200])
      const { id } = channelOf(payer.address, authorizer.address)
      const { claimed, charged } = (await world.channels.find(id)) ?? {}
      assert.deepEqual([claimed, charged], [5n * price, 10n * price])
    })

    it('claims a small sum when the oldest purchase is an hour old', async () => {
      await sell(1)
      await gateway.claim()
      assert.equal(await earned(), 0n)
      await world.database.query(`update channel set unclaimed_since = unclaimed_since - interval '61 minutes'`)
      await gateway.claim()
      assert.equal(await earned(), price)
    })

    for (const [lie, claimed] of [
      ['everything is claimed', { balance: deposit, claimed: 6n * price }],
      ['the deposit is gone', { balance: 0n, claimed: 0n }],
    ] as const)
      it(`looks again at a channel of which a provider said that ${lie}`, async () => {
        const { own } = await sell(6)
        const { block = 0n } = (await world.channels.find(own.id)) ?? {}
        await world.channels.refresh([{ id: own.id, config: own, state: { ...claimed, withdrawal: 0n, block } }])
        await gateway.claim() // looks, and finds what is due
        await gateway.claim()
        assert.equal(await earned(), 6n * price)
      })

    it('looks at a claimed channel once more after half a minute, and then no more', async () => {
      await sell(6)
      await gateway.claim()
      const looks = async () => (await world.channels.unclaimed()).channels
      assert.equal(await looks(), 1)
      await gateway.claim()
      assert.equal(await looks(), 1)
      await world.database.query(`update channel set read_at = read_at - interval '31 seconds'`)
      await gateway.claim()
      assert.equal(await looks(), 0)
    })

    it('two processes claim each voucher once', { skip: name === 'PGlite' && 'PGlite has one process' }, async () => {
      await sell(3)
      await sell(3)
      await using holder = await openHolder(world.database)
      const store = createChannelStore(world.database, { chainId: 84532, asset, holder })
      await using other = await openGateway(5n * price, store)
      const before = await world.transactions()
      await Promise.all([gateway.claim(), other.claim()])
      assert.equal(await earned(), 6n * price)
      assert.equal(await world.transactions(), before + 1)
    })

    it('leaves out a row that the contract refuses, and claims the others', async () => {
      const [bad, good] = [await sell(3), await sell(3)]
      const id = Buffer.from(bad.own.id.slice(2), 'hex')
      await world.database.query(
        `update channel set signature = set_byte(signature, 40, 255 - get_byte(signature, 40)) where id = $1`,
        [id],
      )
      await gateway.claim()
      assert.equal(await earned(), 3n * price)
      assert.equal((await good.state())?.claimed, 3n * price)
      assert.equal((await bad.state())?.claimed, 0n)
      assert.ok(world.lines.some((line) => line.includes('the contract refuses a voucher')))
    })

    it('leaves the vouchers of an account that is not configured, which the log says, to a process that has it', async () => {
      await sell(6)
      const other = await world.open(world.through(attestationKey(), { claimUnits: 1n }))
      await other.claim()
      assert.equal(await earned(), 0n)
      assert.ok(world.lines.some((line) => /"level":"error".*an account that is not configured/.test(line)))
      await other.close()
      await gateway.claim()
      assert.equal(await earned(), 6n * price)
    })

    it('a provider that fails, or an account without ether, leaves everything for the next pass', async () => {
      await sell(5)
      world.payFaults.set({ name: 'rpc-error', methods: ['eth_call'] })
      await assert.rejects(gateway.claim())
      await world.heal()
      await world.rpc('anvil_setBalance', [world.facilitator.address, '0x0'])
      await assert.rejects(gateway.claim())
      await world.rpc('anvil_setBalance', [world.facilitator.address, toHex(10n ** 18n)])
      await gateway.claim()
      assert.equal(await earned(), 5n * price)
    })

    it('a lost record is rebuilt with what was claimed', async () => {
      const { voucher } = await sell(5)
      await gateway.claim()
      await world.database.query(`delete from payment`)
      await world.database.query(`delete from channel`)
      const refused = await buyThrough(gateway.url, token, await voucher(9n * price))
      assert.deepEqual(codesOf(refused), [402, 'voucher_amount_mismatch'])
      const bought = await buyThrough(gateway.url, token, await voucher(6n * price))
      assert.equal(bought.status, 200)
    })

    it('claims at once from a channel whose payer asks the deposit back, and sells no more of that', async () => {
      const [leaving, staying] = [await sell(1), await sell(1)]
      await beginWithdrawal(leaving)
      await world.database.query(`update channel set read_at = read_at - interval '11 minutes'`)
      const next = await leaving.voucher(2n * price)
      assert.deepEqual(codesOf(await buyThrough(gateway.url, token, next)), [402, 'channel_underfunded'])
      await gateway.claim()
      assert.equal(await earned(), price)
      assert.equal((await leaving.state())?.claimed, price)
      assert.equal((await staying.state())?.claimed, 0n)
    })

    // It moves the chain's time by a day, so that it comes last.
    it('withdrawals before and after a claim in the same block: only what was withdrawn first is lost', async () => {
      const [early, late, staying] = [await sell(1), await sell(2), await sell(5)]
      for (const one of [early, late]) await beginWithdrawal(one)
      // The gateway was away while the withdrawals matured.
      await world.rpc('evm_increaseTime', [daySeconds + 600])
      await world.mine()
      await world.automine(false)
      const claiming = gateway.claim()
      claiming.catch(() => {})
      const pooled = async () => JSON.stringify(await world.rpc('txpool_content')).toLowerCase()
      for (const { payer } of [early, late, staying])
        await until(async () => (await pooled()).includes(payer.address.slice(2).toLowerCase()))
      const withdrawn = [
        await send(early.payer, withdrawals.finalize(early.own), 'highest'),
        await send(late.payer, withdrawals.finalize(late.own), 'lowest'),
      ]
      await until(async () => ((await pooled()).match(/"hash"/g) ?? []).length >= 3)
      await world.mine()
      await world.automine(true)
      await claiming
      await gateway.claim()
      for (const hash of withdrawn) assert.equal((await receiptOf(hash))?.status, '0x1')
      assert.equal((await staying.state())?.claimed, 5n * price)
      assert.equal((await late.state())?.claimed, 2n * price)
      assert.equal(await world.balance(late.payer.address), deposit - 2n * price)
      assert.equal(await world.balance(early.payer.address), deposit)
      assert.equal(await earned(), 7n * price)
      const { claimed, balance } = (await early.state()) ?? {}
      assert.deepEqual([claimed, balance], [0n, 0n])
      assert.ok(world.lines.some((line) => line.includes('a channel does not cover its vouchers')))
      assert.equal((await gateway.metrics()).channels?.uncovered, Number(price))
    })
  })
