import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createKeyRing } from './batch.ts'
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

  it('refuses two batches of one id', async () => {
    await assert.rejects(ring('a', 'a'), RangeError)
    const { keys, of } = await ring('a')
    const a = of('a')
    assert.ok(a)
    assert.throws(() => keys.replace([a, a]), RangeError)
  })
})
