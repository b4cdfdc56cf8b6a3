/** Products of the index (spec §2.9, §4.9): by their tokens, or in pages by keyset, which cost the same at any depth. */
import type { Hex, StateCode } from '@touchstone/verdict'
import { countWithin } from '../../db/bounded-count.ts'
import { briefReads, CostError, createCostCheck, maxPlanCost } from '../../db/cost.ts'
import { behindOf, hex, instant, type Keyset } from '../../db/columns.ts'
import type { Database, Sql } from '../../db/database.ts'
import type { BlockId } from '../../domain/chain.ts'
import { type IndexDatabase, wholeReads } from '../steps.ts'
import { countOfBrands, haveFewProducts } from './brands.ts'
import { brandsOf, partsOf, type ProductCondition, sqlOf, withNames } from './condition.ts'

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
  /** The earlier block at which the row was asked for; left out for the present. */
  readonly at?: PastBlock
}

/** A block whose state is kept. `time` is in unix seconds. A row of an older version stands for the time of the last event up to it. */
export type PastBlock = BlockId & Readonly<{ time: bigint }>

/** The rows of `asset` that changed after a block, as they were then, in JSON. */
export type PastAssets = Readonly<{ block: bigint; rows: string }>

/** The sort keys of lists: the text of a column, or of the expression that an index is over. */
const productSortKeys = {
  created: 'created_at',
  updated: 'updated_at',
  name: `lower(coalesce(name, '') collate "C")`,
} as const
type ProductSortKey = keyof typeof productSortKeys

/** A page in the order of `by`, from the row behind `after` on. */
export type ProductPage = {
  readonly condition: ProductCondition
  readonly by: ProductSortKey
  readonly descending: boolean
  readonly after: Keyset | null
  readonly limit: number
}

export type ProductStore = ReturnType<typeof productStore>

export function productStore(database: IndexDatabase) {
  const [whole, briefly] = [wholeReads(database), wholeReads(briefReads(database))]
  const isDistributed = database.dialect === 'citus'
  const columns = columnsOf(isDistributed)
  const assertCheap = createCostCheck(database)
  const statementOf = (page: ProductPage) => productPageStatement(page, { isDistributed })
  const rowsOf = (text: string, values: readonly unknown[], reads = whole) =>
    reads(async (sql, cursor) => (await sql.query<StoredProduct>(text, values)).map((row) => parseProduct(row, cursor)))
  return {
    /** Returns the indexed products of these tokens, in no order. */
    byTokens: (tokenIds: readonly bigint[]): Promise<ProductRow[]> =>
      rowsOf(`select ${columns} from asset where token_id = any($1::text[]::numeric[])`, [tokenIds.map(String)]),
    /** Returns the indexed products of these tags, by their commitments, in no order. */
    byTags: (tagHashes: readonly Hex[]): Promise<ProductRow[]> =>
      rowsOf(`select ${columns} from asset where tag_hash = any($1::text[]::bytea[])`, [
        tagHashes.map((hash) => `\\x${hash.slice(2)}`),
      ]),
    /** Returns one page. Throws a CostError where PostgreSQL expects that it reads too much. */
    async page(given: ProductPage): Promise<ProductRow[]> {
      const { page, isCheap } = await plannedPage(database, given)
      const { text, values } = statementOf(page)
      if (isIndexed(page)) return rowsOf(text, values)
      if (!isCheap) {
        // Pages behind the first cost no more.
        const first = statementOf({ ...page, after: null })
        await assertCheap(first.text, first.values)
      }
      return rowsOf(text, values, briefly)
    },
    /** Returns the number of products, by the stored sums or by a count; null where a count takes too long. */
    async count(condition: ProductCondition): Promise<number | null> {
      const values: unknown[] = []
      const states =
        condition.kind === 'state' ? [condition.value] : condition.kind === 'states' ? condition.value : null
      if (states !== null)
        return sumOf("product_group where dimension = 'STATE' and key = any($1::text[])", [states.map(String)])
      const counted = countedBy(condition)
      if (counted === null) {
        const named = (await haveFewProducts(database, brandsOf(condition)))
          ? condition
          : await withNames(database, condition)
        return countWithin(database, `select from asset where ${sqlOf(named, values)}`, values)
      }
      const sums = counted.brand === undefined ? 'product_total' : 'product_count'
      return sumOf(`${sums} where ${sqlOf(condition, values)}`, values)
    },
  }

  async function sumOf(sums: string, values: readonly unknown[]): Promise<number> {
    const [row] = await database.query<{ n: bigint }>(`select coalesce(sum(n), 0)::bigint n from ${sums}`, values)
    return Number(row?.n ?? 0n)
  }
}

