/** ProductFilter of the schema as a condition (spec §4.9), with the same limits for literals and variables. */
import {
  assetFlags,
  lifecycleStates,
  parseTokenId,
  type Hex,
  type LifecycleState,
  type StateCode,
} from '@touchstone/verdict'
import { parseAddress } from '../../domain/address.ts'
import type { ProductCondition } from '../../index/queries/condition.ts'
import { graphqlError } from '../errors.ts'
import { isGiven } from './pages.ts'

/** Null is the same as left out. */
export type ProductFilter = { readonly [Field in keyof Leaves]?: Parameters<Leaves[Field]>[0] | null } & {
  readonly and?: readonly ProductFilter[] | null
  readonly or?: readonly ProductFilter[] | null
  readonly not?: ProductFilter | null
}
type Leaves = typeof leaves

const maxNesting = 4
const maxLeaves = 20
const longestText = 200
const shortestPart = 3
const maxIds = 100

/** Throws BAD_USER_INPUT for a filter that cannot hold, and TOO_COMPLEX for one that is too large. */
export function parseFilter(filter: ProductFilter | null | undefined): ProductCondition {
  let count = 0
  const countOne = () => {
    count += 1
    if (count > maxLeaves) throw graphqlError('TOO_COMPLEX', `A filter has ${maxLeaves} conditions at most.`)
  }

  function read(one: ProductFilter, nesting: number): ProductCondition {
    if (nesting > maxNesting)
      throw graphqlError('TOO_COMPLEX', `A filter nests ${maxNesting} deep at most. Join its conditions in one "or".`)
    const own = Object.entries(leaves).flatMap(([field, leaf]) => {
      const value = one[field as keyof Leaves]
      if (!isGiven(value)) return []
      countOne()
      return [leaf(value as never)]
    })
    const all = [
      ...own,
      ...(one.and ?? []).map((part) => read(part, nesting + 1)),
      ...(one.or ? [anyOf(one.or.map((part) => read(part, nesting + 1)))] : []),
      ...(one.not ? [{ kind: 'not' as const, of: read(one.not, nesting + 1) }] : []),
    ]
    if (all.length === 0) countOne()
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
  owner: (value: string) => ({ kind: 'owner', value: parseOwner('owner', value) }),
  state: (value: LifecycleState) => ({ kind: 'state', value: lifecycleStates.indexOf(value) as StateCode }),
  tagId: (value: string) => ({ kind: 'tagId', value: parseText('tagId', value) }),
  createdAfter: (value: string) => ({ kind: 'createdAfter', value }),
  createdBefore: (value: string) => ({ kind: 'createdBefore', value }),
  updatedAfter: (value: string) => ({ kind: 'updatedAfter', value }),
  updatedBefore: (value: string) => ({ kind: 'updatedBefore', value }),
  ids: (values: readonly string[]) => {
    if (values.length > maxIds) throw graphqlError('TOO_COMPLEX', `"ids" has at most ${maxIds} ids.`)
    return { kind: 'tokens', value: values.map((id) => String(requireTokenId(id))) }
  },
  gtin: (value: string) => ({ kind: 'gtin', value: parseText('gtin', value) }),
  serialNumber: (value: string) => ({ kind: 'serial', value: parseText('serialNumber', value) }),
  states: (values: readonly LifecycleState[]) => ({
    kind: 'states',
    value: [...new Set(values)].map((value) => lifecycleStates.indexOf(value) as StateCode),
  }),
  flagged: (value: boolean) => ({ kind: 'flagged', value }),
  report: (value: keyof typeof assetFlags) => ({ kind: 'report', value: assetFlags[value] }),
  tagged: (value: boolean) => ({ kind: 'tagged', value }),
} satisfies Readonly<Record<string, (value: never) => ProductCondition>>

/** Databases reject NUL and half surrogate pairs. */
function parseText(field: string, value: string): string {
  if (value.length <= 2 * longestText && !value.includes('\0') && value.isWellFormed()) return value
  throw graphqlError('BAD_USER_INPUT', `"${field}" has at most ${2 * longestText} characters of well-formed Unicode.`)
}

/** Throws BAD_USER_INPUT when the text is not an address. */
export function parseOwner(field: string, value: string): Hex {
  const address = parseAddress(value)
  if (address !== null) return address
  throw graphqlError('BAD_USER_INPUT', `"${field}" is an address, 0x and 40 hex digits; capitals must be its checksum.`)
}

/** Throws BAD_USER_INPUT when the text is not a decimal token id. */
export function requireTokenId(text: string): bigint {
  const tokenId = parseTokenId(text)
  if (tokenId === null) throw graphqlError('BAD_USER_INPUT', 'A product id is the decimal token id, such as 7.')
  return tokenId
}
