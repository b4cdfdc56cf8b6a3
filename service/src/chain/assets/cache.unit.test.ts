/** The entries that the cache keeps, and that a dropped entry is no longer current. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recordOfWord } from '@touchstone/verdict'
import { createAssetCache } from './cache.ts'
import type { DecodedState } from './calls/abi.ts'

const foundOf = (word: bigint): DecodedState => {
  const record = recordOfWord(word)
  assert.ok(record !== null)
  return { record, metadataHash: null }
}
const minted = foundOf(1n << 224n)
const absent = foundOf(0n)

describe('the asset cache', () => {
  it('evicts the least recently used asset, which is no longer current', () => {
    const cache = createAssetCache(2)
    const one = cache.put(1n, minted, 5n)
    const two = cache.put(2n, minted, 5n)
    assert.equal(cache.get(1n), one)
    cache.put(3n, minted, 5n)
    assert.deepEqual([one.current, two.current, cache.get(2n), cache.size()], [true, false, undefined, 2])
  })

  it('keeps tokens that do not exist apart, within their own bound and for one head', () => {
    const cache = createAssetCache(2)
    const real = cache.put(1n, minted, 5n)
    const missing = Array.from({ length: 1_025 }, (_, index) => cache.put(BigInt(10 + index), absent, 5n))
    assert.deepEqual(
      [real.current, ...missing.map(({ current }) => current)],
      [true, false, ...Array(1_024).fill(true)],
    )
    assert.equal(cache.get(1_034n), missing[1_024])
    cache.nextHead()
    assert.deepEqual([real.current, ...missing.map(({ current }) => current)], [true, ...Array(1_025).fill(false)])
    assert.equal(cache.get(1_034n), undefined)
  })

  it('replaces an asset by a newer one, and the older one is no longer current', () => {
    const cache = createAssetCache(2)
    const before = cache.put(1n, absent, 5n)
    const after = cache.put(1n, minted, 6n)
    assert.deepEqual([before.current, after.current, cache.get(1n), cache.size()], [false, true, after, 1])
  })

  it('drops what was put in above a head, and all of it at once', () => {
    const cache = createAssetCache(9)
    const old = cache.put(1n, minted, 5n)
    const young = cache.put(2n, minted, 6n)
    const none = cache.put(3n, absent, 6n)
    cache.dropAbove(5n)
    assert.deepEqual([old.current, young.current, none.current, cache.size()], [true, false, false, 1])
    cache.flush()
    assert.deepEqual([old.current, cache.size()], [false, 0])
  })

  it('comes round to every asset that stays, in parts', () => {
    const cache = createAssetCache(100)
    const ids = Array.from({ length: 10 }, (_, index) => BigInt(index))
    for (const id of ids) cache.put(id, minted, 5n)
    const seen = new Set<bigint>()
    for (let part = 0; part < 4; part++) {
      for (const id of cache.round(3)) seen.add(id)
      cache.get(0n)
    }
    assert.deepEqual(
      [...seen].toSorted((a, b) => Number(a - b)),
      ids,
    )
    cache.drop(9n)
    assert.ok(!cache.round(100).includes(9n))
  })
})