/**
 * `past` replaces the rows that changed after an earlier block. Their `pastCondition` has no `names`, which are those of today. On a cluster,
 * each shard merges the products of several names itself.
 */
export function productPageStatement(
  { condition, by, descending, after, limit }: ProductPage,
  {
    past,
    pastCondition = condition,
    isDistributed = false,
  }: Readonly<{ past?: PastAssets; pastCondition?: ProductCondition; isDistributed?: boolean }> = {},
) {
  const values: unknown[] = past === undefined ? [] : [past.rows]
  const direction = descending ? 'desc' : 'asc'
  const key = productSortKeys[by]
  const order = `order by ${key} ${direction}, pk ${direction}`
  const rowsOf = (columns: string, table: string, one: ProductCondition, also: string) => {
    const wanted = [sqlOf(one, values), also]
    if (after !== null) wanted.push(behindOf(`(${key}, pk)`, descending ? '<' : '>', after, values, by === 'name'))
    return `select ${columns} from ${table} where ${wanted.filter(Boolean).join(' and ')}
    ${order} limit $${values.push(limit)}`
  }
  const columns = columnsOf(isDistributed)
  const branches = branchesOf(condition)
  const [only] = branches
  const unchanged = past === undefined ? '' : unchangedSince(past, values)
  const named = isDistributed ? null : namesOf(condition)
  if (past === undefined && named === null && only !== undefined && branches.length === 1)
    return { text: rowsOf(columns, 'asset', only, ''), values }
  const parts = named === null ? branches.map((one) => rowsOf('*', 'asset', one, unchanged)) : [eachNamed(named)]
  if (past !== undefined) parts.push(rowsOf('*', pastTable, pastCondition, ''))
  const text = `select ${columns} from (${parts.map((part) => `(${part})`).join(' union all ')}) asset
    ${order} limit $${values.push(limit)}`
  return { text, values }

  /** An index has the products of one name in the order of the list. */
  function eachNamed({ names, others }: NonNullable<ReturnType<typeof namesOf>>): string {
    const wanted = `unnest($${values.push(names)}::text[]) wanted (named)`
    const rows = rowsOf('*', 'asset', others, ['name = wanted.named', unchanged].filter(Boolean).join(' and '))
    return `select asset.* from ${wanted} cross join lateral (${rows}) asset`
  }
}

/** Takes the names out of a condition; null where it is about no names. */
function namesOf(condition: ProductCondition): { names: readonly string[]; others: ProductCondition } | null {
  const parts = partsOf(condition)
  const named = parts.find((part) => part.kind === 'names')
  if (named?.kind !== 'names') return null
  return { names: named.value, others: { kind: 'and', of: parts.filter((part) => part !== named) } }
}

/** Splits a condition on several brands or states into one for each. An index over either keeps the order of one only. */
function branchesOf(condition: ProductCondition): readonly ProductCondition[] {
  const parts = partsOf(condition)
  const several = parts.find(({ kind }) => kind === 'brands') ?? parts.find(({ kind }) => kind === 'states')
  const each = several === undefined ? [] : eachOf(several)
  if (each.length === 0) return [condition]
  const others = parts.filter((part) => part !== several)
  return each.map((one) => ({ kind: 'and', of: [...others, one] }))
}

function eachOf(condition: ProductCondition): readonly ProductCondition[] {
  if (condition.kind === 'brands') return condition.value.map((value) => ({ kind: 'brand', value }))
  return condition.kind === 'states' ? condition.value.map((value) => ({ kind: 'state', value })) : []
}

/** Selects the products of an earlier block, without columns. */
export function productsWhere(condition: ProductCondition, past: PastAssets) {
  const values: unknown[] = [past.rows]
  const unchanged = `select 1 from asset where ${sqlOf(condition, values)} and ${unchangedSince(past, values)}`
  return { text: `${unchanged} union all select 1 from ${pastTable} where ${sqlOf(condition, values)}`, values }
}

/** The embedded database compares so many products with a condition for one unit of cost. The process does nothing else meanwhile. */
const comparisonsPerUnit = 250

