/** Conditions on products as SQL (spec §4.9 ProductFilter). Values go in as parameters, never into the text. */
import type { Hex, StateCode } from '@touchstone/verdict'

/** Instants are RFC 3339 text, exact to the microsecond; `createdAfter` and `createdBefore` leave their own instant out. */
export type ProductCondition =
  | Readonly<{ kind: 'brand' | 'tagId' | 'nameContains' | 'createdAfter' | 'createdBefore'; value: string }>
  | Readonly<{ kind: 'verified'; value: boolean }>
  | Readonly<{ kind: 'owner'; value: Hex }>
  | Readonly<{ kind: 'state'; value: StateCode }>
  | Readonly<{ kind: 'and' | 'or'; of: readonly ProductCondition[] }>
  | Readonly<{ kind: 'not'; of: ProductCondition }>

/** A condition over `asset`; its values are appended to `values`. An empty «and» holds, an empty «or» does not. */
export function sqlOf(condition: ProductCondition, values: unknown[]): string {
  const parameter = (value: unknown, type: string) => `$${values.push(value)}::${type}`
  switch (condition.kind) {
    case 'brand':
      return `brand = ${parameter(condition.value, 'text')}`
    case 'tagId':
      return `tag_id = ${parameter(condition.value, 'text')}`
    case 'nameContains':
      return `name ilike ${parameter(`%${condition.value.replace(/[%_\\]/g, '\\$&')}%`, 'text')}`
    case 'createdAfter':
      return `created_at > ${parameter(condition.value, 'text')}::timestamptz`
    case 'createdBefore':
      return `created_at < ${parameter(condition.value, 'text')}::timestamptz`
    // Written out: a partial index is found by the text of its condition.
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
    // What is not known to hold does not hold: a product without brand is not of brand X.
    case 'not':
      return `(${sqlOf(condition.of, values)}) is not true`
  }
}

/** The brand and `verified` of a condition that asks for nothing else; null for any other. */
export function countedBy(condition: ProductCondition): { brand?: string; verified?: boolean } | null {
  if (condition.kind === 'brand') return { brand: condition.value }
  if (condition.kind === 'verified') return { verified: condition.value }
  if (condition.kind !== 'and') return null
  const kinds = new Set(condition.of.map(({ kind }) => kind))
  if (kinds.size < condition.of.length) return null
  const parts = condition.of.map(countedBy)
  return parts.includes(null) ? null : Object.assign({}, ...parts)
}
