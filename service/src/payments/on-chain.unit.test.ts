/** The search for the transfer of a payment on a long chain (spec §4.8). Providers serve the logs of 2,000 blocks at once. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encodeEventTopics, pad, toHex } from 'viem/utils'
import type { RpcClient } from '../chain/rpc/client.ts'
import { encodeWord } from '../lib/words.ts'
import { createPaymentChain, tokenAbi } from './on-chain.ts'

const [asset, from, to] = [1n, 2n, 3n].map((number) => toHex(number, { size: 20 })) as [
  `0x${string}`,
  ...`0x${string}`[],
]
const nonce = toHex(4n, { size: 32 })
const payment = { from: from ?? asset, to: to ?? asset, value: 10_000n, validAfter: 0n, validBefore: 2n ** 40n, nonce }
const [head, came] = [30_000_000n, 29_995_500n]
const [transaction, hash] = [5n, 6n].map((number) => toHex(number, { size: 32 }))

/** Returns the status of a payment that was used in this block, and the ranges of blocks asked for. */
async function search(block: bigint) {
  const asked: bigint[][] = []
  const place = { address: asset, transactionHash: transaction, blockHash: hash }
  const [used] = encodeEventTopics({ abi: tokenAbi, eventName: 'AuthorizationUsed' })
  const [moved] = encodeEventTopics({ abi: tokenAbi, eventName: 'Transfer' })
  const [payer, payee] = [payment.from, payment.to].map((account) => pad(account))
  const logs = [
    { ...place, topics: [used, payer, nonce], data: '0x', logIndex: '0x0' },
    { ...place, topics: [moved, payer, payee], data: `0x${encodeWord(payment.value)}`, logIndex: '0x1' },
  ]
  const answers: Readonly<Record<string, (given: never) => unknown>> = {
    eth_getBlockByNumber: () => ({ number: toHex(head), hash, timestamp: '0x1', baseFeePerGas: '0x1' }),
    eth_call: () => `0x${encodeWord(1n)}`,
    eth_getLogs: ({ fromBlock, toBlock }: Record<'fromBlock' | 'toBlock', `0x${string}`>) => {
      const range = [BigInt(fromBlock), BigInt(toBlock)] as const
      asked.push([...range])
      return range[0] <= block && block <= range[1] ? logs : []
    },
    eth_getTransactionReceipt: () => ({ blockHash: hash, blockNumber: toHex(block), logs }),
  }
  const rpc: RpcClient = async (method, params = []) => answers[method]?.(params[0] as never)
  const chain = createPaymentChain({ rpc, asset })
  const status = await chain.transferStatus({ ...payment, signature: '0x' }, came)
  return [status.kind, asked]
}

describe('the transfer of a payment on a long chain', () => {
  const later = [0n, 2_000n, 4_000n].map((start) => {
    const end = came + start + 1_999n
    return [came + start, end < head ? end : head]
  })
  const earlier = [came - 2_000n, came - 1n]
  for (const [what, block, kind, ranges] of [
    ['is found in the block of the head when the payment came', came, 'paid', later.slice(0, 1)],
    ['is found in the newest block, by ranges without a gap', head, 'paid', later],
    ['is found where it is just before', came - 1n, 'earlier', [...later, earlier]],
    ['is found 2,000 blocks before', came - 2_000n, 'earlier', [...later, earlier]],
    ['is unknown further back', came - 2_001n, 'unknown', [...later, earlier]],
  ] as const)
    it(what, async () => assert.deepEqual(await search(block), [kind, ranges]))
})
