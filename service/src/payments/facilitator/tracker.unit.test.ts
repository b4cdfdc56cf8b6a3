import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Hex, toHex } from 'viem'
import { until } from '../../../test/support/wait.ts'
import { createLog } from '../../lib/log.ts'
import { createTracker, parseReceipt } from './tracker.ts'

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

/** Nothing counts as stuck, so that no receipt is found because of it. */
const pauses = { pollMs: 1, failedMs: 1, againMs: 1, stuckMs: Infinity }
const fees = { maxFeePerGas: 3n, maxPriorityFeePerGas: 1n }

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
  const hashOf = (pk: number) => `0x${pk.toString(16).padStart(64, '0')}` as const
  const head = { number: 32_691_140n, hash: ofBase.blockHash, timestamp: 1_800_000_000n, baseFee: 1n } as const

  /** Follows transactions 1 to `count` of one sender. A receipt is malformed unless `isRead`, and not there yet where that is null. */
  function trackerOf(count: number, isRead: (pk: number) => boolean | null, to: string = ofBase.to) {
    const looks = new Map<string, number>()
    const lost: bigint[] = []
    const lines: string[] = []
    const tracker = createTracker({
      rpc: async (method, [hash] = []) => {
        if (method === 'eth_getTransactionCount') return '0xff' // all are mined
        looks.set(String(hash), (looks.get(String(hash)) ?? 0) + 1)
        const read = isRead(Number(hash))
        return read === null ? null : read ? { ...ofBase, to } : { ...ofBase, gasUsed: 'much' }
      },
      heads: { head: async () => head, fees: async () => fees },
      slots: {
        mined: async () => {},
        lost: async ({ pk }: { pk: bigint }) => void lost.push(pk),
        release: async () => {},
      } as unknown as Parameters<typeof createTracker>[0]['slots'],
      resign: async () => assert.fail('nothing is sent again'),
      fillGap: async () => assert.fail('no nonce is free'),
      send: async () => {},
      log: createLog((line) => lines.push(line)),
      pauses,
    })
    const sender = `0x${'a1'.repeat(20)}` as const
    const tracked = Array.from({ length: count }, (_, index) => {
      const slot = { pk: BigInt(index + 1), sender, nonce: index, raw: '0x', hashes: [hashOf(index + 1)] } as const
      return tracker.track({ slot, validBefore: 2_000_000_000n })
    })
    return { tracker, tracked, lost, lines, looksAt: (pk: number) => looks.get(hashOf(pk)) ?? 0 }
  }

  it('reads every receipt, however many before it are malformed, and takes none of those for lost', async () => {
    const { tracker, tracked, lost, lines, looksAt } = trackerOf(12, (pk) => pk > 10)
    await using _tracker = tracker
    assert.deepEqual(
      (await Promise.all(tracked.slice(10))).map((found) => found !== 'lost' && found.transaction),
      [hashOf(11), hashOf(12)],
    )
    await until(() => looksAt(1) > 4)
    assert.deepEqual([lost, lines.length], [[], 1])
  })

  it('finds a receipt that the provider has later than its block, although no further block comes', async () => {
    let looks = 0
    const { tracker, tracked } = trackerOf(1, () => ((looks += 1) < 5 ? null : true))
    await using _tracker = tracker
    assert.equal((await tracked[0]) !== 'lost', true)
  })

  it('takes a transaction for lost where a transfer of nothing to the sender is in the block', async () => {
    const { tracker, tracked, lost } = trackerOf(1, () => true, ofBase.from.toUpperCase().replace('0X', '0x'))
    await using _tracker = tracker
    assert.deepEqual([await Promise.all(tracked), lost], [['lost'], []])
  })

  it('follows a transaction whose receipt could not be read at first', async () => {
    const first = new Set([1, 2])
    const { tracker, tracked } = trackerOf(2, (pk) => !first.delete(pk))
    await using _tracker = tracker
    const found = await Promise.all(tracked)
    assert.deepEqual(
      found.map((one) => one !== 'lost' && one.transaction),
      [hashOf(1), hashOf(2)],
    )
  })
})

