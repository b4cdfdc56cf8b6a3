/** The bounds of a filter (spec §4.9). A body of 64 kB has room for twenty thousand empty filters. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseFilter, type ProductFilter } from './filter.ts'

const many = (count: number, one: ProductFilter): ProductFilter[] => Array.from({ length: count }, () => one)

describe('a filter of products', () => {
  const tooComplex = { extensions: { code: 'TOO_COMPLEX' } }

  it('has 20 conditions at most, wherever they are', () => {
    const brand: ProductFilter = { brand: 'Acme' }
    parseFilter({ tagged: true, and: many(9, brand), or: many(10, brand) })
    assert.throws(() => parseFilter({ tagged: true, and: many(10, brand), or: many(10, brand) }), tooComplex)
  })

  it('counts a filter without a condition as one, because the database compares that too', () => {
    for (const empty of [{}, { brand: null, not: null }, { and: [] }] as const) {
      parseFilter(empty)
      for (const joined of ['and', 'or'] as const) {
        parseFilter({ [joined]: many(20, empty) })
        assert.throws(() => parseFilter({ [joined]: many(21, empty) }), tooComplex)
      }
      assert.throws(() => parseFilter({ and: many(20, { not: empty }), brand: 'Acme' }), tooComplex)
    }
  })

  it('nests four deep', () => {
    const nested = (depth: number): ProductFilter => (depth === 1 ? { brand: 'Acme' } : { not: nested(depth - 1) })
    parseFilter(nested(4))
    assert.throws(() => parseFilter(nested(5)), tooComplex)
  })
})
