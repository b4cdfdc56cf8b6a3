import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { decodeFunctionData, encodeFunctionResult, type Hex, zeroAddress } from 'viem'
import { chainId } from '../../domain/chain.ts'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { RpcError } from '../rpc/answer.ts'
import { createTransferReads } from './transfer-reads.ts'

const contract: Hex = `0x${'12'.repeat(20)}`
const nowSeconds = 1_800_000_000

/** Makes reads of a chain with one asset, whose newest block is what `newest` returns. */
function readsOf(newest: () => object, options: Partial<Parameters<typeof createTransferReads>[0]> = {}) {
  return createTransferReads({
    contract,
    chainId,
    rpc: async (method, params = []) => {
      if (method === 'eth_getBlockByNumber') return newest()
      const { blockHash } = params.at(-1) as { blockHash?: Hex }
      if (blockHash === replaced.hash) throw new RpcError('non-canonical', 'error -32000: header not found', {})
      if (method === 'eth_getCode') return '0x'
      const [{ data }] = params as [{ data: Hex }]
      return decodeFunctionData({ abi, data }).functionName === 'getAsset'
        ? encodeFunctionResult({ abi, functionName: 'getAsset', result: [contract, 0n, 2, 0, 0] })
        : encodeFunctionResult({ abi, functionName: 'pendingTransfer', result: [zeroAddress, 0n, 0] })
    },
    ...options,
  })
}

const blockOf = (name: string, timestamp = nowSeconds) => ({
  number: '0x2f',
  hash: `0x${name.repeat(32)}`,
  timestamp: `0x${timestamp.toString(16)}`,
})
/** Its place is taken by another block of the same number. */
const replaced = blockOf('aa')

/** Reads an asset on a chain whose newest block is `age` seconds old by the clock of the service. */
async function timeAt(age: number, maxHeadAgeSeconds = 0): Promise<number> {
  const newest = () => blockOf('ab', nowSeconds - age)
  const reads = readsOf(newest, { maxHeadAgeSeconds, now: () => nowSeconds * 1_000 + 999 })
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

describe('an asset at a block that a reorganisation has replaced', () => {
  const never = readsOf(() => replaced)

  it('is read at the next newest block, and never at another one of that number', async () => {
    const newest = [replaced, blockOf('bb')]
    const { block } = await readsOf(() => newest.shift() ?? assert.fail()).position(7n)
    assert.equal(block.hash, blockOf('bb').hash)
    await assert.rejects(never.position(7n), { code: 'CHAIN_UNAVAILABLE' })
  })

  it('has no answer to a signature there', async () => {
    const signable = { type: 'InvalidateNonce', message: { tokenId: 7n, owner: contract, nonce: 0 } } as const
    const block = { number: 0x2fn, hash: replaced.hash as Hex, timestamp: 0n }
    await assert.rejects(never.isSignedBy({ signer: contract, signable, signature: '0x12' }, { block }), {
      code: 'CHAIN_UNAVAILABLE',
    })
  })
})

describe('the signature of an account with code', () => {
  const signable = { type: 'InvalidateNonce', message: { tokenId: 7n, owner: contract, nonce: 0 } } as const
  const signer: Hex = `0x${'34'.repeat(20)}`
  const magic = '0x1626ba7e'

  /** Returns whether a wallet signed that answers so, with what it was asked. */
  async function answered(answer: string | RpcError) {
    let asked: unknown
    const { isSignedBy } = readsOf(() => blockOf('ab'), {
      rpc: async (method, [call] = []) => {
        if (method === 'eth_getCode') return '0x60'
        asked = call
        if (typeof answer !== 'string') throw answer
        return answer
      },
    })
    const block = { number: 1n, hash: blockOf('ab').hash as Hex, timestamp: 0n }
    return { isSigned: await isSignedBy({ signer, signable, signature: '0x12' }, { block }), asked }
  }

  it('is its answer to the contract, a word that begins with the magic value and is else empty', async () => {
    const word = magic.padEnd(66, '0')
    for (const [answer, isSigned] of [
      [word, true],
      [`${word}${'ff'.repeat(32)}`, true],
      [magic, false],
      [magic.padEnd(66, '1'), false],
      [`0x${magic.slice(2).padStart(64, '0')}`, false],
      ['0x', false],
    ] as const)
      assert.equal((await answered(answer)).isSigned, isSigned, answer)
    const { from, to, gas } = (await answered(word)).asked as Record<string, unknown>
    assert.deepEqual([from, to, gas], [contract, signer, '0x4c4b40'])
  })

  it('is none where the wallet fails, and unknown where the provider does', async () => {
    assert.equal((await answered(new RpcError('reverted', 'error 3: execution reverted', {}))).isSigned, false)
    assert.equal((await answered(new RpcError('fault', 'error -32000: invalid opcode', {}))).isSigned, false)
    for (const error of [
      new RpcError('fault', 'no answer in time'),
      new RpcError('busy', 'error -32005: gas limit exceeded', {}),
    ])
      await assert.rejects(answered(error), { code: 'CHAIN_UNAVAILABLE' })
  })
})
