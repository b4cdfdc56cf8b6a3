/** What the cache keeps, and what dies in the moment in which it is dropped. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recordOfWord } from '@touchstone/verdict'
import { createAssetCache } from './cache.ts'
import type { Found } from './read-calls.ts'

const foundOf = (word: bigint): Found => {
  const record = recordOfWord(word)
  assert.ok(record !== null)
  return { record, metadataHash: null }
}
const minted = foundOf(1n << 224n)
const absent = foundOf(0n)

describe('the asset cache', () => {
  it('lets go of the asset that was not asked for longest, and that one is dead', () => {
    const cache = createAssetCache({ entries: 2 })
    const one = cache.put(1n, minted, 5n)
    const two = cache.put(2n, minted, 5n)
    assert.equal(cache.get(1n), one)
    cache.put(3n, minted, 5n)
    assert.deepEqual([one.live, two.live, cache.get(2n), cache.size()], [true, false, undefined, 2])
  })

  it('keeps tokens that do not exist apart, within their own bound and for one head', () => {
    const cache = createAssetCache({ entries: 2, missing: 3 })
    const real = cache.put(1n, minted, 5n)
    const missing = [10n, 11n, 12n, 13n].map((tokenId) => cache.put(tokenId, absent, 5n))
    assert.deepEqual([real.live, ...missing.map(({ live }) => live)], [true, false, true, true, true])
    assert.equal(cache.get(13n), missing[3])
    cache.nextHead()
    assert.deepEqual([real.live, ...missing.map(({ live }) => live)], [true, false, false, false, false])
    assert.equal(cache.get(13n), undefined)
  })

  it('replaces an asset by its newer form, and the older one is dead', () => {
    const cache = createAssetCache({ entries: 2 })
    const before = cache.put(1n, absent, 5n)
    const after = cache.put(1n, minted, 6n)
    assert.deepEqual([before.live, after.live, cache.get(1n), cache.size()], [false, true, after, 1])
  })

  it('drops what was put in above a head, and all of it at once', () => {
    const cache = createAssetCache({ entries: 9 })
    const old = cache.put(1n, minted, 5n)
    const young = cache.put(2n, minted, 6n)
    const none = cache.put(3n, absent, 6n)
    cache.dropAbove(5n)
    assert.deepEqual([old.live, young.live, none.live, cache.size()], [true, false, false, 1])
    cache.flush()
    assert.deepEqual([old.live, cache.size()], [false, 0])
  })

  it('holds nothing where nothing may be held', () => {
    const cache = createAssetCache({ entries: 0, missing: 0 })
    assert.deepEqual([cache.put(1n, minted, 5n).live, cache.put(2n, absent, 5n).live, cache.size()], [false, false, 0])
  })

  it('comes round to every asset that stays, in parts', () => {
    const cache = createAssetCache({ entries: 100 })
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
