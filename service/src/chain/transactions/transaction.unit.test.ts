import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RpcError, type RpcErrorKind } from '../rpc/answer.ts'
import { currentFees } from './transaction.ts'

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
