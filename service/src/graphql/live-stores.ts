/** The stores of the index where the contract changes flags without an event. What the index cannot know is read from the chain, or refused. */
import { liveProducts, type Records } from '../assets/live-products.ts'
import type { ProductCondition } from '../index/queries/condition.ts'
import { graphqlError } from './errors.ts'
import type { IndexStores } from './stores.ts'

/** Reads throw CHAIN_UNAVAILABLE, and BAD_USER_INPUT for filters by reports, their numbers, and products of earlier blocks. */
export function liveStores(stores: IndexStores, records: Records): IndexStores {
  const { past, groups } = stores
  const products = liveProducts(stores.products, records)

  /** Runs a read, unless it needs flags that the index lacks. */
  async function refusing<T>(needsFlags: boolean, instead: string, read: () => Promise<T>): Promise<T> {
    if (needsFlags && !(await records.emitsChanges()))
      throw graphqlError('BAD_USER_INPUT', `The contract changes reports without an event: ${instead}`)
    return read()
  }

  const byReport = 'leave "verified", "flagged" and "report" out of the filter, and look at these fields of the answer.'
  const byFlag = 'there are no numbers of products by FLAG.'
  const earlier = 'products of earlier blocks are not known. Leave "block" out.'
  return {
    ...stores,
    products: {
      ...products,
      page: (page) => refusing(isAboutReports(page.condition), byReport, () => products.page(page)),
      count: (condition) => refusing(isAboutReports(condition), byReport, () => products.count(condition)),
    },
    groups: {
      page: (page) => refusing(page.group === 'FLAG', byFlag, () => groups.page(page)),
      count: (group, brands) => refusing(group === 'FLAG', byFlag, () => groups.count(group, brands)),
    },
    past: {
      ...past,
      products: (...asked) => refusing(true, earlier, () => past.products(...asked)),
      page: (...asked) => refusing(true, earlier, () => past.page(...asked)),
      count: (...asked) => refusing(true, earlier, () => past.count(...asked)),
    },
  }
}

function isAboutReports(condition: ProductCondition): boolean {
  if (condition.kind === 'and' || condition.kind === 'or') return condition.of.some(isAboutReports)
  if (condition.kind === 'not') return isAboutReports(condition.of)
  return condition.kind === 'verified' || condition.kind === 'flagged' || condition.kind === 'report'
}
