/** Products counted by brand, state, report or day (spec §4.9), from the sums that the index keeps. */
import { countWithin } from '../../db/bounded-count.ts'
import type { Database } from '../../db/database.ts'

export type ProductGroup = 'BRAND' | 'STATE' | 'FLAG' | 'DAY'

/** `key` is the brand (empty for none), the code of the state, the bit of the report in two digits, or the day. */
export type GroupRow = Readonly<{ key: string; n: bigint }>

/** A page from the group behind `after` on. */
type GroupPage = Readonly<{ group: ProductGroup; after: string | null; descending: boolean; limit: number }>

export function groupStore(database: Pick<Database, 'query' | 'transaction' | 'dialect'>) {
  return {
    async page({ group, after, descending, limit }: GroupPage): Promise<GroupRow[]> {
      const { key, from, values } = sumsOf(group)
      const behind =
        after === null ? '' : `and ${key} ${descending ? '<' : '>'} $${values.push(after)}::text collate "C"`
      return database.query<GroupRow>(
        `select ${key} as key, sum(n)::bigint as n from ${from} ${behind} group by ${key} having sum(n) > 0
         order by ${key} ${descending ? 'desc' : 'asc'} limit $${values.push(limit)}`,
        values,
      )
    },
    /** Returns the number of groups; null where a count takes too long. */
    async count(group: ProductGroup): Promise<number | null> {
      const { key, from, values } = sumsOf(group)
      return countWithin(database, `select from ${from} group by ${key} having sum(n) > 0`, values)
    },
  }
}

function sumsOf(group: ProductGroup): { key: string; from: string; values: unknown[] } {
  return group === 'BRAND'
    ? { key: `(coalesce(brand, '') collate "C")`, from: 'product_count where true', values: [] }
    : { key: '(key collate "C")', from: 'product_group where dimension = $1::text', values: [group] }
}