describe('a tracker whose transactions stay out', () => {
  const sender = `0x${'a1'.repeat(20)}` as const
  const raw = (nonce: number) => `0x0${nonce}` as const

  /** Follows transactions of a sender whose next nonce is 5. Each look finds a new block, so many seconds after the one before. */
  function trackerOf({ secondsPerBlock = 60n } = {}) {
    let number = 1_000n
    const looks = new Map<unknown, number>()
    const minedAfter = new Map<unknown, number>()
    const gaps: number[] = []
    const lost: number[] = []
    const sent: Hex[] = []
    const tracker = createTracker({
      rpc: async (method, [hash] = []) => {
        if (method === 'eth_getTransactionCount') return '0x5'
        looks.set(hash, (looks.get(hash) ?? 0) + 1)
        return (looks.get(hash) ?? 0) > (minedAfter.get(hash) ?? Infinity) ? ofBase : null
      },
      heads: {
        head: async () => {
          number += 1n
          return { number, hash: toHex(number), timestamp: secondsPerBlock * number, baseFee: 1n }
        },
        fees: async () => fees,
      },
      slots: {
        lost: async ({ nonce }: { nonce: number }) => void lost.push(nonce),
        mined: async () => {},
        release: async () => {},
      } as unknown as Parameters<typeof createTracker>[0]['slots'],
      resign: async () => undefined,
      fillGap: async (_, count) => void gaps.push(count),
      send: async (transaction) => void sent.push(transaction),
      log: createLog(() => {}),
      pauses,
    })
    const track = (nonce: number, { validBefore = 2n ** 63n, minedAfter: after = Infinity } = {}) => {
      const slot = { pk: BigInt(nonce), sender, nonce, raw: raw(nonce), hashes: [raw(nonce)] }
      minedAfter.set(raw(nonce), after)
      return tracker.track({ slot, validBefore })
    }
    const follow = (...args: Parameters<typeof track>) => void track(...args).catch(() => {})
    const timesSent = (nonce: number) => sent.filter((transaction) => transaction === raw(nonce)).length
    const looksAt = (nonce: number) => looks.get(raw(nonce)) ?? 0
    return { tracker, track, follow, gaps, lost, timesSent, looksAt, block: () => number }
  }

  it('fills the next nonce where it follows none with it', async () => {
    const { tracker, follow, gaps, timesSent } = trackerOf()
    await using _tracker = tracker
    follow(6)
    await until(() => timesSent(6) > 0)
    assert.deepEqual(new Set(gaps), new Set([5]))
  })

  it('fills the next nonce although one before it has no receipt yet, and none for that one alone', async () => {
    const { tracker, follow, gaps, timesSent, looksAt } = trackerOf({ secondsPerBlock: 1n })
    await using _tracker = tracker
    follow(4)
    await until(() => looksAt(4) > 5)
    assert.deepEqual(gaps, [])
    follow(6)
    await until(() => timesSent(6) > 0)
    assert.deepEqual(new Set(gaps), new Set([5]))
  })

  it('fills no nonce that it follows, although that one was sent again a block earlier or later', async () => {
    const { tracker, follow, gaps, timesSent, block } = trackerOf()
    await using _tracker = tracker
    const first = block()
    follow(5)
    await until(() => block() > first)
    follow(6)
    await until(() => timesSent(6) > 1)
    assert.deepEqual([gaps, timesSent(5) > 0], [[], true])
  })

  it('gives one up whose nonce is used once its receipt was missing for a minute of the chain', async () => {
    const { tracker, track, follow, lost, looksAt } = trackerOf({ secondsPerBlock: 2n })
    await using _tracker = tracker
    const found = track(4, { minedAfter: 20 })
    follow(3)
    assert.notEqual(await found, 'lost')
    await until(() => lost.length > 0)
    assert.deepEqual([lost, looksAt(3) > 30, looksAt(3) < 40], [[3], true, true])
  })

  it('gives one up behind another ten minutes after it was followed, however long ago its payments expired', async () => {
    const { tracker, follow, lost, timesSent } = trackerOf()
    await using _tracker = tracker
    follow(5)
    follow(6, { validBefore: 0n })
    await until(() => lost.length > 0)
    assert.deepEqual([lost, timesSent(6)], [[6], 3])
  })
})
