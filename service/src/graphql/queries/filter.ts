/** ProductFilter of the schema as a condition (spec §4.9), with the same limits for literals and variables. */
import {
  checksumAddress,
  isAddress,
  lifecycleStates,
  type Hex,
  type LifecycleState,
  type StateCode,
} from '@touchstone/verdict'
import type { ProductCondition } from '../../index/queries/products.ts'
import { graphqlError } from '../errors.ts'

/** Null is the same as left out. */
export type ProductFilter = Partial<
  Readonly<{
    brand: string | null
    verified: boolean | null
    nameContains: string | null
    owner: string | null
    state: LifecycleState | null
    tagId: string | null
    createdAfter: string | null
    createdBefore: string | null
    and: readonly ProductFilter[] | null
    or: readonly ProductFilter[] | null
    not: ProductFilter | null
  }>
>

const maxNesting = 4
const maxLeaves = 20
const longestText = 200
const shortestPart = 3

/** Throws BAD_USER_INPUT for a filter that cannot hold, and TOO_COMPLEX for one that is too large. */
export function parseFilter(filter: ProductFilter | null | undefined): ProductCondition {
  let count = 0

  function read(one: ProductFilter, nesting: number): ProductCondition {
    if (nesting > maxNesting) throw graphqlError('TOO_COMPLEX', `A filter nests ${maxNesting} deep at most.`)
    const own = Object.entries(leaves).flatMap(([field, leaf]) => {
      const value = one[field as keyof typeof leaves]
      if (value === null || value === undefined) return []
      count += 1
      if (count > maxLeaves) throw graphqlError('TOO_COMPLEX', `A filter has ${maxLeaves} conditions at most.`)
      return [leaf(value as never)]
    })
    const all = [
      ...own,
      ...(one.and ?? []).map((part) => read(part, nesting + 1)),
      ...(one.or ? [anyOf(one.or.map((part) => read(part, nesting + 1)))] : []),
      ...(one.not ? [{ kind: 'not' as const, of: read(one.not, nesting + 1) }] : []),
    ]
    return all.length === 1 && all[0] !== undefined ? all[0] : { kind: 'and', of: all }
  }

  return read(filter ?? {}, 1)
}

function anyOf(of: readonly ProductCondition[]): ProductCondition {
  if (of.length === 0) throw graphqlError('BAD_USER_INPUT', '"or" needs at least one filter.')
  return { kind: 'or', of }
}

const leaves = {
  brand: (value: string) => ({ kind: 'brand', value: parseText('brand', value) }),
  verified: (value: boolean) => ({ kind: 'verified', value }),
  nameContains: (value: string) => {
    if (Array.from(value).length < shortestPart)
      throw graphqlError('BAD_USER_INPUT', `"nameContains" needs at least ${shortestPart} characters.`)
    return { kind: 'nameContains', value: parseText('nameContains', value) }
  },
  owner: (value: string) => ({ kind: 'owner', value: parseAddress(value) }),
  state: (value: LifecycleState) => ({ kind: 'state', value: lifecycleStates.indexOf(value) as StateCode }),
  tagId: (value: string) => ({ kind: 'tagId', value: parseText('tagId', value) }),
  createdAfter: (value: string) => ({ kind: 'createdAfter', value }),
  createdBefore: (value: string) => ({ kind: 'createdBefore', value }),
} satisfies Readonly<Record<string, (value: never) => ProductCondition>>

/** Databases reject NUL and half surrogate pairs. */
function parseText(field: string, value: string): string {
  if (value.length <= 2 * longestText && !value.includes('\0') && value.isWellFormed()) return value
  throw graphqlError('BAD_USER_INPUT', `"${field}" has at most ${2 * longestText} characters of well-formed Unicode.`)
}

/** Capitals must be the checksum (EIP-55), which detects typing errors. */
function parseAddress(value: string): Hex {
  const lower = value.toLowerCase() as Hex
  if (isAddress(value) && (value === lower || value === checksumAddress(lower))) return lower
  throw graphqlError('BAD_USER_INPUT', '"owner" is an address, 0x and 40 hex digits; capitals must be its checksum.')
}