/**
 * Returns a page as it is read, with the products of a rare name looked up. `isCheap`: its brands have few products, and one after another
 * is read. Any other page that no index has is asked for its cost. Throws a CostError where the embedded database would compare too many.
 */
export async function plannedPage(
  database: Sql & Pick<Database, 'dialect'>,
  given: ProductPage,
): Promise<{ readonly page: ProductPage; readonly isCheap: boolean }> {
  if (isIndexed(given)) return { page: given, isCheap: true }
  if (await haveFewProducts(database, brandsOf(given.condition))) return { page: given, isCheap: true }
  const page = { ...given, condition: await withNames(database, given.condition) }
  if (!isIndexed(page) && database.dialect === 'pglite') await assertFewComparisons(database, page.condition)
  return { page, isCheap: false }
}

/** Throws a CostError for too many comparisons. Where a condition names brands, only their products are compared. */
async function assertFewComparisons(sql: Sql, condition: ProductCondition): Promise<void> {
  const brands = brandsOf(condition)
  const products = brands === null ? await countOfAll(sql) : await countOfBrands(sql, brands)
  const cost = Math.ceil((products * leavesOf(condition)) / comparisonsPerUnit)
  if (cost > maxPlanCost) throw new CostError(cost)
}

async function countOfAll({ query }: Sql): Promise<number> {
  const [row] = await query<{ n: bigint | null }>('select sum(n)::bigint n from product_total')
  return Number(row?.n ?? 0n)
}

function leavesOf(condition: ProductCondition): number {
  if (condition.kind === 'not') return leavesOf(condition.of)
  if (condition.kind !== 'and' && condition.kind !== 'or') return 1
  return condition.of.reduce((sum, one) => sum + leavesOf(one), 0)
}

/** The rows of an earlier block, whose JSON is the first value of the statement. */
export const pastTable = 'jsonb_populate_recordset(null::asset, $1::text::jsonb) asset'

function unchangedSince({ block }: PastAssets, values: unknown[]): string {
  return `updated_block <= $${values.push(block)}::bigint`
}

const ownColumns = `pk, token_id::text as "tokenId", ${hex('owner')} as owner, state, flags, ${hex('metadata_hash')} as "metadataHash",
  ${hex('tag_hash')} as "tagHash", tag_id as "tagId", name, brand, serial, gtin, verified, ${instant('created_at')} as "createdAt",
  ${instant('updated_at')} as "updatedAt"`

/** SQL for a product. On a cluster the cursor is asked apart: the statement would be sent to the shards with it. */
export function columnsOf(isDistributed: boolean): string {
  if (isDistributed) return ownColumns
  return `${ownColumns}, (select number from index_cursor) as "indexedNumber",
  (select ${hex('hash')} from index_cursor) as "indexedHash"`
}

export type StoredProduct = Omit<ProductRow, 'tokenId' | 'indexed'> & {
  readonly tokenId: string
  readonly indexedNumber?: bigint | null
  readonly indexedHash?: Hex | null
}

/** Conditions on one thing whose rows an index has in the order of their mints. */
const indexedKinds: ReadonlySet<ProductCondition['kind']> = new Set([
  ...(['brand', 'tagId', 'gtin', 'serial', 'createdAfter', 'createdBefore', 'verified', 'tagged'] as const),
  ...(['tokens', 'brands', 'states', 'names', 'report', 'owner', 'state'] as const),
])

/** Returns whether an index has the rows of a page one after another. Any other page is asked for its cost first, and gets less time. */
export function isIndexed({ condition, by }: ProductPage): boolean {
  const { kind } = condition
  if (kind === 'and' && condition.of.length === 0) return true
  if (by === 'updated') return kind === 'updatedAfter' || kind === 'updatedBefore'
  if (by !== 'created') return false
  if (kind === 'and') {
    const kinds = new Set(condition.of.map((one) => one.kind))
    return condition.of.length === 2 && kinds.has('brand') && kinds.has('verified')
  }
  return kind === 'flagged' ? condition.value : indexedKinds.has(kind)
}

/** `cursor` is the block of a row that names none. */
export function parseProduct(
  { tokenId, indexedNumber, indexedHash, ...row }: StoredProduct,
  cursor: BlockId | null,
): ProductRow {
  const number = indexedNumber ?? cursor?.number ?? -1n
  const hash = indexedHash ?? cursor?.hash ?? null
  const indexed = number < 0n || hash === null ? null : { number, hash }
  return { ...row, tokenId: BigInt(tokenId), indexed }
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
