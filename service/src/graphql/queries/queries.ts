/** The queries of spec §4.9, from the index. */
import { parseTokenId } from '@touchstone/verdict'
import type { TransferStatus } from '../../domain/chain-index.ts'
import type { ProductRow } from '../../index/queries/products.ts'
import type { TransferRow } from '../../index/queries/transfers.ts'
import { demandScope, type GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import type { ResolverMap } from '../schema.ts'
import { fieldResolvers, type ProductFieldDeps } from './fields.ts'
import { parseFilter, type ProductFilter } from './filter.ts'
import { listName, type PageArguments, readConnection } from './pages.ts'

/** Resolvers of Query and of the types that it returns, without transferTypedData. */
export function queryResolvers(deps: ProductFieldDeps): ResolverMap {
  return {
    ...fieldResolvers(deps),
    Query: {
      product(_root: unknown, { id }: { id: string }, context: GraphqlContext) {
        demandScope(context, 'read')
        return context.loaders.productByToken.load(parseProductId(id))
      },

      products(_root: unknown, given: ProductsArguments, context: GraphqlContext) {
        demandScope(context, 'read')
        const { products } = context.lists
        const { field = 'CREATED_AT', direction = 'DESC' } = given.orderBy ?? {}
        const condition = parseFilter(given.filter)
        const [by, time] =
          field === 'CREATED_AT' ? (['created_at', 'createdAt'] as const) : (['updated_at', 'updatedAt'] as const)
        return readConnection<ProductRow>(
          given,
          listName('products', condition, field, direction),
          ({ backward, ...page }) => ({
            rows: products.page({ condition, by, descending: (direction === 'DESC') !== backward, ...page }),
            count: () => products.count(condition),
            placeOf: (row) => [row[time], String(row.pk)],
          }),
        )
      },

      transfers(_root: unknown, given: TransfersArguments, context: GraphqlContext) {
        demandScope(context, 'read')
        const { transfers } = context.lists
        const { productId, status = null } = given
        const tokenId = typeof productId === 'string' ? parseProductId(productId) : null
        return readConnection<TransferRow>(
          given,
          listName('transfers', String(tokenId), status),
          ({ after, limit }) => ({
            rows: transfers.page({ tokenId, status, after, limit }),
            count: () => transfers.count({ tokenId, status }),
            placeOf: ({ initiatedAt, pk }) => [initiatedAt, String(pk)],
          }),
        )
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
type TransfersArguments = PageArguments & {
  readonly productId?: string | null
  readonly status?: TransferStatus | null
}

/** Throws BAD_USER_INPUT when the text is not a decimal token id. */
export function parseProductId(text: string): bigint {
  const tokenId = parseTokenId(text)
  if (tokenId === null) throw graphqlError('BAD_USER_INPUT', 'A product id is the decimal token id, such as 7.')
  return tokenId
}
