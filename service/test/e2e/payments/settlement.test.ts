/**
 * Settlement with many payments on their way (spec §4.8). No payer makes the facilitator lose more than one transaction's gas, no
 * transaction stops the ones behind it, and an idle gateway asks the chain nothing.
 */
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { bytesToHex, encodeDeployData, keccak256, parseAbi, parseTransaction, toHex, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import burningWallet from '../../../../contracts/artifacts/BurningWallet.json' with { type: 'json' }
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'
import { RpcError } from '../../../src/chain/rpc/answer.ts'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import { gasLimit } from '../../../src/chain/transactions/transaction.ts'
import { buy, buySettled, codesOf, post, price, sign, type Answered } from '../../support/payments/buyer.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { until } from '../../support/wait.ts'

const { world, token, payer, charged } = await openSale()
afterEach(() => world.heal())

type Block = { readonly baseFeePerGas: Hex }
const sender = world.facilitator.address
const waiting = async () =>
  Number(await world.rpc('eth_getTransactionCount', [sender, 'pending'])) - (await world.transactions())
const statuses = (answers: readonly Answered[]) => answers.map(({ status }) => status)

/** Mines block after block until `work` has ended. */
async function whileMining<T>(work: Promise<T>, beforeBlock: () => Promise<unknown> = async () => {}): Promise<T> {
  let isOver = false
  const ended = work.finally(() => (isOver = true))
  ended.catch(() => {})
  await until(async () => {
    await beforeBlock()
    await world.mine()
    return isOver
  })
  return ended
}

/** A provider that passes transactions to `onSend`, and the transactions. */
function observed(onSend: (send: () => Promise<unknown>, raw: Hex) => Promise<unknown>) {
  const sent: Hex[] = []
  const rpc: RpcClient = (method, params = []) => {
    if (method !== 'eth_sendRawTransaction') return world.provider(method, params)
    sent.push(params[0] as Hex)
    return onSend(() => world.provider(method, params), params[0] as Hex)
  }
  return { rpc, sent }
}

describe('a wallet that burns the gas of transactions', () => {
  const deploy = async (naive: boolean) => {
    const abi = parseAbi(['constructor(bool)'])
    const wallet = await world.deploy(encodeDeployData({ abi, bytecode: burningWallet.bytecode as Hex, args: [naive] }))
    await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address: wallet, amount: 2_000n * price }] })
    return wallet
  }

  it('is not served where it only accepts calls without fees', async () => {
    const wallet = await deploy(true)
    await using gateway = await world.open()
    const before = await world.transactions()
    const answer = await buySettled(gateway.url, token, await sign(payer, { from: wallet }))
    assert.deepEqual([answer.status, (await world.transactions()) - before], [402, 0])
  })

  it('costs one transaction, whatever number of payments it signs', async () => {
    const wallet = await deploy(false)
    await using gateway = await world.open()
    const payments = await Promise.all(Array.from({ length: 200 }, () => sign(payer, { from: wallet })))
    const before = await world.transactions()
    await world.automine(false)
    const answers = Promise.all(payments.map((payment) => buySettled(gateway.url, token, payment)))
    await until(async () => (await waiting()) > 0)
    await world.rpc('anvil_setStorageAt', [wallet, toHex(0), `0x${'0'.repeat(63)}1`])
    const ended = await whileMining(answers)
    // Payments that were checked after the failed transaction have to wait.
    assert.deepEqual(new Set(statuses(ended).filter((status) => status !== 429)), new Set([402]))
    assert.equal((await world.transactions()) - before, 1)
    assert.equal(await charged(), 0n)
    const [first] = payments
    assert.ok([402, 429].includes((await buy(gateway.url, token, first ?? (await sign(payer)))).status))
    const { units, gas, lostGas, refused, oldestPendingSeconds } = await gateway.metrics()
    assert.ok(lostGas > 0 && lostGas === gas, `${lostGas} of ${gas} wei`)
    assert.deepEqual([units, oldestPendingSeconds], [0, 0])
    assert.ok(Object.values(refused).reduce((sum, count) => sum + count, 0) > 200)
  })

  it('does not keep out another of its kind that has bought', async () => {
    await using gateway = await world.open()
    const pay = async (from: Hex) => buySettled(gateway.url, token, await sign(payer, { from }))
    const customer = await deploy(false)
    const ends = [(await pay(customer)).status]
    for (let failure = 0; failure < 3; failure += 1) {
      const wallet = await deploy(false)
      await world.automine(false)
      const answer = pay(wallet)
      await until(async () => (await waiting()) > 0)
      await world.rpc('anvil_setStorageAt', [wallet, toHex(0), `0x${'0'.repeat(63)}1`])
      ends.push((await whileMining(answer)).status)
      await world.heal()
    }
    ends.push((await pay(await deploy(false))).status, (await pay(customer)).status)
    assert.deepEqual(ends, [200, 402, 402, 402, 429, 200])
  })

  it('has its gas counted where the chain does not answer after the transaction', async () => {
    const wallet = await deploy(false)
    let looks: 'before' | 'failing' | 'after' = 'before'
    const failing: RpcClient = async (method, parameters) => {
      const isLook = method === 'eth_call' && typeof parameters?.[1] === 'object'
      if (looks === 'failing' && isLook) {
        looks = 'after'
        throw new Error('the provider does not answer')
      }
      const answer = await world.provider(method, parameters)
      if (looks === 'before' && method === 'eth_getTransactionReceipt' && answer !== null) looks = 'failing'
      return answer
    }
    await using gateway = await world.open({ rpc: failing })
    const payment = await sign(payer, { from: wallet })
    await world.automine(false)
    const answer = buySettled(gateway.url, token, payment)
    await until(async () => (await waiting()) > 0)
    await world.rpc('anvil_setStorageAt', [wallet, toHex(0), `0x${'0'.repeat(63)}1`])
    assert.deepEqual([(await whileMining(answer)).status, looks], [402, 'after'])
    const { gas, lostGas } = await gateway.metrics()
    assert.ok(lostGas > 0 && lostGas === gas, `${lostGas} of ${gas} wei`)
    const row = await world.book.find(wallet, payment.nonce)
    assert.deepEqual([row?.outcome, row?.gas], ['rejected', String(gas)])
  })
})

