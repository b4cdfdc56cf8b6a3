/** What every resolver is given: whose request it is, and loaders that gather the reads of one request. */
import type DataLoader from 'dataloader'
import type { Hex } from '@touchstone/verdict'
import type { ApiKey } from '../store/api-keys.ts'
import type { HistoryAnswer, HistoryQuestion } from '../store/product-history.ts'
import type { ProductRow, ProductStore } from '../store/products.ts'
import type { TransferRow, TransferStore } from '../store/transfers.ts'
import { graphqlError } from './error-codes.ts'

/** `requestId` is for the log and for masked faults. */
export type GraphqlContext = {
  readonly key: ApiKey
  readonly requestId: string
  readonly loaders: Loaders
  readonly lists: { readonly products: ProductStore; readonly transfers: TransferStore }
}

/** Each gathers what is asked for in one turn into one statement. Null and empty stand for what is not there. */
export type Loaders = {
  readonly productByToken: DataLoader<bigint, ProductRow | null>
  readonly transferById: DataLoader<string, TransferRow | null>
  /** The newest 100 of a product, by its `pk`. */
  readonly transfersOf: DataLoader<bigint, readonly TransferRow[]>
  /** Texts that go with transfers, by their hash. */
  readonly message: DataLoader<Hex, string | null>
  readonly history: DataLoader<HistoryQuestion, HistoryAnswer, string>
}

/** Throws FORBIDDEN where the key lacks the scope. */
export function demandScope({ key }: GraphqlContext, scope: ApiKey['scopes'][number]): void {
  if (!key.scopes.includes(scope))
    throw graphqlError('FORBIDDEN', `This API key lacks the scope ${scope}. Make one with: touchstone key create`)
}
