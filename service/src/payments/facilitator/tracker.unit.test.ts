import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseReceipt } from './tracker.ts'

const hash = `0x${'c4'.repeat(32)}` as const
/** A receipt as op-geth writes it on Base (Isthmus); a node of Ethereum leaves out all fields from `l1BaseFeeScalar` on. */
const ofBase = {
  type: '0x2',
  status: '0x1',
  cumulativeGasUsed: '0x1b7740',
  logs: [],
  logsBloom: `0x${'00'.repeat(256)}`,
  transactionHash: hash,
  transactionIndex: '0x9',
  contractAddress: null,
  from: `0x${'a1'.repeat(20)}`,
  to: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
  gasUsed: '0x14ff8',
  effectiveGasPrice: '0xf4312',
  blockHash: `0x${'b1'.repeat(32)}`,
  blockNumber: '0x1f2d3c4',
  l1BaseFeeScalar: '0x44d',
  l1BlobBaseFee: '0x1',
  l1BlobBaseFeeScalar: '0xa118b',
  l1Fee: '0x6f5e2c1a4',
  l1GasPrice: '0x3b9aca0f',
  l1GasUsed: '0x84a',
  operatorFeeScalar: '0x0',
  operatorFeeConstant: '0x0',
} as const

describe('a receipt', () => {
  it('has the data fee of an OP-stack chain beside the gas', () => {
    assert.deepEqual(parseReceipt(hash, ofBase), {
      transaction: hash,
      ok: true,
      logs: [],
      gasUsed: 86_008n,
      gasPrice: 1_000_210n,
      l1Fee: 29_895_082_404n,
      block: { number: 32_691_140n, hash: ofBase.blockHash },
    })
  })

  it('has none on a chain without one, such as anvil', () => {
    const { l1Fee: _, ...plain } = ofBase
    assert.equal(parseReceipt(hash, plain)?.l1Fee, 0n)
    assert.equal(parseReceipt(hash, { ...plain, l1Fee: null })?.l1Fee, 0n)
    assert.equal(parseReceipt(hash, null), null)
    assert.throws(() => parseReceipt(hash, { ...plain, l1Fee: 'free' }), /no quantity/)
  })
})
