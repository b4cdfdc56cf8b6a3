/** Accounts that take turns to pay for settlements, and what a settlement asks the provider (spec §4.8). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import { buySettled, sign } from '../../support/payments/buyer.ts'
import { openSale } from '../../support/payments/gateway.ts'

const { world, token, payer } = await openSale()

describe('several keys', () => {
  const facilitatorOf = (...accounts: PrivateKeyAccount[]) => ({ facilitator: { accounts, walletFactories: [] } })
  const countOf = async ({ address }: PrivateKeyAccount) =>
    Number(await world.rpc('eth_getTransactionCount', [address, 'latest']))

  it('take turns', async () => {
    const second = privateKeyToAccount(generatePrivateKey())
    await world.rpc('anvil_setBalance', [second.address, toHex(10n ** 18n)])
    await using gateway = await world.open(facilitatorOf(world.facilitator, second))
    const before = await world.transactions()
    for (let sale = 0; sale < 4; sale += 1)
      assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    assert.deepEqual([(await world.transactions()) - before, await countOf(second)], [2, 2])
  })

  it('sell while one of them has no ether', async () => {
    const empty = privateKeyToAccount(generatePrivateKey())
    await using gateway = await world.open(facilitatorOf(empty, world.facilitator))
    for (let sale = 0; sale < 2; sale += 1)
      assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    assert.equal(await countOf(empty), 0)
    assert.equal((await gateway.metrics()).refused['payment_unavailable'], undefined)
  })
})

describe('the provider', () => {
  it('is never asked for its pending count, which nodes make in different ways', async () => {
    const asked: unknown[] = []
    const rpc: RpcClient = (method, params, more) => {
      if (method === 'eth_getTransactionCount') asked.push(params?.[1])
      return world.provider(method, params, more)
    }
    await using gateway = await world.open({ rpc })
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    assert.deepEqual(new Set(asked), new Set(['latest']))
  })

  it('is asked nothing while nothing is sold, and once for each recent block by a check of reorganisations', async () => {
    let calls = 0
    const rpc: RpcClient = (...call) => {
      calls += 1
      return world.provider(...call)
    }
    await world.ageSettled()
    await using gateway = await world.open({ rpc })
    calls = 0
    for (let pass = 0; pass < 3; pass += 1) await gateway.reconcile()
    assert.equal(calls, 0)
    assert.equal((await buySettled(gateway.url, token, await sign(payer))).status, 200)
    calls = 0
    await gateway.reconcile()
    assert.equal(calls, 1)
  })
})
