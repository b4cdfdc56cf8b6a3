/** Names that contain a part (spec §4.9 nameContains): distinct names are searched, because products share them. */
import type { Sql } from '../../db/database.ts'
import { partPattern, type ProductCondition } from './condition.ts'

/** More names than these are not looked up one by one. So common a part is soon found in the order of the list. */
const mostNames = 200

/** Replaces a search by the names that it finds, where they are few. */
export async function withNames(sql: Sql, condition: ProductCondition): Promise<ProductCondition> {
  const parts = condition.kind === 'and' ? condition.of : [condition]
  const search = parts.find((part) => part.kind === 'nameContains')
  if (search?.kind !== 'nameContains') return condition
  const rows = await sql.query<{ name: string }>(namesStatement, [partPattern(search.value), mostNames + 1])
  if (rows.length > mostNames) return condition
  const named: ProductCondition = { kind: 'names', value: rows.map(({ name }) => name) }
  return parts.length === 1 ? named : { kind: 'and', of: [named, ...parts.filter((part) => part !== search)] }
}

export const namesStatement = 'select name from product_name where name ilike $1::text limit $2'
