import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BlockId } from '../../domain/chain.ts'
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

/** A sync over blocks by number, and the steps that it writes. */
function syncOver(
  chain: { head: Block; kept: readonly Block[] },
  more: Partial<Parameters<typeof createSync>[0]> = {},
) {
  const applied: [rewindTo: bigint | null, to: bigint][] = []
  const repaired: [epoch: bigint, at: bigint][] = []
  const on = [...chain.kept, chain.head]
  const source = {
    head: () => Promise.resolve(chain.head),
    finalized: () => Promise.resolve(chain.head.number),
    blocksAt: (numbers: readonly bigint[]) =>
      Promise.resolve(numbers.map((number) => on.find((block) => block.number === number) ?? null)),
  }
  const store = {
    kept: (below: bigint) => Promise.resolve(chain.kept.filter(({ number }) => number <= below).toReversed()),
    apply: ({ rewindTo, to }: { rewindTo: bigint | null; to: { number: bigint } }) => {
      applied.push([rewindTo, to.number])
      return Promise.resolve(true)
    },
    arrive: () => Promise.resolve(true),
    repair: (epoch: bigint, { at }: { at: BlockId }) => Promise.resolve(repaired.push([epoch, at.number]) > 0),
  }
  const sync = createSync(
    {
      source: source as unknown as RetryingSource,
      store: store as unknown as IndexStore,
      backfill: { ranges: () => assert.fail('not used here') },
      readBlocks: (_after, to) => Promise.resolve({ blocks: [to], events: [], to }),
      startBlock: 0n,
      confirmations: 0n,
      seen: { head: null, rewound: null },
      onMove: () => {},
      isOver: () => false,
      now: () => 0,
      log: createLog(() => {}, 'silent'),
      ...more,
    },
    { epoch: 1n, cursor },
  )
  return { sync, applied, repaired }
}
const numbered = (number: bigint): Block => ({ ...own, number, hash: `0x${encodeWord(number)}` })

describe('an index that is far behind', () => {
  it('asks a provider that fails at the finalized block once a minute, not at every step', async () => {
    let asked = 0
    const head = numbered(1_000n)
    const source = {
      head: () => Promise.resolve(head),
      finalized: () => {
        asked += 1
        return Promise.reject(chainUnavailable('no answer in time'))
      },
    }
    const { sync } = syncOver(
      { head, kept: [] },
      {
        source: source as unknown as RetryingSource,
        readBlocks: ({ number }) => Promise.resolve({ blocks: [], events: [], to: numbered(number + 64n) }),
      },
    )
    for (let step = 0; step < 5; step += 1) assert.equal(await sync.step(), 'more to do')
    assert.deepEqual([asked, sync.cursor().number], [1, 7n + 5n * 64n])
  })
})

describe('an index above the head of its chain', () => {
  it('goes back to the head once that has stayed lower for longer than a provider lags', async (t) => {
    const below = numbered(5n)
    const { sync, applied } = syncOver({ head: below, kept: [numbered(4n), below] })
    let now = 0
    t.mock.method(performance, 'now', () => now)
    assert.deepEqual([await sync.step(), applied], ['at head', []])
    now = 15_000
    assert.equal(await sync.step(), 'more to do')
    assert.deepEqual([applied, sync.cursor().number], [[[5n, 5n]], 5n])
    assert.equal(await sync.step(), 'at head')
  })
})

describe('an index that reads a range of old blocks', () => {
  it('writes none of it after another block than its own, and goes back to the last one that both have', async () => {
    const [head, ancestor] = [numbered(1_000n), numbered(4n)]
    const range = { before: foreign, events: [], to: numbered(500n) }
    const { sync, applied } = syncOver(
      { head, kept: [ancestor] },
      {
        backfill: {
          async *ranges() {
            yield range
          },
        },
      },
    )
    assert.equal(await sync.step(), 'at head')
    assert.deepEqual(applied, [[4n, 1_000n]])
  })
})

describe('the repair of an index', () => {
  it('is left out where it was found on another branch, or at a block that the index has not', async () => {
    const [known, above] = [numbered(5n), numbered(9n)]
    const { sync, repaired } = syncOver({ head: above, kept: [known] })
    const repairAt = (at: BlockId) => sync.repair({ at, lost: [], forged: [], tokens: [] })
    const places = [{ ...known, hash: foreign.hash }, above, known]
    assert.deepEqual(await Promise.all(places.map(repairAt)), [true, true, true])
    assert.deepEqual(repaired, [[1n, 5n]])
  })
})
