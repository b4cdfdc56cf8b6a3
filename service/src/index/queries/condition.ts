/** Conditions on products (spec §4.9) as SQL over `asset`. */
import { type Hex, reportFlags, type StateCode } from '@touchstone/verdict'
import type { Sql } from '../../db/database.ts'

/** Instants are RFC 3339 text, exact to the microsecond; `createdAfter` and `createdBefore` leave their own instant out. */
export type ProductCondition =
  | Readonly<{ kind: 'brand' | 'tagId' | 'nameContains' | 'gtin' | 'serial'; value: string }>
  | Readonly<{ kind: 'createdAfter' | 'createdBefore' | 'updatedAfter' | 'updatedBefore'; value: string }>
  | Readonly<{ kind: 'verified' | 'flagged' | 'tagged'; value: boolean }>
  | Readonly<{ kind: 'tokens'; value: readonly string[] }>
  | Readonly<{ kind: 'states'; value: readonly StateCode[] }>
  | Readonly<{ kind: 'names' | 'brands'; value: readonly string[] }>
  /** A bit of the flags. */
  | Readonly<{ kind: 'report'; value: number }>
  | Readonly<{ kind: 'owner'; value: Hex }>
  | Readonly<{ kind: 'state'; value: StateCode }>
  | Readonly<{ kind: 'and' | 'or'; of: readonly ProductCondition[] }>
  | Readonly<{ kind: 'not'; of: ProductCondition }>

/** As the partial index has it. */
const isFlagged = `state = 5 or (flags & ${reportFlags}) <> 0`

const textColumns = { brand: 'brand', tagId: 'tag_id', gtin: 'gtin', serial: 'serial' }
const listColumns = { brands: 'brand', names: 'name' }
const timeBounds = {
  updatedAfter: 'updated_at >',
  updatedBefore: 'updated_at <',
  createdAfter: 'created_at >',
  createdBefore: 'created_at <',
}

/** Formats a condition over `asset`; its values are appended to `values`, never written into the text. An empty «and» holds, an empty «or» does not. */
export function sqlOf(condition: ProductCondition, values: unknown[]): string {
  const parameter = (value: unknown, type: string) => `$${values.push(value)}::${type}`
  switch (condition.kind) {
    case 'brand':
    case 'tagId':
    case 'gtin':
    case 'serial':
      return `${textColumns[condition.kind]} = ${parameter(condition.value, 'text')}`
    case 'brands':
    case 'names':
      return `${listColumns[condition.kind]} = any(${parameter(condition.value, 'text[]')})`
    case 'nameContains':
      return `name ilike ${parameter(partPattern(condition.value), 'text')}`
    case 'tokens':
      return `token_id = any(${parameter(condition.value, 'text[]')}::numeric[])`
    case 'states':
      return `state = any(${parameter(condition.value.map(String), 'text[]')}::smallint[])`
    case 'flagged':
      return condition.value ? `(${isFlagged})` : `not (${isFlagged})`
    case 'report':
      return `(flags & ${condition.value}) <> 0`
    case 'tagged':
      return condition.value ? 'tag_hash is not null' : 'tag_hash is null'
    case 'updatedAfter':
    case 'updatedBefore':
    case 'createdAfter':
    case 'createdBefore':
      return `${timeBounds[condition.kind]} ${parameter(condition.value, 'text')}::timestamptz`
    // As text: the planner matches a partial index by the text of its condition.
    case 'verified':
      return condition.value ? 'verified' : 'not verified'
    case 'owner':
      return `owner = decode(${parameter(condition.value.slice(2), 'text')}, 'hex')`
    case 'state':
      return `state = ${parameter(condition.value, 'smallint')}`
    case 'and':
      return condition.of.length === 0 ? 'true' : `(${condition.of.map((one) => sqlOf(one, values)).join(' and ')})`
    case 'or':
      return condition.of.length === 0 ? 'false' : `(${condition.of.map((one) => sqlOf(one, values)).join(' or ')})`
    // An unknown condition does not hold: a product without a brand is not of brand X.
    case 'not':
      return `(${sqlOf(condition.of, values)}) is not true`
  }
}

/** Formats a pattern of «ilike» whose text stands for itself. */
function partPattern(part: string): string {
  return `%${part.replace(/[%_\\]/g, '\\$&')}%`
}

/** Returns the conditions that hold together. */
export function partsOf(condition: ProductCondition): readonly ProductCondition[] {
  return condition.kind === 'and' ? condition.of : [condition]
}

/** Returns the brands that a condition names: it holds for their products only. Null stands for all products. */
export function brandsOf(condition: ProductCondition): readonly string[] | null {
  for (const part of partsOf(condition)) {
    if (part.kind === 'brand') return [part.value]
    if (part.kind === 'brands') return part.value
  }
  return null
}

/** More names than these are not looked up one by one. So common a part is soon found in the order of the list. */
const mostNames = 200

/** Replaces a search for a part of a name by the names that have it, where they are few. Many products share a name. */
export async function withNames(sql: Sql, condition: ProductCondition): Promise<ProductCondition> {
  const parts = partsOf(condition)
  const search = parts.find((part) => part.kind === 'nameContains')
  if (search?.kind !== 'nameContains') return condition
  const rows = await sql.query<{ name: string }>(namesStatement, [partPattern(search.value), mostNames + 1])
  if (rows.length > mostNames) return condition
  const named: ProductCondition = { kind: 'names', value: rows.map(({ name }) => name) }
  return parts.length === 1 ? named : { kind: 'and', of: [named, ...parts.filter((part) => part !== search)] }
}

export const namesStatement = 'select name from product_name where name ilike $1::text limit $2'
