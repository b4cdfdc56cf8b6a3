import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { IndexStore } from '../../domain/chain-index.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { createLog } from '../../lib/log.ts'
import { encodeWord } from '../../lib/words.ts'
import type { Block } from '../rpc/block.ts'
import type { RetryingSource } from './retrying-source.ts'
import { createSync } from './sync.ts'

const blockOf = (hash: bigint): Block => ({
  number: 7n,
  hash: `0x${encodeWord(hash)}`,
  parentHash: `0x${encodeWord(0n)}`,
  timestamp: 1n,
  header: {},
})
const [own, foreign] = [blockOf(1n), blockOf(2n)]
const cursor = { number: own.number, hash: own.hash, time: own.timestamp }

/** Steps to a head beside which no kept block is known. `found` is read once the provider was asked for its chain. */
async function stepTo(found: () => Block) {
  let isDoubted = false
  let cleared = 0
  const source = {
    head: () => Promise.resolve(foreign),
    blocksAt: () => Promise.resolve([isDoubted ? found() : foreign]),
    doubtChain: () => (isDoubted = true),
  }
  const store = {
    kept: (below: bigint) => Promise.resolve(below < own.number ? [] : [own]),
    clear: () => Promise.resolve(++cleared === 1),
  }
  const unused = () => assert.fail('not used here')
  const sync = createSync(
    {
      source: source as unknown as RetryingSource,
      store: store as unknown as IndexStore,
      backfill: { ranges: unused },
      readBlocks: unused,
      startBlock: 0n,
      confirmations: 0n,
      seen: { head: null, rewound: null },
      onMove: unused,
      isOver: () => false,
      now: () => 0,
      log: createLog(() => {}, 'silent'),
    },
    { epoch: 1n, cursor },
  )
  const outcome = await sync.step().catch((error: unknown) => error)
  return { outcome, cleared }
}

describe('an index of which no block is on the chain any more', () => {
  it('is kept where the provider serves another chain', async () => {
    const fault = chainUnavailable('eth_chainId is another chain')
    const step = await stepTo(() => {
      throw fault
    })
    assert.deepEqual(step, { outcome: fault, cleared: 0 })
  })

  it('is kept where a provider of the right chain has one of its blocks', async () => {
    const { outcome, cleared } = await stepTo(() => own)
    assert.ok(outcome instanceof Error)
    assert.equal(cleared, 0)
  })

  it('is rebuilt where the chain is the right one', async () => {
    assert.deepEqual(await stepTo(() => foreign), { outcome: 'superseded', cleared: 1 })
  })
})

describe('an index that is far behind', () => {
  it('asks a provider that fails at the finalized block once a minute, not at every step', async () => {
    let asked = 0
    const at = (number: bigint): Block => ({ ...own, number, hash: `0x${encodeWord(number)}` })
    const source = {
      head: () => Promise.resolve(at(1_000n)),
      finalized: () => {
        asked += 1
        return Promise.reject(chainUnavailable('no answer in time'))
      },
    }
    const sync = createSync(
      {
        source: source as unknown as RetryingSource,
        store: { apply: () => Promise.resolve(true) } as unknown as IndexStore,
        backfill: { ranges: () => assert.fail('nothing is known to be final') },
        readBlocks: ({ number }) => Promise.resolve({ blocks: [], events: [], to: at(number + 64n) }),
        startBlock: 0n,
        confirmations: 0n,
        seen: { head: null, rewound: null },
        onMove: () => {},
        isOver: () => false,
        now: () => 0,
        log: createLog(() => {}, 'silent'),
      },
      { epoch: 1n, cursor },
    )
    for (let step = 0; step < 5; step += 1) assert.equal(await sync.step(), 'more to do')
    assert.deepEqual([asked, sync.cursor().number], [1, 7n + 5n * 64n])
  })
})
