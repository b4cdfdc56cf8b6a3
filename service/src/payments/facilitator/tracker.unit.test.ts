import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { one, trackerOf } from '../../../test/support/payments/tracker.ts'
import { until } from '../../../test/support/wait.ts'
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
      to: ofBase.to,
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

describe('a tracker', () => {
  it('reads every receipt, however many before it are malformed, and takes none of those for lost', async () => {
    const { tracker, track, looksAt, noted, counts, minedHashes, unread } = trackerOf({ isStill: true, againMs: 1 })
    await using _tracker = tracker
    counts.set(one, () => 255) // all are mined
    const tracked = Array.from({ length: 12 }, (_, nonce) => track(one, nonce))
    for (const [nonce, { raw }] of tracked.entries()) (nonce < 10 ? unread : minedHashes).add(raw)
    const [first, ...others] = tracked
    const readable = others.slice(9)
    assert.deepEqual(
      (await Promise.all(readable.map(({ found }) => found))).map((found) => found !== 'lost' && found.transaction),
      readable.map(({ raw }) => raw),
    )
    await until(() => looksAt(first?.raw ?? '0x') > 4)
    assert.deepEqual([noted.lost, noted.resigned, noted.gaps, noted.lines.length], [[], [], [], 1])
  })

  it('finds a receipt that the provider has later than its block, although no further block comes', async () => {
    const { tracker, track, looksAt, minedHashes } = trackerOf({ isStill: true, againMs: 1 })
    await using _tracker = tracker
    const { raw, found } = track(one, 4)
    await until(() => looksAt(raw) > 3)
    minedHashes.add(raw)
    assert.notEqual(await found, 'lost')
  })

  it('takes a transaction for lost where a transfer of nothing to the sender is in the block', async () => {
    const { tracker, track, noted, minedHashes } = trackerOf({ to: one.toUpperCase().replace('0X', '0x') })
    await using _tracker = tracker
    const { raw, found } = track(one, 4)
    minedHashes.add(raw)
    assert.deepEqual([await found, noted.lost], ['lost', []])
  })

  it('follows a transaction whose receipt could not be read at first', async () => {
    const { tracker, track, looksAt, minedHashes, unread } = trackerOf({ isStill: true, againMs: 1 })
    await using _tracker = tracker
    const tracked = [track(one, 3), track(one, 4)]
    for (const { raw } of tracked) {
      unread.add(raw)
      minedHashes.add(raw)
    }
    await until(() => tracked.every(({ raw }) => looksAt(raw) > 0))
    unread.clear()
    for (const { raw, found } of tracked) {
      const mined = await found
      assert.equal(mined !== 'lost' && mined.transaction, raw)
    }
  })
})

describe('a tracker whose transactions stay out', () => {
  const ofNext = String([one, 5])

  it('fills the next nonce where it follows none with it', async () => {
    const { tracker, track, timesSent, noted } = trackerOf()
    await using _tracker = tracker
    const { raw } = track(one, 6)
    await until(() => timesSent(raw) > 0)
    assert.deepEqual(new Set(noted.gaps.map(String)), new Set([ofNext]))
  })

  it('fills the next nonce although one before it has no receipt yet, and none for that one alone', async () => {
    const { tracker, track, timesSent, looksAt, noted } = trackerOf({ secondsPerBlock: 1n })
    await using _tracker = tracker
    const before = track(one, 4)
    await until(() => looksAt(before.raw) > 5)
    assert.deepEqual(noted.gaps, [])
    const { raw } = track(one, 6)
    await until(() => timesSent(raw) > 0)
    assert.deepEqual(new Set(noted.gaps.map(String)), new Set([ofNext]))
  })

  it('fills no nonce that it follows, although that one was sent again a block earlier or later', async () => {
    const { tracker, track, blocks, timesSent, noted } = trackerOf()
    await using _tracker = tracker
    const next = track(one, 5)
    await blocks(0n)
    const { raw } = track(one, 6)
    await until(() => timesSent(raw) > 1)
    assert.deepEqual([noted.gaps, timesSent(next.raw) > 0], [[], true])
  })

  it('gives one up whose nonce is used once its receipt was missing for a minute of the chain', async () => {
    const { tracker, track, looksAt, noted, minedAfter } = trackerOf({ secondsPerBlock: 2n })
    await using _tracker = tracker
    const [late, missing] = [track(one, 4), track(one, 3)]
    minedAfter.set(late.raw, 20)
    assert.notEqual(await late.found, 'lost')
    await until(() => noted.lost.length > 0)
    const looks = looksAt(missing.raw)
    assert.deepEqual([noted.lost, looks > 30, looks < 40], [[3n], true, true])
  })

  it('gives one up behind another ten minutes after it was followed, however long ago its payments expired', async () => {
    const { tracker, track, timesSent, noted } = trackerOf()
    await using _tracker = tracker
    track(one, 5)
    const { raw } = track(one, 6, { validBefore: 0n })
    await until(() => noted.lost.length > 0)
    assert.deepEqual([noted.lost, timesSent(raw)], [[6n], 3])
  })
})