describe('the gas of a transaction', () => {
  /** A provider that refuses transactions as the chain does (EIP-7825), and their gas. */
  function limited() {
    const refused: bigint[] = []
    const { rpc } = observed(async (send, raw) => {
      const { gas = 0n } = parseTransaction(raw)
      if (gas <= gasLimit) return send()
      refused.push(gas)
      throw new RpcError('rejected', 'exceeds maximum per-transaction gas limit', {})
    })
    return { rpc, refused }
  }

  /** A wallet that takes any signature, for 200,000 gas. Its last two bytes make it a kind of its own. */
  async function dearWallet(kind: number): Promise<Hex> {
    const { address } = privateKeyToAccount(generatePrivateKey())
    const code = `0x6117705b60019003806003576316` + `26ba7e60e01b60005260206000f3${toHex(kind, { size: 2 }).slice(2)}`
    await world.rpc('anvil_setCode', [address, code])
    return address
  }

  it('is within the limit of the chain, however much the wallets use that pay at once', async () => {
    const wallets = await Promise.all(Array.from({ length: 60 }, (_, kind) => dearWallet(kind)))
    await installTestMoney({ rpcUrl: world.chainUrl, fund: wallets.map((address) => ({ address, amount: price })) })
    const payments = await Promise.all(wallets.map((from) => sign(payer, { from })))
    let arrived = 0
    const all = Promise.withResolvers<void>()
    const insert: typeof world.store.insert = async (payment) => {
      if ((arrived += 1) === payments.length) all.resolve()
      await all.promise
      return world.store.insert(payment)
    }
    const { rpc, refused } = limited()
    await using gateway = await world.open({ rpc, ledger: { ...world.store, insert } })
    const before = await world.transactions()
    const answers = await whileMining(Promise.all(payments.map((payment) => buySettled(gateway.url, token, payment))))
    assert.deepEqual(new Set(statuses(answers)), new Set([200]))
    assert.deepEqual([await charged(), refused], [60n * price, []])
    assert.ok((await world.transactions()) - before > 1)
  })

  it('that a version before signed above the limit stops nothing: its payment is sent anew', async () => {
    let signed = 0
    const slots: typeof world.slots = {
      ...world.slots,
      assign: (given, signNow) =>
        world.slots.assign(given, async (nonce) => {
          const one = await signNow(nonce)
          if ((signed += 1) > 1) return one
          const raw = await world.facilitator.signTransaction({
            ...parseTransaction(one.raw),
            gas: gasLimit + 1n,
          } as never)
          return { raw, hash: keccak256(raw) }
        }),
    }
    const { rpc, refused } = limited()
    await using gateway = await world.open({ rpc, slots })
    const answer = await whileMining(buySettled(gateway.url, token, await sign(payer)))
    assert.deepEqual([answer.status, await charged(), signed], [200, price, 2])
    assert.ok(refused.length > 0)
  })
})

