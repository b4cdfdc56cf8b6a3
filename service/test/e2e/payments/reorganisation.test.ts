/** A reorganisation removes or moves the transfers of paid payments. They are submitted again, or found where they are (spec §4.8). */
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, hexToBytes, toHex, type PrivateKeyAccount } from 'viem'
import {
  asset,
  buy,
  buySettled,
  headerV1,
  keyOf,
  price,
  sign,
  type SignedPayment,
} from '../../support/payments/buyer.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { until } from '../../support/wait.ts'

const { world, token, payer, charged } = await openSale()
afterEach(() => world.heal())

/** Replaces what came after a snapshot by another branch of the same length. */
async function reorganise(snapshot: unknown): Promise<void> {
  const before = BigInt((await world.rpc('eth_blockNumber')) as string)
  await world.rpc('evm_revert', [snapshot])
  await world.mine(Number(before - BigInt((await world.rpc('eth_blockNumber')) as string)))
}

/** Returns the newest transaction that was signed. */
async function lastSent(): Promise<Hex> {
  const [last] = await world.database.query<{ raw: Uint8Array }>('select raw from settlement order by pk desc limit 1')
  return bytesToHex(last?.raw ?? new Uint8Array())
}

describe('a reorganisation', () => {
  /** Asserts that the book has the transfer where it is in the chain, with its gas. */
  async function assertBooked({ from, nonce }: SignedPayment): Promise<void> {
    const row = await world.book.find(from, nonce)
    const receipt = await world.rpc('eth_getTransactionReceipt', [row?.transaction])
    type Receipt = Partial<Record<'blockNumber' | 'blockHash' | 'gasUsed' | 'effectiveGasPrice', Hex>>
    const { blockNumber, blockHash, gasUsed, effectiveGasPrice } = (receipt ?? {}) as Receipt
    const [stored] = await world.database.query(
      `select '0x' || encode(block_hash, 'hex') as "blockHash" from payment where nonce = $1`,
      [hexToBytes(nonce)],
    )
    const gas = BigInt(gasUsed ?? 0) * BigInt(effectiveGasPrice ?? 0)
    assert.deepEqual([row?.block, stored, row?.gas], [BigInt(blockNumber ?? 0), { blockHash }, String(gas)])
  }

  it('that removes a paid transfer: the same authorization is submitted again', async () => {
    await using gateway = await world.open()
    const payment = await sign(payer)
    const snapshot = await world.rpc('evm_snapshot')
    const sold = await buySettled(gateway.url, token, payment)
    assert.equal(sold.status, 200)
    await reorganise(snapshot)
    assert.equal(await charged(), 0n)
    await gateway.reconcile()
    assert.equal(await charged(), price)
    assert.equal((await buySettled(gateway.url, token, payment)).text, sold.text)
    await assertBooked(payment)
  })

  it('that goes on for longer than blocks are checked: a paid transfer is submitted again all the same', async () => {
    await using gateway = await world.open({ deadlines: { recheckSeconds: 0.01 } })
    await gateway.reconcile()
    const payment = await sign(payer)
    const snapshot = await world.rpc('evm_snapshot')
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    await world.mine(2)
    const isOld = async () => (await world.store.recentBlocks(0.01)).length === 0
    await until(isOld)
    await world.rpc('evm_revert', [snapshot])
    await assert.rejects(gateway.reconcile(), /does not have block/)
    await world.mine(4)
    await gateway.reconcile()
    assert.equal(await charged(), price)
    await assertBooked(payment)
  })

  it('that removes a paid transfer for good: it is no revenue, and its status says so', async () => {
    await using gateway = await world.open()
    const [rich, payment] = await world.payer().then(async (rich) => [rich, await sign(rich)] as const)
    const settled = async (outcome: string) =>
      (await world.book.report({}, ['outcome']))?.find(({ key }) => key[0] === outcome) ?? { payments: 0, units: 0n }
    const before = await settled('settled')
    const snapshot = await world.rpc('evm_snapshot')
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    const height = BigInt((await world.rpc('eth_blockNumber')) as string)
    await world.rpc('evm_revert', [snapshot])
    await world.cancel(rich, payment.nonce)
    await world.mine(Number(height - BigInt((await world.rpc('eth_blockNumber')) as string)) + 1)
    for (let pass = 0; pass < 2; pass += 1) await gateway.reconcile()
    assert.equal(await charged(), 0n)
    const { payments, units } = await settled('settled')
    assert.deepEqual([payments, units], [before.payments, before.units])
    assert.deepEqual([(await settled('removed')).payments, (await settled('removed')).units], [1, 0n])
    const row = await world.book.find(payment.from, payment.nonce)
    assert.deepEqual([row?.outcome, row?.reason], ['removed', 'removed'])
    assert.deepEqual(
      (await world.book.list({ outcome: 'removed' }, 9)).map(({ nonce }) => nonce),
      [payment.nonce],
    )
    assert.equal(world.lines.filter((line) => line.includes('for good')).length, 1)
    const status = async () =>
      (await fetch(`${gateway.url}/payments/${payment.from}/${payment.nonce}`, { headers: headerV1(payment) })).text()
    assert.match(await status(), /^{"status":"done","removed":true,/)
    await world.ageSettled()
  })

  it('that removed a paid transfer for a moment: it is revenue again', async () => {
    await using gateway = await world.open()
    const payment = await sign(payer)
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.ok(await world.store.removed(keyOf(payment)))
    await gateway.reconcile()
    const row = await world.book.find(payment.from, payment.nonce)
    assert.deepEqual([row?.outcome, row?.reason], ['settled', null])
  })

  it('that removes a paid transfer whose payer has spent the money: it is revenue again once there is money', async () => {
    await using gateway = await world.open()
    const poor = await world.payer(price)
    const payment = await sign(poor)
    const away = await sign(poor, { to: payer.address })
    const snapshot = await world.rpc('evm_snapshot')
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    await world.rpc('evm_revert', [snapshot])
    await world.submit(away)
    await world.mine(2)
    await gateway.reconcile()
    const booked = async () => (await world.book.find(payment.from, payment.nonce))?.outcome
    assert.deepEqual([await booked(), await charged()], ['removed', 0n])
    await world.ageSettled() // so that its block is looked at no more
    await world.submit(await sign(payer, { to: poor.address }))
    await gateway.reconcile()
    assert.deepEqual([await booked(), await charged()], ['settled', price])
  })

  it('that executes a payment although its payer had cancelled it: the proof, and the books have it', async () => {
    await using gateway = await world.open({ deadlines: { settleMs: 500, followMs: 500 } })
    const buyers = [await world.payer(), await world.payer()]
    const payments = await Promise.all(buyers.map((buyer) => sign(buyer)))
    await world.automine(false)
    for (const payment of payments) assert.equal((await buy(gateway.url, token, payment)).status, 503)
    for (const payment of payments) await world.sent(payment)
    await world.rpc('anvil_dropAllTransactions', [])
    await world.automine(true)
    const snapshot = await world.rpc('evm_snapshot')
    for (const [n, payment] of payments.entries()) {
      await world.cancel(buyers[n] as PrivateKeyAccount, payment.nonce)
      assert.equal((await buySettled(gateway.url, token, payment)).body.error, 'nonce_already_used')
    }
    await world.rpc('evm_revert', [snapshot])
    for (const payment of payments) await world.submit(payment)
    await world.mine(4)
    const again = await buySettled(gateway.url, token, payments[0] as SignedPayment)
    assert.deepEqual([again.status, again.body.assetId], [200, String(token)])
    await gateway.reconcile()
    for (const { from, nonce } of payments) assert.equal((await world.book.find(from, nonce))?.outcome, 'settled')
    assert.equal(await charged(), 2n * price)
  })

  it('that revives a transaction whose nonce another one had: the proof, and the books have it', async () => {
    await using gateway = await world.open({ deadlines: { settleMs: 500, followMs: 500 } })
    const poor = await world.payer(price)
    const payment = await sign(poor)
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
    await world.sent(payment)
    const raw = await lastSent()
    await world.rpc('anvil_dropAllTransactions', [])
    await world.automine(true)
    const snapshot = await world.rpc('evm_snapshot')
    const { address } = world.facilitator
    await world.rpc('anvil_impersonateAccount', [address])
    await world.rpc('eth_sendTransaction', [{ from: address, to: address }])
    await world.rpc('anvil_dealERC20', [poor.address, asset, '0x0'])
    await until(async () => {
      await world.mine(4)
      return (await buy(gateway.url, token, payment)).body.error === 'insufficient_funds'
    })
    await world.rpc('evm_revert', [snapshot])
    await world.rpc('eth_sendRawTransaction', [raw])
    await world.mine()
    const again = await buySettled(gateway.url, token, payment)
    assert.deepEqual([again.status, again.body.assetId], [200, String(token)])
    await gateway.reconcile()
    await assertBooked(payment)
    assert.equal(await charged(), price)
  })

  it('that puts the first of two transactions of a payment into a block before it came: the buyer has the proof', async () => {
    await using gateway = await world.open({ deadlines: { settleMs: 500, followMs: 500 } })
    const payment = await sign(await world.payer(price))
    const snapshot = await world.rpc('evm_snapshot')
    await world.mine(4)
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, payment)).status, 503)
    await world.sent(payment)
    const raw = await lastSent()
    const { address } = world.facilitator
    await world.rpc('anvil_dropAllTransactions', [])
    await world.rpc('anvil_setNonce', [address, toHex((await world.transactions()) + 1)])
    await until(async () => {
      await world.mine(4)
      return (await lastSent()) !== raw
    })
    await world.rpc('evm_revert', [snapshot])
    await world.rpc('eth_sendRawTransaction', [raw])
    await world.mineAgain()
    const answer = await buySettled(gateway.url, token, payment)
    assert.deepEqual([answer.status, answer.body.error, await charged()], [200, undefined, price])
    await gateway.reconcile()
    await assertBooked(payment)
  })

  it('that removes a transfer which moved nothing: its nonce is free at once, and its gas is in no sum', async () => {
    await using gateway = await world.open({ deadlines: { settleMs: 5_000, followMs: 500 } })
    const poor = await world.payer(price)
    const failing = await sign(poor)
    const snapshot = await world.rpc('evm_snapshot')
    await world.automine(false)
    const failed = buySettled(gateway.url, token, failing)
    await until(async () => Number(await world.rpc('eth_getBlockTransactionCountByNumber', ['pending'])) > 0)
    await world.rpc('anvil_dealERC20', [poor.address, asset, '0x0'])
    await world.mineAgain()
    assert.equal((await failed).body.error, 'insufficient_funds')
    await world.rpc('evm_revert', [snapshot])
    await world.mine(4)
    await gateway.reconcile()
    const [slot] = await world.database.query('select state from settlement order by pk desc limit 1')
    assert.deepEqual(slot, { state: 'lost' })
    assert.equal((await buy(gateway.url, token, await sign(payer))).status, 200)
  })

  it('that moves a paid transfer to another block: nothing is submitted', async () => {
    await using gateway = await world.open()
    const payment = await sign(payer)
    const snapshot = await world.rpc('evm_snapshot')
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    const sent = await world.transactions()
    await reorganise(snapshot)
    await world.rpc('eth_sendRawTransaction', [await lastSent()])
    await gateway.reconcile()
    assert.deepEqual([await charged(), await world.transactions()], [price, sent])
    await assertBooked(payment)
  })

  it('is not taken from a provider that does not have the block yet', async () => {
    await using gateway = await world.open()
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    const newest = await world.rpc('eth_blockNumber')
    world.payFaults.set({ rewrite: (_method, [block], result) => (block === newest ? null : result) })
    await assert.rejects(gateway.reconcile(), /does not have block/)
    const [last] = await world.database.query('select state from settlement order by pk desc limit 1')
    assert.deepEqual(last, { state: 'mined' })
    world.payFaults.set('none')
    await gateway.reconcile()
  })

  it('is not taken from a provider on another branch while the receipt is in the block', async () => {
    await using gateway = await world.open()
    const payment = await sign(payer)
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    const newest = await world.rpc('eth_blockNumber')
    const sent = await world.transactions()
    world.payFaults.set({
      rewrite: (method, [block], result) =>
        method === 'eth_getBlockByNumber' && block === newest ? { ...(result as object), hash: asset } : result,
    })
    await assert.rejects(gateway.reconcile(), /receipt is in a block/)
    await assertBooked(payment)
    world.payFaults.set('none')
    await gateway.reconcile()
    assert.deepEqual([await charged(), await world.transactions()], [price, sent])
    await assertBooked(payment)
  })

  it('that took a settlement for lost, which has paid all the same: it is found again, with its gas', async () => {
    await using gateway = await world.open()
    const payments = [await sign(payer), await sign(payer)]
    for (const change of ["state = 'lost'", "state = 'lost', gas_used = null, gas_price = null, block_number = null"]) {
      const payment = payments.pop() as SignedPayment
      assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
      await world.database.query(`update settlement set ${change} where pk = (select max(pk) from settlement)`)
      await gateway.reconcile()
      await assertBooked(payment)
    }
  })

  it('is repaired for every payment but one of an account that the chain refuses to look up', async () => {
    const ledger: typeof world.store = {
      ...world.store,
      async settledIn(block) {
        const rows = await world.store.settledIn(block)
        return rows.flatMap((row) => [{ ...row, payload: row.payload.replace(/"from":"0x\w+"/, '"from":"0x"') }, row])
      },
    }
    await using gateway = await world.open({ ledger })
    const snapshot = await world.rpc('evm_snapshot')
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    await reorganise(snapshot)
    await assert.rejects(gateway.reconcile())
    assert.equal(await charged(), price)
  })

  it('is found although the chain could not be read when the block was due', async () => {
    await using gateway = await world.open({ reconcileMs: 50 })
    const snapshot = await world.rpc('evm_snapshot')
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    await reorganise(snapshot)
    world.payFaults.set({ name: 'die', methods: ['eth_getBlockByNumber'] })
    const seen = world.lines.length
    // The payment stays at this age: what was due once is not due again.
    const settle = () =>
      world.database.query(
        `update payment set settled_at = clock_timestamp() - interval '31 s' where settled_at > clock_timestamp() - interval '1 minute'`,
      )
    await settle()
    await until(() => world.lines.slice(seen).some((line) => line.includes('payments are not reconciled')))
    world.payFaults.set('none')
    await until(async () => {
      await settle()
      return (await charged()) === price
    })
  })
})
