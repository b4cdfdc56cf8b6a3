/** Products of the index (spec §2.9, §4.9): by their tokens, or in pages by keyset, which cost the same at any depth. */
import type { Hex, StateCode } from '@touchstone/verdict'
import { countWithin } from '../../db/bounded-count.ts'
import { hex, instant } from '../../db/columns.ts'
import type { Database } from '../../db/database.ts'
import type { BlockId } from '../../domain/chain.ts'

/** One row of `asset`. Times are RFC 3339 with microseconds, in UTC. */
export type ProductRow = {
  /** Null for a product that is minted but not indexed yet. */
  readonly pk: bigint | null
  readonly tokenId: bigint
  /** Lower case. */
  readonly owner: Hex
  readonly state: StateCode
  readonly flags: number
  readonly metadataHash: Hex | null
  readonly tagHash: Hex | null
  readonly tagId: string | null
  readonly name: string | null
  readonly brand: string | null
  readonly serial: string | null
  readonly gtin: string | null
  readonly verified: boolean
  readonly createdAt: string
  readonly updatedAt: string
  /** The block up to which the index is complete, from the same snapshot; null before the first. */
  readonly indexed: BlockId | null
}

/** Instants are RFC 3339 text, exact to the microsecond; `createdAfter` and `createdBefore` leave their own instant out. */
export type ProductCondition =
  | Readonly<{ kind: 'brand' | 'tagId' | 'nameContains' | 'createdAfter' | 'createdBefore'; value: string }>
  | Readonly<{ kind: 'verified'; value: boolean }>
  | Readonly<{ kind: 'owner'; value: Hex }>
  | Readonly<{ kind: 'state'; value: StateCode }>
  | Readonly<{ kind: 'and' | 'or'; of: readonly ProductCondition[] }>
  | Readonly<{ kind: 'not'; of: ProductCondition }>

/** The last row of the page before: its time in the order, to the microsecond, and its `pk`. */
export type Keyset = readonly [at: string, pk: string]

/** A page in the order of `by`, from the row behind `after` on. */
export type ProductPage = {
  readonly condition: ProductCondition
  readonly by: 'created_at' | 'updated_at'
  readonly descending: boolean
  readonly after: Keyset | null
  readonly limit: number
}

export type ProductStore = ReturnType<typeof productStore>

export function productStore(database: Pick<Database, 'query' | 'transaction' | 'dialect'>) {
  return {
    /** Returns the indexed products of these tokens, in no order. */
    async byTokens(tokenIds: readonly bigint[]): Promise<ProductRow[]> {
      const rows = await database.query<StoredProduct>(
        `select ${columns} from asset where token_id = any($1::text[]::numeric[])`,
        [tokenIds.map(String)],
      )
      return rows.map(productOf)
    },
    /** Returns one page, in one statement. */
    async page(page: ProductPage): Promise<ProductRow[]> {
      const { text, values } = productPageStatement(page)
      return (await database.query<StoredProduct>(text, values)).map(productOf)
    },
    /** Returns the number of products, by the stored sums or by a count; null where a count takes too long. */
    async count(condition: ProductCondition): Promise<number | null> {
      const values: unknown[] = []
      const counted = countedBy(condition)
      if (counted === null) return countWithin(database, `select from asset where ${sqlOf(condition, values)}`, values)
      const sums = counted.brand === undefined ? 'product_total' : 'product_count'
      const text = `select coalesce(sum(n), 0)::bigint n from ${sums} where ${sqlOf(condition, values)}`
      const [row] = await database.query<{ n: bigint }>(text, values)
      return Number(row?.n ?? 0n)
    },
  }
}

export function productPageStatement({ condition, by, descending, after, limit }: ProductPage) {
  const values: unknown[] = []
  const wanted = [sqlOf(condition, values)]
  if (after !== null) wanted.push(behindOf(`(${by}, pk)`, descending ? '<' : '>', after, values))
  const direction = descending ? 'desc' : 'asc'
  const text = `select ${columns} from asset where ${wanted.join(' and ')}
    order by ${by} ${direction}, pk ${direction} limit $${values.push(limit)}`
  return { text, values }
}

/** Formats the condition that rows lie behind this one; its values are appended to `values`. */
export function behindOf(columns: string, order: '<' | '>', [at, pk]: Keyset, values: unknown[]): string {
  return `${columns} ${order} ($${values.push(at)}::text::timestamptz, $${values.push(pk)}::text::bigint)`
}

const columns = `pk, token_id::text as "tokenId", ${hex('owner')} as owner, state, flags, ${hex('metadata_hash')} as "metadataHash",
  ${hex('tag_hash')} as "tagHash", tag_id as "tagId", name, brand, serial, gtin, verified, ${instant('created_at')} as "createdAt",
  ${instant('updated_at')} as "updatedAt", (select number from index_cursor) as "indexedNumber",
  (select ${hex('hash')} from index_cursor) as "indexedHash"`

type StoredProduct = Omit<ProductRow, 'tokenId' | 'indexed'> & {
  readonly tokenId: string
  readonly indexedNumber: bigint | null
  readonly indexedHash: Hex | null
}

function productOf({ tokenId, indexedNumber: number, indexedHash: hash, ...row }: StoredProduct): ProductRow {
  const indexed = number === null || hash === null || number < 0n ? null : { number, hash }
  return { ...row, tokenId: BigInt(tokenId), indexed }
}

/** Formats a condition over `asset`; its values are appended to `values`, never written into the text. An empty «and» holds, an empty «or» does not. */
function sqlOf(condition: ProductCondition, values: unknown[]): string {
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

/** Returns brand and `verified` of a condition on nothing else; null for any other. */
function countedBy(condition: ProductCondition): { brand?: string; verified?: boolean } | null {
  if (condition.kind === 'brand') return { brand: condition.value }
  if (condition.kind === 'verified') return { verified: condition.value }
  if (condition.kind !== 'and') return null
  const kinds = new Set(condition.of.map(({ kind }) => kind))
  if (kinds.size < condition.of.length) return null
  const parts = condition.of.map(countedBy)
  return parts.includes(null) ? null : Object.assign({}, ...parts)
}
