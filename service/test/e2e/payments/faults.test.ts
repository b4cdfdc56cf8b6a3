/**
 * Whatever fails at the provider of payments or beside the payment (asset reads, signer, ledger, clock), the buyer is charged exactly when a
 * proof is deliverable: no 402 where there is nothing to mend, and after recovery the same header gives the proof for one charge (spec §4.8,
 * §7). And what the gateway finds out about itself.
 */
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { toHex } from 'viem'
import type { GatewayOptions } from '../../../src/hosts/gateway/gateway.ts'
import type { Ledger } from '../../../src/payments/ledger.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { buy, sign } from '../../support/payments/buyer.ts'
import { survives, type Broken, type Expected } from '../../support/payments/survives.ts'
import type { Fault } from '../../support/fault-rpc.ts'

const { world, token, payer } = await openSale()
afterEach(() => world.heal())

const survivesHere = (broken: Broken, expected: Expected) => survives({ world, payer, token }, broken, expected)

const unavailable = [[503, 'payment_unavailable']] as const
const pendingOrSold = [
  [503, 'settlement_pending'],
  [200, undefined],
] as const

describe('the provider of payments fails before anything is stored', () => {
  for (const [what, fault] of [
    ['every call breaks', 'die'],
    ['every call gets status 500', 'status500'],
    ['every call gets garbage', 'garbage'],
    ['every call gets an error', 'rpc-error'],
    ['no call is answered', 'hang'],
    ['the head is null', { name: 'null-result', methods: ['eth_getBlockByNumber'] }],
    ['code reads fail', { name: 'rpc-error', methods: ['eth_getCode'] }],
    ['calls fail', { name: 'rpc-error', methods: ['eth_call'] }],
    ['calls are rate limited', { name: 'rate-limit', methods: ['eth_call'] }],
    ['calls hang', { name: 'hang', methods: ['eth_call'] }],
    ['one code read breaks', { name: 'die', methods: ['eth_getCode'], times: 1 }],
    ['one call gets status 500', { name: 'status500', methods: ['eth_call'], times: 1 }],
  ] satisfies [string, Fault['name'] | Fault][]) {
    it(`${what}: 503, never 402`, () =>
      survivesHere({ breaks: () => world.payFaults.set(fault) }, [...unavailable, [200, undefined]]))
  }
})

describe('the provider of payments fails while it settles', () => {
  for (const [what, fault] of [
    ['the broadcast breaks before it is sent', { name: 'die', methods: ['eth_sendRawTransaction'] }],
    ['the answer of the broadcast is garbage', { name: 'garbage', methods: ['eth_sendRawTransaction'] }],
    ['the broadcast is refused', { name: 'rpc-error', methods: ['eth_sendRawTransaction'] }],
    ['gas cannot be estimated', { name: 'rpc-error', methods: ['eth_estimateGas'] }],
    ['the pending count is missing', { name: 'null-result', methods: ['eth_getTransactionCount'] }],
    ['logs are hidden', { name: 'hide-logs', methods: ['eth_getLogs'] }],
    ['receipts are missing', { name: 'null-result', methods: ['eth_getTransactionReceipt'] }],
    ['receipts hang', { name: 'hang', methods: ['eth_getTransactionReceipt'] }],
  ] satisfies [string, Fault][]) {
    it(`${what}: the proof or 503 settlement_pending`, () =>
      survivesHere({ breaks: () => world.payFaults.set(fault) }, pendingOrSold))
  }

  it('the chain does not mine: 503 settlement_pending', () =>
    survivesHere({ breaks: () => world.automine(false), mends: () => world.mine() }, [[503, 'settlement_pending']]))

  it('the facilitator has no gas: 503 payment_unavailable, nothing charged', async () => {
    const { address } = world.facilitator
    const rich = await world.rpc('eth_getBalance', [address, 'latest'])
    await survivesHere(
      {
        breaks: () => world.rpc('anvil_setBalance', [address, toHex(1n)]),
        mends: () => world.rpc('anvil_setBalance', [address, rich]),
      },
      unavailable,
    )
  })
})

