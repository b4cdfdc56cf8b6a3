import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { quantity, RpcError, type RpcErrorKind } from '../rpc/answer.ts'
import type { RpcClient } from '../rpc/client.ts'
import { currentFees, gasLimit, prepare, replacementFees } from './transaction.ts'

describe('the fees of a transaction', () => {
  const results: Record<string, unknown> = {
    eth_getBlockByNumber: { baseFeePerGas: '0x64' },
    eth_maxPriorityFeePerGas: '0x7',
    eth_gasPrice: '0x69',
  }

  /** Reads fees where the node answers the request for a tip with an error of this kind. */
  const feesWithout = (kind: RpcErrorKind, more: Record<string, unknown> = {}) =>
    currentFees(async (method) => {
      if (method === 'eth_maxPriorityFeePerGas') throw new RpcError(kind, 'error -32601: no such method', {})
      return { ...results, ...more }[method]
    })

  it('are the tip of the node, and twice the base fee beside it', async () => {
    assert.deepEqual(await currentFees(async (method) => results[method]), {
      maxFeePerGas: 207n,
      maxPriorityFeePerGas: 7n,
    })
  })

  it('have the tip within the gas price where the node suggests no tip', async () => {
    assert.deepEqual(await feesWithout('rejected'), { maxFeePerGas: 205n, maxPriorityFeePerGas: 5n })
    // The base fee rose between the two answers.
    const fees = await feesWithout('rejected', { eth_gasPrice: '0x60' })
    assert.deepEqual(fees, { maxFeePerGas: 200n, maxPriorityFeePerGas: 0n })
  })

  it('are unknown where the node fails', () => assert.rejects(feesWithout('fault'), { kind: 'fault' }))
})

describe('the fees of a replacement', () => {
  const feesOf = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) => ({ maxFeePerGas, maxPriorityFeePerGas })
  const before = feesOf(100n, 10n)

  it('are both an eighth higher than before, or those of the chain where these are higher', () => {
    assert.deepEqual(replacementFees(before, feesOf(100n, 11n)), feesOf(113n, 12n))
    assert.deepEqual(replacementFees(before, feesOf(101n, 9n)), feesOf(113n, 12n))
    assert.deepEqual(replacementFees(before, feesOf(400n, 40n)), feesOf(400n, 40n))
  })

  it('are none where the chain costs no more than before, or they would be above the limit', () => {
    assert.equal(replacementFees(before, before), undefined)
    assert.deepEqual(replacementFees(before, feesOf(101n, 10n), 113n), feesOf(113n, 12n))
    assert.equal(replacementFees(before, feesOf(101n, 10n), 112n), undefined)
  })
})

it('a transaction that uses more gas than one may is not signed', async () => {
  const answers: Record<string, unknown> = {
    eth_getBlockByNumber: { baseFeePerGas: '0x64' },
    eth_maxPriorityFeePerGas: '0x7',
    eth_getTransactionCount: '0x0',
    eth_getBalance: '0xffffffffff',
  }
  const prepared = (gas: bigint) => {
    const rpc: RpcClient = async (method) => answers[method] ?? quantity(gas)
    return prepare(rpc, { from: '0x12', to: '0x34', data: '0x' }, 300n)
  }
  // It gets a quarter more gas, and 10,000.
  const { ok, ...most } = await prepared(13_413_773n)
  assert.deepEqual([ok, 'gas' in most && most.gas], [true, gasLimit])
  const over = await prepared(13_413_774n)
  assert.equal(!over.ok && over.code, 'INVALID_REQUEST')
})
