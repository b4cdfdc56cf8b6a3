/** The reader on a real chain: pins, batches, changes and reorganisations (spec §2.2, §4.1). */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Hex, wordOfRecord } from '@touchstone/verdict'
import multicall from '../../../../contracts/artifacts/Multicall3.json' with { type: 'json' }
import { metadataOf, readerOver, startRegistry } from '../../../test/support/reader/anvil.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { until } from '../../../test/support/wait.ts'
import { multicallAddress } from '../../domain/chain.ts'
import type { AssetReading } from './reader.ts'
import { registryEncoding } from './calls/encodings.ts'
import { nonCanonical } from '../rpc/answer.ts'
import { type ChainSource } from '../rpc/source.ts'
import type { Block } from '../rpc/block.ts'

const tokens = 1000
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => BigInt(from + index))
const reason: Hex = `0x${'00'.repeat(32)}`
const tagOf = (tokenId: bigint): Hex => `0x${(tokenId + 0xabc0000n).toString(16).padStart(64, '0')}`

describe('the asset reader on a chain', () => {
  const chain = useOpened(startRegistry)

  before(() => chain.mintMany(tokens))

  /** Reads the chain at a block without the reader under test. */
  async function truthAt(source: ChainSource, ids: readonly bigint[], block: Block): Promise<readonly string[]> {
    const form = registryEncoding({ source, contract: chain.contract, withMetadata: true })
    const answer = await form.read(ids, block, performance.now() + 60_000)
    assert.ok(answer !== nonCanonical && 'length' in answer)
    return answer.map(textOf)
  }

  for (const cache of ['events', 'head', 'off'] as const) {
    it(`answers ${tokens} tokens asked for at once with a few calls, cache ${cache}`, async () => {
      const reader = readerOver(chain, { cache, headMaxAgeMs: 60_000, headRefreshMs: 60_000 })
      const answers = await Promise.all([...range(1, tokens), ...range(1, tokens)].map(reader.read))
      const { heads, calls } = reader.stats()
      assert.deepEqual([heads, calls], [1, 1])
      assert.equal(new Set(answers.map(({ block }) => block.hash)).size, 1)
      assert.deepEqual(
        answers.map(({ asset }) => asset.metadataHash),
        [...range(1, tokens), ...range(1, tokens)].map((id) => metadataOf(Number(id))),
      )
      assert.equal(
        answers.every(({ asset }) => asset.current),
        cache !== 'off',
      )
    })
  }

  it('shows a flag in a new answer within a second, and leaves the pinned answer as it was', async () => {
    await chain.write('bindTag', [1n, tagOf(1n)])
    const clock = { ms: 0 }
    const reader = readerOver(chain, { now: () => clock.ms })
    const before = await reader.read(1n)
    await until(() => reader.stats().mode === 'events')
    await chain.write('flag', [1n, 0x02, reason])
    clock.ms += 1_001
    let now = await reader.read(1n)
    assert.equal(now.asset.record.state, 5)
    await until(async () => {
      clock.ms += 250
      now = await reader.read(1n)
      assert.equal(now.asset.record.state, 5)
      return now.asset.current
    })
    assert.deepEqual([before.asset.current, now.asset.current], [false, true])
    assert.deepEqual(await truthAt(reader.source, [1n], before.block), [textOf(before.asset)])
  })

  it('shows a write at once after its receipt', async () => {
    const reader = readerOver(chain)
    await reader.read(2n)
    await chain.write('bindTag', [2n, tagOf(2n)])
    reader.dropHead(await chain.blockNumber())
    assert.equal(reader.head(), undefined)
    assert.equal((await reader.read(2n)).asset.record.state, 2)
  })

  it('reads a tag, its token, record and metadata hash at one block', async () => {
    await chain.write('bindTag', [3n, tagOf(3n)])
    const reader = readerOver(chain)
    const { tokenId, asset, block } = await reader.readByTag(tagOf(3n))
    assert.deepEqual([tokenId, asset?.record.state, asset?.metadataHash], [3n, 2, metadataOf(3)])
    assert.equal(block.hash, await chain.blockHash())
    const none = await reader.readByTag(tagOf(999n))
    assert.deepEqual([none.tokenId, none.asset], [null, null])
  })

  it('reads the tags of one turn in one call, each with its own answer', async () => {
    await chain.rpc('anvil_setCode', [multicallAddress, multicall.deployedBytecode])
    await chain.write('bindTag', [6n, tagOf(6n)])
    const reader = readerOver(chain)
    await until(async () => {
      const { calls } = reader.stats()
      const read = await Promise.all([2n, 999n, 6n, 3n, 2n].map((id) => reader.readByTag(tagOf(id), tagOf(id + 500n))))
      assert.deepEqual(
        read.map(({ tokenId, asset }) => [tokenId, asset?.record.state]),
        [
          [2n, 2],
          [null, undefined],
          [6n, 2],
          [3n, 2],
          [2n, 2],
        ],
      )
      assert.equal(new Set(read.map(({ block }) => block.hash)).size, 1)
      // Multicall3 is looked for beside the first reads.
      return reader.stats().calls === calls + 1
    })
  })

  it('finds a tag by its former commitment, and refuses two different tokens', async () => {
    const [present, former] = [tagOf(600n), tagOf(601n)]
    await chain.write('bindTag', [60n, former])
    const reader = readerOver(chain)
    const { tokenId, asset, tagHash } = await reader.readByTag(present, former)
    assert.deepEqual([tokenId, asset?.record.state, tagHash], [60n, 2, former])
    assert.equal((await reader.readByTag(former, present)).tagHash, former)
    assert.equal((await reader.readByTag(former, former)).tokenId, 60n)
    assert.equal((await reader.readByTag(present, tagOf(602n))).tokenId, null)
    await chain.write('bindTag', [61n, present])
    reader.dropHead(await chain.blockNumber())
    for (const pair of [
      [present, former],
      [former, present],
    ] as const)
      await assert.rejects(reader.readByTag(...pair), { code: 'CHAIN_UNAVAILABLE' })
    assert.equal((await reader.readByTag(present)).tokenId, 61n)
  })

  it('reads at the new head when the block of its head is reorganised away', async () => {
    await chain.mine(3)
    const reader = readerOver(chain)
    const { block } = await reader.read(4n)
    await chain.rpc('anvil_reorg', [1, []])
    // The head is still fresh for the reader, but no node reads at it any more.
    const [cold, tag] = await Promise.all([reader.read(5n), reader.readByTag(tagOf(999n))])
    assert.equal(cold.block.hash, await chain.blockHash())
    assert.deepEqual([cold.block.number, tag.block.hash], [block.number, cold.block.hash])
  })

  it('reads again until the backends behind one URL have its block, and gives up with its pauses', async () => {
    let lacking = 0
    const apart =
      <Args extends unknown[], Answer>(read: (...args: Args) => Promise<Answer>) =>
      (...args: Args) =>
        lacking-- > 0 ? Promise.resolve(nonCanonical) : read(...args)
    const disturb = (source: ChainSource) => ({ ...source, call: apart(source.call), calls: apart(source.calls) })
    const reader = readerOver(chain, { interface: 'auto', disturb, retryPausesMs: Array(5).fill(1) })
    const reads = [reader.emitsChanges, () => reader.read(4n), () => reader.readByTag(tagOf(999n))]
    for (const read of reads) {
      lacking = 5
      await read()
      assert.ok(lacking < 0)
      reader.dropHead(2n ** 64n)
    }
    lacking = 6
    await assert.rejects(reader.readByTag(tagOf(998n)), { code: 'CHAIN_UNAVAILABLE' })
  })

  it('follows reorganisations of depth 1 to 10 without a wrong answer, and keeps what they did not touch', async () => {
    const reader = readerOver(chain, { now: () => 0, headMaxAgeMs: 60_000 }) // the time in which the logs must be read
    const readAtHead = (ids: readonly bigint[]) => {
      reader.dropHead(2n ** 64n)
      return Promise.all(ids.map(reader.read))
    }
    const kept = (await reader.read(900n)).asset
    await until(() => reader.stats().mode === 'events')
    for (let depth = 1; depth <= 10; depth++) {
      const ids = range(100 + 20 * depth, 119 + 20 * depth)
      for (const id of ids.slice(0, depth)) {
        await chain.write('bindTag', [id, tagOf(id)])
        await readAtHead(ids)
      }
      const others = ids.slice(depth, depth + 5)
      await chain.reorg(
        depth,
        others.map((id, index) => ['bindTag', [id, tagOf(id + 500n)], index % depth]),
      )
      const answers = await readAtHead(ids)
      const block = answers[0]?.block
      assert.ok(block !== undefined)
      assert.equal(block.hash, await chain.blockHash())
      assert.deepEqual(
        answers.map(({ asset }) => textOf(asset)),
        await truthAt(reader.source, ids, block),
        `depth ${depth}`,
      )
      const states = answers.map(({ asset }) => asset.record.state)
      assert.deepEqual(
        states,
        ids.map((_, index) => (index >= depth && index < depth + 5 ? 2 : 1)),
      )
    }
    const { reorgs, flushes, mode } = reader.stats()
    assert.deepEqual([reorgs, flushes, mode, kept.current], [10, 0, 'events', true])
  })
})

/** Returns the whole answer about a token. */
function textOf({ record, metadataHash }: Pick<AssetReading['asset'], 'record' | 'metadataHash'>): string {
  return `${wordOfRecord(record).toString(16)} ${metadataHash}`
}
