/**
 * Whatever fails at the provider of payments, the buyer is charged exactly when a proof is deliverable: no 402 where there is nothing to
 * mend, and after recovery the same header gives the proof for one charge (spec §4.8, §7).
 */
import { after, afterEach, before, describe, it } from 'node:test'
import { toHex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { startGatewayWorld, type GatewayWorld } from '../../support/payments/gateway.ts'
import { price } from '../../support/payments/buyer.ts'
import { survives, type Broken, type Expected } from '../../support/payments/survives.ts'
import type { Fault } from '../../support/fault-rpc.ts'

let world: GatewayWorld
let token: bigint
let payer: PrivateKeyAccount

before(async () => {
  world = await startGatewayWorld()
  token = await world.mint()
  payer = await world.payer(1_000n * price)
})
after(() => world?.end())
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
