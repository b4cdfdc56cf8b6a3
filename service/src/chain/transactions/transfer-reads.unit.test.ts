import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { decodeFunctionData, encodeFunctionResult, type Hex, zeroAddress } from 'viem'
import { chainId } from '../../domain/chain.ts'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { createTransferReads } from './transfer-reads.ts'

const contract: Hex = `0x${'12'.repeat(20)}`
const nowSeconds = 1_800_000_000

/** Reads an asset on a chain whose newest block is `age` seconds old by the clock of the service. */
async function timeAt(age: number, maxHeadAgeSeconds = 0): Promise<number> {
  const block = { number: '0x2f', hash: `0x${'ab'.repeat(32)}`, timestamp: `0x${(nowSeconds - age).toString(16)}` }
  const reads = createTransferReads({
    contract,
    chainId,
    maxHeadAgeSeconds,
    now: () => nowSeconds * 1_000 + 999,
    rpc: async (method, params) => {
      if (method === 'eth_getBlockByNumber') return block
      const [{ data }] = params as [{ data: Hex }]
      return decodeFunctionData({ abi, data }).functionName === 'getAsset'
        ? encodeFunctionResult({ abi, functionName: 'getAsset', result: [contract, 0n, 2, 0, 0] })
        : encodeFunctionResult({ abi, functionName: 'pendingTransfer', result: [zeroAddress, 0n, 0] })
    },
  })
  return Number((await reads.position(7n)).time) - nowSeconds
}

describe('the time of an asset’s position', () => {
  it('is that of the newest block, which may be ahead of the clock', async () => {
    assert.equal(await timeAt(2), -2)
    assert.equal(await timeAt(60), -60)
    assert.equal(await timeAt(-7_200), 7_200)
  })

  it('is a minute before the clock where the chain has had no block since', async () => {
    assert.equal(await timeAt(61), -60)
    assert.equal(await timeAt(86_400), -60)
  })

  it('is not known by a clock that is off, or on a chain that stands still', async () => {
    assert.equal(await timeAt(29, 30), -29)
    for (const age of [31, -31, 3_600]) await assert.rejects(timeAt(age, 30), { code: 'CHAIN_UNAVAILABLE' })
  })
})
