/** The queries of spec §4.9, from the index. */
import { parseTokenId } from '@touchstone/verdict'
import type { Keyset, ProductRow } from '../store/products.ts'
import type { TransferRow, TransferStatus } from '../store/transfers.ts'
import { demandScope, type GraphqlContext } from './context.ts'
import { graphqlError } from './error-codes.ts'
import { connection, listName, readPage, type Connection, type PageArguments } from './page-arguments.ts'
import { productFields, type ProductFieldDeps } from './product-fields.ts'
import { conditionOf, type ProductFilter } from './product-filter.ts'
import type { ResolverMap } from './resolvers.ts'
import { transferFields } from './transfer-fields.ts'

/** Resolvers of Query and of the types that it gives, but for transferTypedData. */
export function queryResolvers(deps: ProductFieldDeps): ResolverMap {
  return {
    ...productFields(deps),
    ...transferFields,
    Query: {
      product(_root: unknown, { id }: { id: string }, context: GraphqlContext) {
        demandScope(context, 'read')
        return context.loaders.productByToken.load(tokenIdOf(id))
      },

      async products(
        _root: unknown,
        given: ProductsArguments,
        context: GraphqlContext,
      ): Promise<Connection<ProductRow>> {
        demandScope(context, 'read')
        const { field = 'CREATED_AT', direction = 'DESC' } = given.orderBy ?? {}
        const condition = conditionOf(given.filter)
        const list = listName('products', condition, field, direction)
        const page = readPage(given, list)
        const { products } = context.lists
        const rows = await products.page({
          condition,
          by: field === 'CREATED_AT' ? 'created_at' : 'updated_at',
          descending: (direction === 'DESC') !== page.backward,
          after: page.from,
          limit: page.size + 1,
        })
        const placeOfRow = (row: ProductRow): Keyset => [
          field === 'CREATED_AT' ? row.createdAt : row.updatedAt,
          String(row.pk),
        ]
        return connection({ page, list, rows, placeOfRow, totalCount: () => counted(products.count(condition)) })
      },

      async transfers(
        _root: unknown,
        given: TransfersArguments,
        context: GraphqlContext,
      ): Promise<Connection<TransferRow>> {
        demandScope(context, 'read')
        const filter = {
          tokenId: typeof given.productId === 'string' ? tokenIdOf(given.productId) : null,
          status: given.status ?? null,
        }
        const list = listName('transfers', String(filter.tokenId), filter.status)
        const page = readPage({ first: given.first ?? null, after: given.after ?? null }, list)
        const { transfers } = context.lists
        const rows = await transfers.page({ ...filter, after: page.from, limit: page.size + 1 })
        const placeOfRow = ({ initiatedAt, pk }: TransferRow): Keyset => [initiatedAt, String(pk)]
        return connection({ page, list, rows, placeOfRow, totalCount: () => counted(transfers.count(filter)) })
      },

      transfer(_root: unknown, { id }: { id: string }, context: GraphqlContext) {
        demandScope(context, 'read')
        if (id.length > 200 || !/^\d+(-\d+){1,2}$/.test(id))
          throw graphqlError('BAD_USER_INPUT', 'A transfer id is <tokenId>-<nonce>, such as 7-1.')
        return context.loaders.transferById.load(id)
      },
    },
  }
}

type ProductsArguments = PageArguments & {
  readonly filter?: ProductFilter | null
  readonly orderBy?: { readonly field: 'CREATED_AT' | 'UPDATED_AT'; readonly direction: 'ASC' | 'DESC' } | null
}
type TransfersArguments = Pick<PageArguments, 'first' | 'after'> & {
  readonly productId?: string | null
  readonly status?: TransferStatus | null
}

function tokenIdOf(text: string): bigint {
  const tokenId = parseTokenId(text)
  if (tokenId === null) throw graphqlError('BAD_USER_INPUT', 'A product id is the decimal token id, such as 7.')
  return tokenId
}

async function counted(count: Promise<number | null>): Promise<number> {
  const n = await count
  if (n === null) throw graphqlError('TOO_COMPLEX', 'Counting takes too long under this filter; the page is complete.')
  return n
}
