import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ProductCondition } from '../../index/queries/condition.ts'
import type { IndexStores } from '../stores.ts'
import { scopedStores } from './scoped-stores.ts'

const brandOf: Readonly<Record<string, string | null>> = { own: 'A', other: 'C', none: null, also: 'B' }

/** The stores of a key of A and B over an index of four products. `asked` has what reached the index. */
function scoped() {
  const asked: unknown[] = []
  const byTags = async (tags: readonly string[]) =>
    tags.map((tagHash) => ({ tagHash, tokenId: 1n, brand: brandOf[tagHash] ?? null }))
  const stores = {
    products: { byTags, count: async (condition: ProductCondition) => asked.push(condition) },
    past: {
      products: async () => [{ tokenId: 1n, brand: 'C' }],
      transfers: async (tokens: unknown) => [asked.push(tokens)],
    },
    taps: {
      pagesOfTags: async (questions: readonly { tagHash: string }[]) => {
        asked.push(...questions.map(({ tagHash }) => tagHash))
        return questions.map(({ tagHash }) => [tagHash])
      },
    },
  }
  return { asked, ...scopedStores({ transfers: {}, groups: {}, ...stores } as never as IndexStores, ['A', 'B']) }
}

describe('the stores of a key with brands', () => {
  it('have the products of its brands by their tags, and none without a brand', async () => {
    const found = await scoped().products.byTags(Object.keys(brandOf) as never)
    assert.deepEqual(
      found.map(({ tagHash }) => tagHash),
      ['own', 'also'],
    )
  })

  it('give each tag its own taps, those of other brands none, and do not read these', async () => {
    const { taps, asked } = scoped()
    const pages = await taps.pagesOfTags(['other', 'own', 'none', 'also'].map((tagHash) => ({ tagHash })) as never)
    assert.deepEqual([pages, asked], [
      [[], ['own'], [], ['also']],
      ['own', 'also'],
    ] as never)
  })

  it('read no transfers at an earlier block where all products are of other brands', async () => {
    const { past, asked } = scoped()
    assert.deepEqual([await past.transfers([]), asked], [[], []])
  })

  it('leave a condition as it is that names one of the brands', async () => {
    const { products, asked } = scoped()
    const named: ProductCondition = { kind: 'brand', value: 'B' }
    const both: ProductCondition = { kind: 'and', of: [named, { kind: 'brand', value: 'C' }] }
    for (const condition of [named, both]) await products.count(condition)
    assert.deepEqual(asked, [named, both])
  })
})