describe('the cost of a settlement', () => {
  it('contains the data fee of a rollup, in the metrics and in the book', async () => {
    const l1Fee = 77_000_000_000_000n
    const rollup: RpcClient = async (method, parameters) => {
      const answer = await world.provider(method, parameters)
      return method === 'eth_getTransactionReceipt' && answer !== null
        ? { ...(answer as object), l1Fee: toHex(l1Fee) }
        : answer
    }
    await using gateway = await world.open({ rpc: rollup })
    const { status, body } = await buySettled(gateway.url, token, await sign(payer))
    assert.equal(status, 200)
    const hash = body.payment?.transaction ?? '0x'
    const receipt = (await world.rpc('eth_getTransactionReceipt', [hash])) as Record<
      'gasUsed' | 'effectiveGasPrice',
      Hex
    >
    const cost = BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice) + l1Fee
    assert.equal((await gateway.metrics()).gas, Number(cost))
    const [row] = await world.book.findByTransaction(hash)
    assert.equal(row?.gas, String(cost))
  })
})

describe('a transaction that stays out', () => {
  it('gets higher fees when the base fee has outgrown it, and those behind it are mined too', async () => {
    await using gateway = await world.open()
    const another = await world.payer()
    await world.automine(false)
    const first = buySettled(gateway.url, token, await sign(payer))
    await until(async () => (await waiting()) === 1)
    const { baseFeePerGas } = (await world.rpc('eth_getBlockByNumber', ['latest', false])) as Block
    const spike = toHex(20n * (BigInt(baseFeePerGas) + 1_000_000_000n))
    const raise = () => world.rpc('anvil_setNextBlockBaseFeePerGas', [spike])
    const before = await world.transactions()
    await raise()
    await world.mine()
    assert.equal(await world.transactions(), before)
    const payments = await Promise.all([sign(payer), sign(payer), sign(another)])
    const others = payments.map((payment) => buySettled(gateway.url, token, payment))
    const answers = await whileMining(Promise.all([first, ...others]), raise)
    assert.deepEqual(statuses(answers), [200, 200, 200, 200])
    assert.equal(await charged(), 4n * price)
  })

  it('is sent again after the node has dropped it, and so are those behind it', async () => {
    await using gateway = await world.open()
    const another = await world.payer()
    await world.automine(false)
    const first = buySettled(gateway.url, token, await sign(payer))
    await until(async () => (await waiting()) === 1)
    const second = buySettled(gateway.url, token, await sign(another))
    await until(async () => (await waiting()) === 2)
    await world.rpc('anvil_dropAllTransactions')
    assert.deepEqual(statuses(await whileMining(Promise.all([first, second]))), [200, 200])
    assert.equal(await charged(), 2n * price)
  })

  it('costs nothing more where another process follows the one before it', async () => {
    let isForwarded = false
    const { rpc, sent } = observed(async (send, raw) => (isForwarded ? send() : keccak256(raw)))
    const [one, two] = [await world.open({ rpc }), await world.open({ rpc })]
    const before = await world.transactions()
    const first = buySettled(one.url, token, await sign(payer))
    await until(() => sent.length > 0)
    const second = buySettled(two.url, token, await sign(await world.payer()))
    await whileMining(until(() => sent.length > 8))
    isForwarded = true
    assert.deepEqual(statuses(await whileMining(Promise.all([first, second]))), [200, 200])
    assert.deepEqual([new Set(sent).size, (await world.transactions()) - before], [2, 2])
    for (const gateway of [one, two]) await gateway.close()
  })

  it('is mined once a transfer of nothing has the nonce before it, which a transaction that was lost had', async () => {
    const one = await world.open({ deadlines: { settleMs: 500 } })
    await using two = await world.open({ slots: { ...world.slots, adopt: async () => [] } })
    const another = await world.payer()
    await world.automine(false)
    const before = await world.transactions()
    assert.equal((await buy(one.url, token, await sign(payer))).status, 503)
    const answer = buySettled(two.url, token, await sign(another))
    await until(async () => (await waiting()) === 2)
    await one.close()
    await world.rpc('anvil_dropAllTransactions')
    const lost = `with lost as (update settlement set state = 'lost' where nonce = $1 and state = 'pending' returning pk)
      delete from payment where settlement in (select pk from lost)`
    await world.database.query(lost, [before])
    assert.equal((await whileMining(answer)).status, 200)
    assert.deepEqual([await charged(), (await world.transactions()) - before], [price, 2])
    const mined = `select raw from settlement where nonce = $1 and state = 'mined'`
    const [row] = await world.database.query<{ raw: Uint8Array }>(mined, [before])
    const { to, value = 0n, data } = parseTransaction(bytesToHex(row?.raw ?? new Uint8Array()))
    assert.deepEqual([to, value, data], [sender.toLowerCase(), 0n, undefined])
  })

  it('does not hide that a stranger has executed the payment, while no node takes it', async () => {
    await using gateway = await world.open({ deadlines: { settleMs: 500, followMs: 1_000 } })
    const payment = await sign(payer)
    const held = Promise.withResolvers<void>()
    world.payFaults.set({ methods: ['eth_sendRawTransaction'], held: held.promise })
    assert.deepEqual(codesOf(await buy(gateway.url, token, payment)), [503, 'settlement_pending'])
    await world.submit(payment)
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    await world.heal()
    held.resolve()
  })

  it('is sent although the answer of the database that it is stored was lost, and so are those behind it', async () => {
    let assigned = 0
    const slots: typeof world.slots = {
      ...world.slots,
      async assign(...args) {
        const slot = await world.slots.assign(...args)
        if ((assigned += 1) === 1) throw new Error('connection terminated')
        return slot
      },
    }
    await using gateway = await world.open({ slots, deadlines: { settleMs: 500 } })
    const another = await world.payer()
    const payment = await sign(payer)
    const pending = await buy(gateway.url, token, payment)
    assert.deepEqual(codesOf(pending), [503, 'settlement_pending'])
    await world.database.query(`update settlement set sent_at = sent_at - interval '1 minute' where state = 'pending'`)
    const answers = [payment, await sign(another)].map((one) => buySettled(gateway.url, token, one))
    assert.deepEqual(statuses(await whileMining(Promise.all(answers))), [200, 200])
    assert.equal(await charged(), 2n * price)
  })

  it('is given up when another transaction has its nonce, and its payment is sent anew, although the database failed', async () => {
    let losses = 0
    const lost: typeof world.slots.lost = (slot) =>
      (losses += 1) === 1 ? Promise.reject(new Error('connection terminated')) : world.slots.lost(slot)
    await using gateway = await world.open({ slots: { ...world.slots, lost } })
    await world.automine(false)
    const first = buySettled(gateway.url, token, await sign(payer))
    await until(async () => (await waiting()) === 1)
    await world.rpc('anvil_dropAllTransactions')
    await world.rpc('anvil_setNonce', [sender, toHex((await world.transactions()) + 1)])
    const forget = () =>
      world.database.query(`update settlement set sent_at = sent_at - interval '1 minute' where state = 'pending'`)
    assert.equal((await whileMining(first, forget)).status, 200)
    assert.deepEqual([losses, await charged()], [2, price])
  })
})

