/** Counts the products of brands by the sums that the index keeps. The number decides how a list of theirs is read. */
import type { Database, Sql } from '../../db/database.ts'

/**
 * Reading a list product by product takes a tenth of a second for 10,000, on a loaded machine. The embedded database answers nothing else
 * meanwhile. A cluster is asked for the cost of each list.
 */
const fewProducts: Readonly<Record<Database['dialect'], number>> = { postgres: 10_000, pglite: 1_000, citus: 0 }

/** Returns the number of products of all these brands together. */
export async function countOfBrands({ query }: Sql, brands: readonly string[]): Promise<number> {
  const statement = 'select coalesce(sum(n), 0)::bigint as n from product_count where brand = any($1::text[])'
  const [row] = await query<{ n: bigint }>(statement, [brands])
  return Number(row?.n ?? 0n)
}

/**
 * Returns whether a list of these brands can be read product by product; null stands for all products. Such a list is not refused, however many
 * products others have, so that a key with brands learns nothing of them.
 */
export async function haveFewProducts(
  database: Sql & Pick<Database, 'dialect'>,
  brands: readonly string[] | null,
): Promise<boolean> {
  const most = fewProducts[database.dialect]
  return brands !== null && most > 0 && (await countOfBrands(database, brands)) <= most
}
