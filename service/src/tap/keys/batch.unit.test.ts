import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { batchHint, createKeyRing } from './batch.ts'
import { testBatch, testBatches } from '../../../test/support/tap/tags.ts'

describe('the key ring', () => {
  const ring = async (...ids: string[]) => {
    const batches = await testBatches(...ids.map((id) => testBatch({ id })))
    const keys = createKeyRing(batches)
    return {
      keys,
      order: () => keys.candidates().map(({ id }) => id),
      of: (id: string) => batches.find((batch) => batch.id === id),
    }
  }

  it('tries the batch that hit last first', async () => {
    const { keys, order, of } = await ring('a', 'b', 'c')
    assert.deepEqual(order(), ['a', 'b', 'c'])
    const c = of('c')
    assert.ok(c)
    keys.hit(c)
    assert.deepEqual(order(), ['c', 'a', 'b'])
    keys.hit(c)
    assert.deepEqual(order(), ['c', 'a', 'b'])
  })

  it('keeps a search under way complete when the order changes', async () => {
    const { keys, of } = await ring('a', 'b', 'c')
    const seen: string[] = []
    for (const { id } of keys.candidates()) {
      seen.push(id)
      const c = of('c')
      if (id === 'a' && c) keys.hit(c)
    }
    assert.deepEqual(seen, ['a', 'b', 'c'])
  })

  it('names the batch of a hint first, and the last ones that hit; the others are no longer likely', async () => {
    const ids = Array.from({ length: 40 }, (_batch, index) => `b${index}`)
    const { keys, of } = await ring(...ids)
    const likely = (hint?: string) => keys.likely(hint).map(({ id }) => id)
    assert.deepEqual(likely(), ids.slice(0, 16))
    assert.deepEqual(likely(batchHint('b39')), ['b39', ...ids.slice(0, 16)])
    assert.deepEqual(likely(batchHint('b3')), ['b3', ...ids.slice(0, 16).filter((id) => id !== 'b3')])
    assert.deepEqual(likely('zzzzzz'), ids.slice(0, 16))
    const b30 = of('b30')
    assert.ok(b30)
    keys.hit(b30)
    assert.deepEqual(likely(), ['b30', ...ids.slice(0, 15)])
    assert.deepEqual(
      keys.candidates().map(({ id }) => id),
      ['b30', ...ids.filter((id) => id !== 'b30')],
    )
  })

  it('gives a batch the same short hint everywhere and for ever', () => {
    assert.equal(batchHint('2026-watches'), 'k4187')
    assert.match(batchHint('x'), /^[0-9a-hjkmnp-tv-z]{5}$/)
  })

  it('refuses two batches of one id', async () => {
    await assert.rejects(ring('a', 'a'), RangeError)
    const { keys, of } = await ring('a')
    const a = of('a')
    assert.ok(a)
    assert.throws(() => keys.replace([a, a]), RangeError)
  })
})
