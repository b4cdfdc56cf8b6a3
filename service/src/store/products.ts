/** Products as the index has them (spec §2.9, §4.9): by their tokens, or pages by keyset, which cost the same at any depth. */
import type { Hex, StateCode } from '@touchstone/verdict'
import { countWithin } from './bounded-count.ts'
import type { Database } from './database.ts'
import { countedBy, sqlOf, type ProductCondition } from './product-conditions.ts'

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
  readonly indexed: Readonly<{ number: bigint; hash: Hex }> | null
}

/** A row of the page before this one ends: its time in the order, to the microsecond, and its `pk`. */
export type Keyset = readonly [at: string, pk: string]

/** In the order of `by`; `after` a place in that direction. */
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
    /** The products of these tokens, as far as they are indexed, in no order. */
    async byTokens(tokenIds: readonly bigint[]): Promise<ProductRow[]> {
      const rows = await database.query<StoredProduct>(
        `select ${columns} from asset where token_id = any($1::text[]::numeric[])`,
        [tokenIds.map(String)],
      )
      return rows.map(productOf)
    },
    /** One page, in one statement. */
    async page(page: ProductPage): Promise<ProductRow[]> {
      const { text, values } = productPageStatement(page)
      return (await database.query<StoredProduct>(text, values)).map(productOf)
    },
    /** How many products a condition holds for: from the sums that are kept, else counted; null where that takes too long. */
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
  if (after !== null) {
    const [at, pk] = [values.push(after[0]), values.push(after[1])]
    wanted.push(`(${by}, pk) ${descending ? '<' : '>'} ($${at}::text::timestamptz, $${pk}::text::bigint)`)
  }
  const direction = descending ? 'desc' : 'asc'
  const text = `select ${columns} from asset where ${wanted.join(' and ')}
    order by ${by} ${direction}, pk ${direction} limit $${values.push(limit)}`
  return { text, values }
}

/** An instant as text, exact to the microsecond: a JS Date would cut it and make pages skip or repeat rows. */
export const instant = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
export const hex = (column: string): string => `'0x' || encode(${column}, 'hex')`

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
