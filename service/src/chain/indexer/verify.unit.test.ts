import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toEventSelector } from 'viem/utils'
import type { TokenPages } from '../../domain/chain-index.ts'
import { type ChainLog, parseEvents } from '../../domain/registry-event.ts'
import { isChainUnavailable } from '../../lib/errors.ts'
import { encodeWord } from '../../lib/words.ts'
import type { Block } from '../rpc/block.ts'
import type { RetryingSource } from './retrying-source.ts'
import { verifyIndex } from './verify.ts'

/** The block at which the other branch begins. */
const fork = 70n
type Branch = 'own' | 'other'

const blockOf = (branch: Branch, number: bigint): Block => ({
  number,
  hash: `0x${encodeWord(branch === 'other' && number >= fork ? number + 1_000n : number)}`,
  parentHash: `0x${encodeWord(0n)}`,
  timestamp: number,
  header: {},
})

/** The log by which token 7 gets the metadata hash 1, on the other branch 2. */
const logOf = (branch: Branch): ChainLog => ({
  address: '0x',
  topics: [toEventSelector('MetadataHashSet(uint256,bytes32)'), `0x${encodeWord(7n)}`],
  data: `0x${encodeWord(branch === 'own' ? 1n : 2n)}`,
  blockNumber: 80n,
  blockHash: blockOf(branch, 80n).hash,
  logIndex: 0,
  transactionHash: `0x${encodeWord(0n)}`,
  blockTimestamp: 80n,
})
const stored = parseEvents([logOf('own')], () => 80n)

const at = { number: 600n, hash: blockOf('own', 600n).hash }

/** Compares the events in three ranges, from the blocks 0, 64 and 576. `branchOf` returns the branch of which a range is read. */
function compare(branchOf: (from: bigint) => Branch, events = stored) {
  let branch: Branch = 'own'
  const within = <E extends { blockNumber: bigint }>(all: readonly E[], from: bigint, to: bigint) =>
    all.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to)
  const source = {
    block: () => Promise.resolve(blockOf('own', at.number)),
    call: () => Promise.resolve(`0x${encodeWord(0n)}`),
    logsBetween(from: bigint, to: bigint) {
      branch = branchOf(from)
      return Promise.resolve(within([logOf(branch)], from, to))
    },
    blocksAt(numbers: readonly bigint[]) {
      const blocks = numbers.map((number) => blockOf(branch, number))
      branch = 'own'
      return Promise.resolve(blocks)
    },
  }
  const pages: TokenPages = {
    after: () => Promise.resolve({ at, products: 0n, tokens: [] }),
    sample: () => assert.fail('not used here'),
    events: (from, to) => Promise.resolve(within(events, from, to)),
    missing: () => Promise.resolve([]),
  }
  return verifyIndex({
    source: source as unknown as RetryingSource,
    contract: '0x',
    interface: 'registry',
    pages,
    startBlock: 0n,
  })
}

describe('the comparison of the stored events with the chain', () => {
  it('finds an event that the index lacks', async () => {
    const found = await compare(() => 'own', [])
    assert.deepEqual(found?.repair, { at, lost: stored, forged: [], tokens: ['7'] })
    assert.equal((await compare(() => 'own'))?.repair, null)
  })

  it('repairs nothing by the events of a branch that a reorganisation dropped meanwhile', async () => {
    for (const ranges of [[64n], [64n, 576n]])
      await assert.rejects(
        compare((from) => (ranges.includes(from) ? 'other' : 'own')),
        (error) => isChainUnavailable(error) && String(error.cause).includes('reorganised'),
      )
  })
})
