/** The reads of one batch. The encoding is scripted, so that its answers come when the test wants. */
import { encodeWord } from '../../lib/words.ts'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recordOfWord } from '@touchstone/verdict'
import { ServiceError } from '../../lib/errors.ts'
import { createMicroBatch, type MicroBatchOptions } from './batch.ts'
import { type DecodedState } from './calls/abi.ts'
import type { CallEncoding } from './calls/encodings.ts'
import { nonCanonical } from '../rpc/answer.ts'
import type { Block } from '../rpc/block.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))
const soon = () => performance.now() + 600_000
const hashOf = (number: bigint) => `0x${encodeWord(number)}` as const
const blockOf = (number: bigint): Block => ({
  number,
  hash: hashOf(number),
  parentHash: hashOf(number - 1n),
  timestamp: number,
  header: {},
})
/** A record that names its token, so that an answer that went to another shows. */
const foundOf = (tokenId: bigint): DecodedState => {
  const record = recordOfWord((1n << 224n) | tokenId)
  assert.ok(record !== null)
  return { record, metadataHash: null }
}
const range = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index + 1))

function batchOf(
  answer: (ids: readonly bigint[]) => ReturnType<CallEncoding['read']>,
  options: Partial<MicroBatchOptions<bigint, DecodedState>> & { encodingMax?: number } = {},
) {
  const sent: (readonly bigint[])[] = []
  const nonCanonicalBlocks: Block[] = []
  const chain = { head: 1n }
  const encoding: CallEncoding = {
    name: 'getAssets',
    maxBatch: options.encodingMax ?? 1000,
    read(ids) {
      sent.push(ids)
      return answer(ids)
    },
    byTags: () => Promise.reject(new Error('not here')),
  }
  const batch = createMicroBatch<bigint, DecodedState>({
    read: (form, ids, block, deadline) => form.read(ids, block, deadline),
    maxBatch: 1000,
    concurrency: 2,
    pin: () => Promise.resolve({ block: blockOf(chain.head), encoding }),
    onNonCanonical: (block) => nonCanonicalBlocks.push(block),
    ...options,
  })
  const ask = (tokenId: bigint) => batch.ask(tokenId, hashOf(chain.head), soon())
  return { batch, ask, sent, nonCanonicalBlocks, chain }
}

const all = (ids: readonly bigint[]) => Promise.resolve(ids.map(foundOf))

describe('the micro-batch', () => {
  it('sends what is asked for in one turn as one call, each token once, and gives each its own answer', async () => {
    const { ask, sent } = batchOf(all)
    const ids = [...range(300), ...range(300)]
    const answers = await Promise.all(ids.map(ask))
    assert.deepEqual(sent, [range(300)])
    assert.deepEqual(
      answers.map((answer) => answer !== nonCanonical && BigInt(answer.state.record.owner)),
      ids,
    )
  })

  it('fills the next batch while as many as may be are under way', async () => {
    const answers: (() => void)[] = []
    const { ask, sent } = batchOf((ids) => new Promise((resolve) => answers.push(() => resolve(ids.map(foundOf)))))
    const asked: Promise<unknown>[] = []
    for (const tokenId of range(10)) {
      asked.push(ask(tokenId))
      await turn()
    }
    assert.deepEqual(sent, [[1n], [2n]])
    answers[1]?.()
    await turn()
    assert.deepEqual(sent, [[1n], [2n], range(10).slice(2)])
    for (const answer of answers) answer()
    await Promise.all(asked)
  })

  it('joins a read under way at the same head, and not one at an older head', async () => {
    const answers: (() => void)[] = []
    const { ask, sent, chain } = batchOf(
      (ids) => new Promise((resolve) => answers.push(() => resolve(ids.map(foundOf)))),
    )
    const first = ask(1n)
    await turn()
    const second = ask(1n)
    chain.head = 2n
    const third = ask(1n)
    await turn()
    for (const answer of answers) answer()
    const blocks = (await Promise.all([first, second, third])).map(
      (answer) => answer !== nonCanonical && answer.block.number,
    )
    assert.deepEqual(
      [blocks, sent],
      [
        [1n, 1n, 2n],
        [[1n], [1n]],
      ],
    )
  })

  it('keeps to the bounds of a batch and of the encoding', async () => {
    const { ask, sent } = batchOf(all, { maxBatch: 100, encodingMax: 40, concurrency: 1 })
    await Promise.all(range(150).map(ask))
    assert.deepEqual(
      sent.map((ids) => ids.length),
      [40, 40, 20, 40, 10],
    )
  })

  it('fails only the token whose answer is impossible', async () => {
    const bad = 7n
    const { ask, sent } = batchOf((ids) =>
      Promise.resolve(ids.includes(bad) ? { suspects: new Set([bad]) } : ids.map(foundOf)),
    )
    const answers = await Promise.allSettled(range(10).map(ask))
    const failed = range(10).filter((_, index) => answers[index]?.status === 'rejected')
    assert.deepEqual([failed, sent.length], [[bad], 3])
  })

  it('splits a batch that fails once, in halves', async () => {
    const { ask, sent } = batchOf((ids) => (ids.includes(10n) ? Promise.reject(new Error('no')) : all(ids)))
    const answers = await Promise.allSettled(range(10).map(ask))
    assert.deepEqual(
      answers.map(({ status }) => status === 'fulfilled'),
      [...range(5).map(() => true), ...range(5).map(() => false)],
    )
    assert.equal(sent.length, 3)
  })

  it('does not ask again when the time is over', async () => {
    const { batch, sent } = batchOf(() => Promise.reject(new Error('no')))
    const asked = range(2).map((tokenId) => batch.ask(tokenId, hashOf(1n), performance.now()))
    assert.deepEqual(
      (await Promise.allSettled(asked)).map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    assert.equal(sent.length, 1)
  })

  it('reports a non-canonical block to all of a batch', async () => {
    const { ask, nonCanonicalBlocks } = batchOf(() => Promise.resolve(nonCanonical))
    assert.deepEqual(await Promise.all(range(2).map(ask)), [nonCanonical, nonCanonical])
    assert.deepEqual(
      nonCanonicalBlocks.map(({ number }) => number),
      [1n],
    )
  })

  it('fails all of a batch that has no head, and goes on with the next', async () => {
    let heads = 0
    const unavailable = new ServiceError('CHAIN_UNAVAILABLE', 'no head')
    const { batch } = batchOf(all, { pin: () => (heads++, Promise.reject(unavailable)) })
    for (let round = 1; round <= 3; round++) {
      const answers = await Promise.allSettled(range(5).map((tokenId) => batch.ask(tokenId, hashOf(1n), soon())))
      assert.deepEqual([answers.every(({ status }) => status === 'rejected'), heads], [true, round])
    }
  })

  it('rejects more than it may hold', async () => {
    const { batch } = batchOf(() => new Promise(() => {}), { maxBatch: 2, concurrency: 1 })
    const waiting = range(128).map((tokenId) => batch.ask(tokenId, hashOf(1n), soon()))
    await assert.rejects(batch.ask(1000n, hashOf(1n), soon()), { code: 'CHAIN_UNAVAILABLE' })
    assert.equal(waiting.length, 128)
  })
})
