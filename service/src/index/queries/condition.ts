/** Conditions on products (spec §4.9) as SQL over `asset`. */
import { type Hex, reportFlags, type StateCode } from '@touchstone/verdict'

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

/** Formats a condition over `asset`; its values are appended to `values`, never written into the text. An empty «and» holds, an empty «or» does not. */
export function sqlOf(condition: ProductCondition, values: unknown[]): string {
  const parameter = (value: unknown, type: string) => `$${values.push(value)}::${type}`
  switch (condition.kind) {
    case 'brand':
      return `brand = ${parameter(condition.value, 'text')}`
    case 'brands':
      return `brand = any(${parameter(condition.value, 'text[]')})`
    case 'tagId':
      return `tag_id = ${parameter(condition.value, 'text')}`
    case 'nameContains':
      return `name ilike ${parameter(partPattern(condition.value), 'text')}`
    case 'names':
      return `name = any(${parameter(condition.value, 'text[]')})`
    case 'gtin':
      return `gtin = ${parameter(condition.value, 'text')}`
    case 'serial':
      return `serial = ${parameter(condition.value, 'text')}`
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
      return `updated_at > ${parameter(condition.value, 'text')}::timestamptz`
    case 'updatedBefore':
      return `updated_at < ${parameter(condition.value, 'text')}::timestamptz`
    case 'createdAfter':
      return `created_at > ${parameter(condition.value, 'text')}::timestamptz`
    case 'createdBefore':
      return `created_at < ${parameter(condition.value, 'text')}::timestamptz`
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
export function partPattern(part: string): string {
  return `%${part.replace(/[%_\\]/g, '\\$&')}%`
}
