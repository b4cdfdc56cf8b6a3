/** The context of resolvers: the API key of the request, and loaders that batch its reads. */
import DataLoader from 'dataloader'
import type { Hex } from '@touchstone/verdict'
import type { Database } from '../db/database.ts'
import { productHistoryStore, type HistoryAnswer, type HistoryQuestion } from '../index/queries/product-history.ts'
import { productStore, type ProductRow } from '../index/queries/products.ts'
import { transferStore, type TransferRow } from '../index/queries/transfers.ts'
import type { ApiKey, Scope } from './api-keys.ts'
import { graphqlError } from './errors.ts'

export type GraphqlContext = {
  readonly key: ApiKey
  /** Written to the log, and shown with faults that are masked. */
  readonly requestId: string
  readonly loaders: Loaders
  readonly lists: Pick<IndexStores, 'products' | 'transfers'>
}

/** Throws FORBIDDEN when the key lacks the scope. */
export function demandScope({ key }: GraphqlContext, scope: Scope): void {
  if (!key.scopes.includes(scope))
    throw graphqlError('FORBIDDEN', `This API key lacks the scope ${scope}. Make one with: touchstone key create`)
}

export type IndexStores = ReturnType<typeof indexStores>

/** The queries of the index over one database. */
export function indexStores(database: Pick<Database, 'query' | 'transaction' | 'dialect'>) {
  return {
    products: productStore(database),
    transfers: transferStore(database),
    productHistory: productHistoryStore(database),
  }
}

/** Creates the context of one operation. `listing`: the operation reads lists only. */
export type CreateContext = (key: ApiKey, requestId: string, listing?: boolean) => GraphqlContext

/** An operation reads one database: `listStores`, which may be a few seconds behind, when it only lists, else `stores`. */
export function contextFactory(stores: IndexStores, listStores: IndexStores = stores): CreateContext {
  return (key, requestId, listing = false) => {
    const lists = listing ? listStores : stores
    return { key, requestId, lists, loaders: createLoaders(lists) }
  }
}

/** Each loader reads what is asked for in one turn by one statement. Null and empty stand for a missing row. */
export type Loaders = {
  readonly productByToken: DataLoader<bigint, ProductRow | null>
  readonly transferById: DataLoader<string, TransferRow | null>
  /** The newest 100 of a product, by its `pk`. */
  readonly transfersOf: DataLoader<bigint, readonly TransferRow[]>
  /** Messages of transfers, by their hash. */
  readonly message: DataLoader<Hex, string | null>
  readonly history: DataLoader<HistoryQuestion, HistoryAnswer, string>
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
