/** Which reads go out together. The form is the test's, so that its answers come when the test wants. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recordOfWord } from '@touchstone/verdict'
import { ServiceError } from '../errors.ts'
import { createMicroBatch } from './micro-batch.ts'
import type { MicroBatchOptions } from './micro-batch.ts'
import { wordText } from './read-calls.ts'
import type { Found } from './read-calls.ts'
import type { ReadForm } from './read-calls-form.ts'
import { blockGone } from './source.ts'
import type { Block } from './source.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))
const soon = () => performance.now() + 1000
const hashOf = (number: bigint) => `0x${wordText(number)}` as const
const blockOf = (number: bigint): Block => ({
  number,
  hash: hashOf(number),
  parentHash: hashOf(number - 1n),
  timestamp: number,
  header: {},
})
/** A record that names its token, so that an answer that went to another shows. */
const foundOf = (tokenId: bigint): Found => {
  const record = recordOfWord((1n << 224n) | tokenId)
  assert.ok(record !== null)
  return { record, metadataHash: null }
}
const range = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index + 1))

function batchOf(
  answer: (ids: readonly bigint[]) => ReturnType<ReadForm['read']>,
  options: Partial<MicroBatchOptions> & { formMax?: number } = {},
) {
  const sent: (readonly bigint[])[] = []
  const gone: Block[] = []
  const chain = { head: 1n }
  const form: ReadForm = {
    name: 'getAssets',
    maxBatch: options.formMax ?? 1000,
    read(ids) {
      sent.push(ids)
      return answer(ids)
    },
    byTag: () => Promise.reject(new Error('not here')),
  }
  const batch = createMicroBatch({
    maxBatch: 1000,
    lanes: 2,
    pin: () => Promise.resolve({ block: blockOf(chain.head), form }),
    onGone: (block) => gone.push(block),
    ...options,
  })
  const ask = (tokenId: bigint) => batch.ask(tokenId, hashOf(chain.head), soon())
  return { batch, ask, sent, gone, chain }
}

const all = (ids: readonly bigint[]) => Promise.resolve(ids.map(foundOf))

describe('the micro-batch', () => {
  it('sends what is asked for in one turn as one call, each token once, and gives each its own answer', async () => {
    const { ask, sent } = batchOf(all)
    const ids = [...range(300), ...range(300)]
    const answers = await Promise.all(ids.map(ask))
    assert.deepEqual(sent, [range(300)])
    assert.deepEqual(
      answers.map((answer) => answer !== blockGone && BigInt(answer.found.record.owner)),
      ids,
    )
  })

  it('fills the next batch while all lanes are busy', async () => {
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
      (answer) => answer !== blockGone && answer.block.number,
    )
    assert.deepEqual(
      [blocks, sent],
      [
        [1n, 1n, 2n],
        [[1n], [1n]],
      ],
    )
  })

  it('keeps to the bounds of a batch and of the form', async () => {
    const { ask, sent } = batchOf(all, { maxBatch: 100, formMax: 40, lanes: 1 })
    await Promise.all(range(150).map(ask))
    assert.deepEqual(
      sent.map((ids) => ids.length),
      [40, 40, 20, 40, 10],
    )
  })

  it('gives a token whose answer cannot be right to nobody, and the others theirs', async () => {
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

  it('tells all of a batch when its block is gone', async () => {
    const { ask, gone } = batchOf(() => Promise.resolve(blockGone))
    assert.deepEqual(await Promise.all(range(2).map(ask)), [blockGone, blockGone])
    assert.deepEqual(
      gone.map(({ number }) => number),
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

  it('refuses more than it may hold', async () => {
    const { batch } = batchOf(() => new Promise(() => {}), { maxBatch: 2, lanes: 1 })
    const waiting = range(128).map((tokenId) => batch.ask(tokenId, hashOf(1n), soon()))
    await assert.rejects(batch.ask(1000n, hashOf(1n), soon()), { code: 'CHAIN_UNAVAILABLE' })
    assert.equal(waiting.length, 128)
  })
})
