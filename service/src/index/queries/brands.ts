/** Counts the products of brands by the sums that the index keeps. Their lists are read by that number. */
import type { Database, Sql } from '../../db/database.ts'

/** A list of so few products is read product by product. On a loaded machine that takes a tenth of a second. */
const fewProducts = 10_000

export async function countOfBrands({ query }: Sql, brands: readonly string[]): Promise<number> {
  const statement = 'select coalesce(sum(n), 0)::bigint as n from product_count where brand = any($1::text[])'
  const [row] = await query<{ n: bigint }>(statement, [brands])
  return Number(row?.n ?? 0n)
}

/**
 * Returns whether a list of these brands costs little, however many products all others have; null stands for all products. A key with
 * brands learns nothing then from what is refused. A cluster is asked for the cost of each list.
 */
export async function haveFewProducts(
  database: Sql & Pick<Database, 'dialect'>,
  brands: readonly string[] | null,
): Promise<boolean> {
  if (brands === null || database.dialect === 'citus') return false
  return (await countOfBrands(database, brands)) <= fewProducts
}
