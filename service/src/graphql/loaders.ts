/** The loaders of one request: each product, transfer and text is read once, and what is asked for in one turn goes out together. */
import DataLoader from 'dataloader'
import type { ApiKey } from '../store/api-keys.ts'
import type { ProductHistoryStore } from '../store/product-history.ts'
import type { ProductStore } from '../store/products.ts'
import type { TransferStore } from '../store/transfers.ts'
import type { GraphqlContext, Loaders } from './context.ts'

export type IndexStores = {
  readonly products: ProductStore
  readonly transfers: TransferStore
  readonly productHistory: ProductHistoryStore
}

/** Makes what the resolvers of one operation are given. `listing`: it asks for lists and nothing else. */
export type ContextOf = (key: ApiKey, requestId: string, listing?: boolean) => GraphqlContext

/** All of an operation is read at one place: lists from `listStores`, which may be a little behind; everything else from `stores`. */
export function createContextOf(stores: IndexStores, listStores: IndexStores = stores): ContextOf {
  return (key, requestId, listing = false) => {
    const from = listing ? listStores : stores
    return { key, requestId, lists: from, loaders: createLoaders(from) }
  }
}

export function createLoaders({ products, transfers, productHistory }: IndexStores): Loaders {
  return {
    productByToken: new DataLoader(async (tokenIds) => {
      const rows = new Map((await products.byTokens(tokenIds)).map((row) => [row.tokenId, row]))
      return tokenIds.map((tokenId) => rows.get(tokenId) ?? null)
    }),
    transferById: new DataLoader(async (ids) => {
      const rows = new Map((await transfers.byIds(ids)).map((row) => [row.id, row]))
      return ids.map((id) => rows.get(id) ?? null)
    }),
    transfersOf: new DataLoader(async (pks) => {
      const rows = await transfers.newestOf(pks)
      return pks.map((pk) => rows.get(pk) ?? [])
    }),
    message: new DataLoader(async (hashes) => {
      const texts = await transfers.messages(hashes)
      return hashes.map((hash) => texts.get(hash) ?? null)
    }),
    history: new DataLoader((questions) => productHistory.pages(questions), {
      cacheKeyFn: ({ tokenId, after, limit }) => `${tokenId} ${after?.join(' ')} ${limit}`,
    }),
  }
}
