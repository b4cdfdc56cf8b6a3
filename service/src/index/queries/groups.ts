/** Products counted by brand, state, report or day (spec §4.9), from the sums that the index keeps. */
import { countWithin } from '../../db/bounded-count.ts'
import { briefReads, CostError, maxPlanCost } from '../../db/cost.ts'
import type { IndexDatabase } from '../steps.ts'
import { countOfBrands } from './brands.ts'

export type ProductGroup = 'BRAND' | 'STATE' | 'FLAG' | 'DAY'

/** `key` is the brand (empty for none), the state's code, the report's bit in two digits, or the day. */
export type GroupRow = Readonly<{ key: string; n: bigint }>

/** A page from the group behind `after` on. */
type GroupPage = Readonly<{ group: ProductGroup; after: string | null; descending: boolean; limit: number }> & Brands
/** The brands that are counted; left out: all products. */
type Brands = { readonly brands?: readonly string[] }

/** Products that are counted for one unit of cost. The planner takes the groups of a product for many more than they are. */
const productsPerUnit = 50

export function groupStore(database: IndexDatabase) {
  /** Throws a CostError where these brands have too many products to count. */
  async function assertFewProducts(brands: readonly string[]): Promise<void> {
    const cost = Math.ceil((await countOfBrands(database, brands)) / productsPerUnit)
    if (cost > maxPlanCost) throw new CostError(cost)
  }

  return {
    async page({ group, after, descending, limit, brands }: GroupPage): Promise<GroupRow[]> {
      const { key, from, values } = sumsOf(group, brands)
      const behind =
        after === null ? '' : `and ${key} ${descending ? '<' : '>'} $${values.push(after)}::text collate "C"`
      const text = `select ${key} as key, sum(n)::bigint as n from ${from} ${behind} group by ${key} having sum(n) > 0
         order by ${key} ${descending ? 'desc' : 'asc'} limit $${values.push(limit)}`
      if (brands === undefined || group === 'BRAND') return database.query<GroupRow>(text, values)
      await assertFewProducts(brands)
      return briefReads(database).query<GroupRow>(text, values)
    },
    /** Returns the number of groups; null where a count takes too long. */
    async count(group: ProductGroup, brands?: readonly string[]): Promise<number | null> {
      const { key, from, values } = sumsOf(group, brands)
      return countWithin(database, `select from ${from} group by ${key} having sum(n) > 0`, values)
    },
  }
}

/** The sums are kept for each brand only; the other groups of some brands are counted. */
function sumsOf(group: ProductGroup, brands?: readonly string[]): { key: string; from: string; values: unknown[] } {
  const brand = `(coalesce(brand, '') collate "C")`
  const key = '(key collate "C")'
  if (group === 'BRAND')
    return brands === undefined
      ? { key: brand, from: 'product_count where true', values: [] }
      : { key: brand, from: 'product_count where brand = any($1::text[])', values: [brands] }
  if (brands === undefined) return { key, from: 'product_group where dimension = $1::text', values: [group] }
  const counted = `(select g.key, 1 as n from asset, groups_of(state, flags, created_at) g
    where brand = any($1::text[]) and g.dimension = $2::text) counted where true`
  return { key, from: counted, values: [brands, group] }
}