describe('the fees of a transaction that stays out', () => {
  const gwei = 10n ** 9n
  const baseFee = (fee: bigint) => () => world.rpc('anvil_setNextBlockBaseFeePerGas', [toHex(fee)])

  /** The highest fee of each transaction that was sent, in gwei. */
  const feesOf = (sent: readonly Hex[]) =>
    [...new Set(sent)].map((raw) => Number(parseTransaction(raw).maxFeePerGas ?? 0n) / 1e9)

  it('stay as they are while a provider accepts it and does not forward it', async () => {
    let isForwarded = false
    const { rpc, sent } = observed(async (send, raw) => (isForwarded ? send() : keccak256(raw)))
    await using gateway = await world.open({ rpc })
    const answer = buySettled(gateway.url, token, await sign(payer))
    await whileMining(until(() => sent.length > 4))
    isForwarded = true
    assert.equal((await whileMining(answer)).status, 200)
    assert.equal(new Set(sent).size, 1)
  })

  it('do not exceed the limit, above which nothing new is sent', async () => {
    const { rpc, sent } = observed((send) => send())
    await using gateway = await world.open({ rpc })
    const another = await world.payer()
    await world.automine(false)
    const answer = buySettled(gateway.url, token, await sign(payer))
    await until(async () => (await waiting()) === 1)
    await whileMining(
      until(() => sent.length > 3),
      baseFee(150n * gwei),
    )
    const unpaid = await post(gateway.url, { assetId: String(token) })
    const paid = await buy(gateway.url, token, await sign(another))
    for (const { status, body } of [unpaid, paid]) assert.deepEqual([status, body.error], [503, 'payment_unavailable'])
    assert.equal((await whileMining(answer, baseFee(gwei))).status, 200)
    assert.ok(feesOf(sent).every((fee) => fee <= 100))
    assert.equal(await charged(), price)
  })

  it('fall with those of the chain after the account could not pay for higher ones', async () => {
    const poor = privateKeyToAccount(generatePrivateKey())
    await world.rpc('anvil_setBalance', [poor.address, toHex(10n ** 15n)])
    let refusals = 0 // the base fee may also have risen since the fees were read
    const note = (error: unknown) => {
      if (/insufficient funds/i.test(String(error))) refusals += 1
      throw error
    }
    const { rpc, sent } = observed((send) => send().catch(note))
    await using gateway = await world.open({ rpc, facilitator: { accounts: [poor], walletFactories: [] } })
    await whileMining(Promise.resolve(), baseFee(gwei))
    await world.automine(false)
    const answer = buySettled(gateway.url, token, await sign(payer))
    await until(() => sent.length === 1)
    await whileMining(
      until(() => refusals > 0),
      baseFee(20n * gwei),
    )
    await world.rpc('anvil_dropAllTransactions')
    await whileMining(
      until(() => refusals > 5),
      baseFee(20n * gwei),
    )
    assert.equal((await whileMining(answer, baseFee(gwei))).status, 200)
    assert.equal(await charged(), price)
    const fees = feesOf(sent)
    assert.ok(fees.length < 5 && Math.max(...fees) < 60, `${fees.join(', ')} gwei`)
  })
})
