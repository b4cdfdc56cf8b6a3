/** Counts the products of brands by the sums that the index keeps. The number decides how a list of theirs is read. */
import type { Database, Sql } from '../../db/database.ts'

/** Reading a list product by product takes a tenth of a second for so many, on a loaded machine. */
const fewProducts = 10_000

/** Returns the number of products of all these brands together. */
export async function countOfBrands({ query }: Sql, brands: readonly string[]): Promise<number> {
  const statement = 'select coalesce(sum(n), 0)::bigint as n from product_count where brand = any($1::text[])'
  const [row] = await query<{ n: bigint }>(statement, [brands])
  return Number(row?.n ?? 0n)
}

/**
 * Returns whether a list of these brands can be read product by product; null stands for all products. Such a list is not refused, however many
 * products others have, so that a key with brands learns nothing of them. A cluster is asked for the cost of each list.
 */
export async function haveFewProducts(
  database: Sql & Pick<Database, 'dialect'>,
  brands: readonly string[] | null,
): Promise<boolean> {
  if (brands === null || database.dialect === 'citus') return false
  return (await countOfBrands(database, brands)) <= fewProducts
}
