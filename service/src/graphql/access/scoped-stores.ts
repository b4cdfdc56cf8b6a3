/** The stores of the index as a key with brands reads them. Products of other brands, and what belongs to them, do not exist. */
import type { ProductCondition } from '../../index/queries/condition.ts'
import type { PastToken } from '../../index/queries/past.ts'
import type { IndexStores } from '../stores.ts'
import { permits } from '../../access/rights.ts'

/**
 * Messages and histories are read of products and transfers that were found through these stores. Each read is written out: a new one does
 * not pass the type checker until it is decided here whether the brands narrow it.
 */
export function scopedStores(stores: IndexStores, brands: readonly string[]): IndexStores {
  const { products, transfers, history, past, groups, meta, taps } = stores
  const ofBrands = <Row extends { readonly brand: string | null }>(rows: readonly Row[]): Row[] =>
    rows.filter((row) => permits(brands, row))
  const pastOfBrands = async (asked: readonly PastToken[]) => {
    const rows = await past.products(asked)
    return rows && ofBrands(rows)
  }
  const narrowed = (condition: ProductCondition) => withBrands(condition, brands)
  return {
    history,
    meta,
    products: {
      byTokens: async (tokenIds) => ofBrands(await products.byTokens(tokenIds)),
      byTags: async (tagHashes) => ofBrands(await products.byTags(tagHashes)),
      page: (page) => products.page({ ...page, condition: narrowed(page.condition) }),
      count: (condition) => products.count(narrowed(condition)),
    },
    transfers: {
      newestOf: (tokenIds) => transfers.newestOf(tokenIds),
      messages: (asked) => transfers.messages(asked),
      async byIds(ids) {
        const rows = await transfers.byIds(ids)
        const own = new Set(
          ofBrands(await products.byTokens(rows.map(({ tokenId }) => tokenId))).map(({ tokenId }) => tokenId),
        )
        return rows.filter(({ tokenId }) => own.has(tokenId))
      },
      page: (page) => transfers.page({ ...page, brands }),
      count: (filter) => transfers.count({ ...filter, brands }),
    },
    past: {
      find: (number) => past.find(number),
      assertCanonical: (blocks) => past.assertCanonical(blocks),
      products: pastOfBrands,
      async transfers(asked) {
        const own = await pastOfBrands(asked)
        if (own === null) return null
        return own.length === 0 ? [] : past.transfers(own)
      },
      page: (block, page) => past.page(block, { ...page, condition: narrowed(page.condition) }),
      count: (block, condition) => past.count(block, narrowed(condition)),
    },
    groups: {
      page: (page) => groups.page({ ...page, brands }),
      count: (group) => groups.count(group, brands),
    },
    taps: {
      // A product at an earlier block may have been of these brands, and its taps are those of now.
      async pagesOfTags(questions) {
        const own = new Set(
          ofBrands(await products.byTags(questions.map(({ tagHash }) => tagHash))).map(({ tagHash }) => tagHash),
        )
        const pages = await taps.pagesOfTags(questions.filter(({ tagHash }) => own.has(tagHash)))
        return questions.map(({ tagHash }) => (own.has(tagHash) ? (pages.shift() ?? []) : []))
      },
      page: (filter, page) => taps.page({ ...filter, brands }, page),
      count: (filter) => taps.count({ ...filter, brands }),
      anomalies: (filter, page) => taps.anomalies({ ...filter, brands }, page),
      countAnomalies: (filter) => taps.countAnomalies({ ...filter, brands }),
    },
  }
}

/** Adds the brands to a condition, unless it names one of them anyway. */
function withBrands(condition: ProductCondition, brands: readonly string[]): ProductCondition {
  const parts = condition.kind === 'and' ? condition.of : [condition]
  if (parts.some((part) => part.kind === 'brand' && brands.includes(part.value))) return condition
  const [only = '', ...more] = brands
  const own: ProductCondition = more.length === 0 ? { kind: 'brand', value: only } : { kind: 'brands', value: brands }
  return parts.length === 0 ? own : { kind: 'and', of: [own, ...parts] }
}
