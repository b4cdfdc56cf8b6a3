/** The stores that GraphQL reads: the index of the chain, and the log of taps. */
import type { Database } from '../db/database.ts'
import { historyStore } from '../index/history.ts'
import { groupStore } from '../index/queries/groups.ts'
import { readMeta } from '../index/queries/meta.ts'
import { pastStore } from '../index/queries/past.ts'
import { productStore } from '../index/queries/products.ts'
import { transferStore } from '../index/queries/transfers.ts'
import { tapQueries } from '../tap/log/queries.ts'

export type IndexStores = ReturnType<typeof indexStores>

/** The queries of the index over one database. */
export function indexStores(database: Pick<Database, 'query' | 'transaction' | 'dialect'>) {
  return {
    products: productStore(database),
    transfers: transferStore(database),
    history: historyStore(database),
    past: pastStore(database),
    groups: groupStore(database),
    meta: () => readMeta(database),
    taps: tapQueries(database),
  }
}
