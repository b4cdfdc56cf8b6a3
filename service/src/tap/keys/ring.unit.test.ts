import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createKeyRing } from './ring.ts'
import { testBatch, testBatches } from '../../../test/support/tap/tags.ts'

describe('the key ring', () => {
  const ring = async (...ids: string[]) => {
    const batches = await testBatches(...ids.map((id) => testBatch({ id, hints: [`${id}.example`] })))
    const keys = createKeyRing(batches)
    return {
      keys,
      order: (hint?: string) => [...keys.candidates(hint)].map(({ id }) => id),
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

  it('lets a hint order and never exclude', async () => {
    const { order } = await ring('a', 'b', 'c')
    assert.deepEqual(order('b'), ['b', 'a', 'c'])
    assert.deepEqual(order('c.example'), ['c', 'a', 'b'])
    assert.deepEqual(order('unknown'), ['a', 'b', 'c'])
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

  it('is ready with at least one batch', async () => {
    assert.equal(createKeyRing([]).ready(), false)
    assert.equal((await ring('a')).keys.ready(), true)
  })

  it('refuses two batches of one id, and does not know others', async () => {
    await assert.rejects(ring('a', 'a'), RangeError)
    assert.equal((await ring('a')).keys.setStatus('b', 'revoked'), false)
  })
})
