/** The operations of `bench:graphql`: GraphQL texts and variables, and the same variables as the bare server takes them. */
import { listKey, formatCursor } from '../../service/src/graphql/queries/pages.ts'
import { parseFilter } from '../../service/src/graphql/queries/filter.ts'
import type { Sql } from '../../service/src/db/database.ts'
import { instant, type Keyset } from '../../service/src/db/columns.ts'

export type Operation = {
  readonly name: string
  readonly query: string
  readonly barePath: string
  /** Sent in turn. */
  readonly variables: readonly { readonly graphql: Record<string, unknown>; readonly bare: Record<string, unknown> }[]
}

export const pageSize = 50

const pageQuery = `query Products($first: Int, $after: String) {
  products(first: $first, after: $after) {
    edges { cursor node { id tagId name brand serialNumber verified createdAt updatedAt currentOwner { address }
      metadata { description origin } } }
    pageInfo { hasNextPage endCursor }
  }
}`
const productQuery = `query Product($id: ID!) {
  product(id: $id) { id tagId name brand serialNumber verified createdAt updatedAt state currentOwner { address }
    transfers { id status timestamp txHash from { address } to { address } } }
}`
const countQuery = `query Count($filter: ProductFilter) { products(first: 1, filter: $filter) { totalCount } }`

/** A page of 50 products that begins behind `rows` others, and the nineteen after it in steps of 50. */
export async function pagesBehind(sql: Sql, rows: number): Promise<Operation> {
  const list = listKey('instant', 'products', parseFilter(null), 'CREATED_AT', 'DESC', undefined)
  const places = rows === 0 ? [null] : await placesAt(sql, rows)
  const variables = places.map((place) => ({
    graphql: { first: pageSize, after: place && formatCursor(list.name, place) },
    bare: { first: pageSize, ...(place !== null && { place }) },
  }))
  return { name: `page ${Math.floor(rows / pageSize) + 1}`, query: pageQuery, barePath: '/page', variables }
}

async function placesAt(sql: Sql, rows: number): Promise<Keyset[]> {
  const found = await sql.query<{ at: string; pk: bigint }>(
    `select ${instant('created_at')} as at, pk from asset order by created_at desc, pk desc offset $1 limit $2`,
    [rows - 1, 20 * pageSize],
  )
  return found.filter((_, index) => index % pageSize === 0).map(({ at, pk }) => [at, String(pk)])
}

/** Products with three transfers each, a thousand of them in turn. */
export function productsWithTransfers(products: number): Operation {
  const tens = Math.floor(products / 10)
  const variables = Array.from({ length: Math.min(1_000, tens) }, (_, index) => {
    const id = String(((index * 7_919) % tens) * 10 + 1)
    return { graphql: { id }, bare: { id } }
  })
  return { name: 'product with transfers', query: productQuery, barePath: '/product', variables }
}

/** Counting, from the sums that are kept and, for other filters, row by row. `where` is the same condition as SQL. */
export const counts: readonly { readonly operation: Operation; readonly where: string }[] = [
  { name: 'count, all', filter: null, where: 'true' },
  { name: 'count, a brand', filter: { brand: 'Brand 7' }, where: "brand = 'Brand 7'" },
  { name: 'count, verified', filter: { verified: true }, where: 'verified' },
  { name: 'count, a state', filter: { state: 'CLAIMED' } as const, where: 'state = 4' },
  { name: 'count, part of a name', filter: { nameContains: 'jacket 00a' }, where: "name like '%jacket 00a%'" },
].map(({ name, filter, where }) => {
  const variables = [{ graphql: { filter }, bare: { filter } }]
  return { operation: { name, query: countQuery, barePath: '/count', variables }, where }
})