describe('the asset cannot be read', () => {
  for (const fault of ['die', 'status500', 'garbage', 'rpc-error', 'null-result', 'empty-result', 'hang'] as const) {
    it(`${fault}: 502 chain_unavailable, nothing charged`, () =>
      survivesHere({ breaks: () => world.readFaults.set(fault) }, [[502, 'chain_unavailable']]))
  }
})

describe('the signer', () => {
  for (const [what, sign] of [
    ['fails', () => Promise.reject(new Error('no session'))],
    ['hangs', () => new Promise<never>(() => {})],
    ['signs something else', () => world.signer.sign(`0x${'11'.repeat(32)}`)],
  ] as const) {
    it(`${what}: 503 signer_unavailable, nothing charged`, () =>
      survivesHere({ options: { keys: { active: () => ({ ...world.signer, sign }), published: () => [] } } }, [
        [503, 'signer_unavailable'],
      ]))
  }
})

describe('the ledger', () => {
  const failing = (name: keyof Ledger, done = false): Partial<Ledger> => {
    const real = world.store[name] as (...args: unknown[]) => Promise<unknown>
    const fails = async (...args: unknown[]) => {
      if (done) await real(...args)
      throw new Error('connection terminated')
    }
    return { [name]: fails }
  }

  for (const [what, name, done, expected] of [
    ['is down', 'find', false, [[503, 'ledger_unavailable']]],
    ['cannot take a payment in', 'claim', false, [[503, 'ledger_unavailable']]],
    ['does not store the proof', 'settling', false, [[503, 'settlement_pending']]],
    ['stores the proof without saying so', 'settling', true, [[503, 'settlement_pending']]],
    ['does not remember the transaction', 'sent', false, [[200, undefined]]],
    ['does not store the answer', 'done', false, [[200, undefined]]],
    ['stores the answer without saying so', 'done', true, [[200, undefined]]],
  ] as const) {
    it(what, async () => {
      await survivesHere({ options: { ledger: { ...world.store, ...failing(name, done) } } }, expected)
    })
  }
})

describe('the clock', () => {
  for (const [what, off] of [
    ['5 minutes ahead', 300_000],
    ['5 minutes behind', -300_000],
  ] as const) {
    it(`${what}: 503 not_ready, nothing charged`, async () => {
      await world.mine()
      await survivesHere({ options: { now: () => Date.now() + off } }, [[503, 'not_ready']])
    })
  }
})

describe('the self-check', () => {
  it('a provider of another chain stops the sale until it is right again', async () => {
    world.payFaults.set('other-chain')
    const gateway = await world.open()
    const payment = await sign(payer)
    const refused = await buy(gateway.url, token, payment)
    assert.deepEqual([refused.status, refused.body.error], [503, 'not_ready'])
    const health = (await (await fetch(`${gateway.url}/health`)).json()) as {
      status: string
      checks: { chain: { ok: boolean } }
    }
    assert.deepEqual([health.status, health.checks.chain.ok], ['not_ready', false])
    await world.heal()
    await gateway.check()
    assert.equal((await buy(gateway.url, token, payment)).status, 200)
    await gateway.close()
  })

  it('wrong terms, and a signer that does other things, stop the sale; money on it does not', async () => {
    const used = { ...world.signer, address: world.facilitator.address }
    for (const options of [
      { terms: { ...world.terms, tokenVersion: '1' } },
      { terms: { ...world.terms, asset: `0x${'12'.repeat(20)}` } },
      { terms: { ...world.terms, price: 100_001n } },
      { terms: { ...world.terms, price: 0n } },
      { terms: { ...world.terms, payTo: world.signer.address } },
      { contract: `0x${'12'.repeat(20)}` },
      { keys: { active: () => used, published: () => [] } },
    ] satisfies Partial<GatewayOptions>[]) {
      const gateway = await world.open(options)
      assert.equal((await buy(gateway.url, token, await sign(payer))).body.error, 'not_ready', Object.keys(options)[0])
      await gateway.close()
    }
    await world.rpc('anvil_setBalance', [world.signer.address, '0x1'])
    const gateway = await world.open()
    assert.equal((await buy(gateway.url, token, await sign(payer))).status, 200)
    assert.equal(((await (await fetch(`${gateway.url}/health`)).json()) as { status: string }).status, 'degraded')
    await gateway.close()
  })
})
