/**
 * `CHAIN_RPC_URLS` names two providers, and either may fail (spec §2.5). Writes, claims, transfer reads and payments go on with the other,
 * and no 402 is sent while no payment can be taken (spec §4.8).
 */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { registryDigest } from '../../../src/chain/transactions/typed-data.ts'
import { installTestMoney, moneyAccounts } from '../../../src/chain/devchain/test-money.ts'
import { publishedAddresses, publishedKey } from '../../../src/domain/published-accounts.ts'
import type { Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type FaultName, type FaultRpc, startFaultRpc } from '../../support/fault-rpc.ts'
import { codeOf } from '../../support/index/writer-world.ts'
import { eventually } from '../../support/wait.ts'
import { noMetadata, startWorld, type World } from '../../support/world.ts'
import { buySettled, payTo, sign } from '../../support/payments/buyer.ts'

const [owner] = publishedAddresses as [Hex]
const payer = privateKeyToAccount(generatePrivateKey())

describe('a service with two providers', () => {
  let world: World
  let providers: readonly FaultRpc[]
  let count = 0
  before(async () => {
    world = await startWorld({
      env: {
        PAYMENT_PAY_TO: payTo,
        FACILITATOR_KEY: publishedKey(moneyAccounts.facilitator),
      },
      async rpcUrl(target) {
        await installTestMoney({ rpcUrl: target, fund: [{ address: payer.address, amount: 1_000_000n }] })
        providers = await Promise.all([startFaultRpc({ target }), startFaultRpc({ target })])
        return providers.map(({ url }) => url).join(',')
      },
    })
  })
  beforeEach(() => providers.forEach((provider) => provider.set('none')))
  after(async () => {
    await world?.end()
    for (const provider of providers ?? []) await provider.close()
  })

  const mint = () =>
    world.components.writer.write(
      { kind: 'mint', to: owner, metadataHash: noMetadata },
      { idempotencyKey: `failover-${(count += 1)}` },
    )
  const unpaid = () =>
    fetch(`${world.urls.gateway}/verify`, { method: 'POST', body: '{"assetId":"1","chain":"base-sepolia"}' })

  async function asksAll(): Promise<void> {
    const { writer, transferReads } = world.components
    const tokenId = await world.mint()
    const position = await transferReads.position(tokenId)
    assert.deepEqual([position.record.state, position.record.owner], [1, owner.toLowerCase()])
    const claim = { tokenId, tagHash: undefined, claimant: owner, tapCounter: 1, deadline: 4_000_000_000n }
    assert.ok((await writer.attestClaim(claim)).ok)
    const account = privateKeyToAccount(publishedKey(0))
    const signable = { type: 'ClaimConsent', message: { tokenId, claimant: owner, nonce: 0, deadline: 1n } } as const
    const signature = await account.sign({ hash: registryDigest(transferReads.domain, signable) })
    assert.ok(await transferReads.isSignedBy({ signer: owner, signable, signature }, position))
    assert.equal((await unpaid()).status, 402)
    assert.equal((await buySettled(world.urls.gateway, 1n, await sign(payer))).status, 200)
  }

  for (const fault of ['die', 'hang', 'other-chain', 'rpc-error'] satisfies FaultName[]) {
    it(`writes, claims, reads transfers and sells while the first shows ${fault}`, { timeout: 240_000 }, async () => {
      providers[0]?.set(fault)
      await asksAll()
    })
  }

  it('executes 35 of 35 writes, and a sale, while 30 % of all answers fail', { timeout: 240_000 }, async () => {
    const supply = await world.mint()
    const { faults } = world.components.chainClients.writes.stats()
    const [first, second] = providers as [FaultRpc, FaultRpc]
    let asked = 0
    const when = () => [2, 5, 7].includes((asked = (asked * 7 + 3) % 10_007) % 10)
    first.set({ name: 'die', when })
    second.set({ name: 'garbage', when })
    const results = await Promise.all(Array.from({ length: 35 }, mint))
    assert.deepEqual(
      results.map(codeOf),
      results.map(() => 'CONFIRMED'),
    )
    assert.ok(world.components.chainClients.writes.stats().faults > faults, 'the metrics count them')
    assert.equal((await buySettled(world.urls.gateway, 1n, await sign(payer))).status, 200)
    providers.forEach((provider) => provider.set('none'))
    assert.equal(await world.mint(), supply + 36n, 'each was minted once')
  })

  it('executes 50 writes at once, asking for eight at a time, so that none misses a deadline', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    for (const provider of providers) provider.set({ methods: ['eth_estimateGas'], held })
    const [first] = providers as [FaultRpc]
    const before_ = first.count('eth_estimateGas')
    const writes = Promise.all(Array.from({ length: 50 }, mint))
    assert.ok(await eventually(() => first.count('eth_estimateGas') >= before_ + 8))
    await world.components.transferReads.position(1n)
    assert.equal(first.count('eth_estimateGas'), before_ + 8)
    release()
    assert.ok((await writes).every((result) => codeOf(result) === 'CONFIRMED'))
  })

  it('sends a signed transaction to both', async () => {
    const missing = providers.map((provider) => provider.count('eth_sendRawTransaction') + 1)
    await world.mint()
    assert.ok(
      await eventually(() =>
        providers.every((provider, n) => provider.count('eth_sendRawTransaction') >= (missing[n] ?? 0)),
      ),
    )
  })

  it(
    'offers no payment while none can be taken: 503 with Retry-After, then 402 again',
    { timeout: 240_000 },
    async () => {
      for (const provider of providers) provider.set('die')
      const away = await until(unpaid, 503)
      assert.equal(((await away.json()) as { error: string }).error, 'payment_unavailable')
      assert.ok(Number(away.headers.get('retry-after')) > 0)
      for (const provider of providers) provider.set('none')
      await until(unpaid, 402)
    },
  )

  async function until(ask: () => Promise<Response>, status: number): Promise<Response> {
    for (;;) {
      const answer = await ask()
      if (answer.status === status) return answer
      await answer.arrayBuffer()
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
})
