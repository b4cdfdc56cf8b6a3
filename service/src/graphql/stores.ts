/** The stores that GraphQL reads: the index of the chain, and the log of taps. */
import { historyStore } from '../index/history.ts'
import { haveFewProducts } from '../index/queries/brands.ts'
import { groupStore } from '../index/queries/groups.ts'
import { readMeta } from '../index/queries/meta.ts'
import { pastStore } from '../index/queries/past.ts'
import { productStore } from '../index/queries/products.ts'
import { transferStore } from '../index/queries/transfers.ts'
import type { IndexDatabase } from '../index/steps.ts'
import { tapQueries } from '../tap/log/queries.ts'

export type IndexStores = ReturnType<typeof indexStores>

/** The queries of the index over one database. Reads whose answer may be that there is none go over `whole` (index/contract.ts). */
export function indexStores(database: IndexDatabase, whole = database) {
  return {
    products: productStore(whole),
    transfers: transferStore(whole),
    history: historyStore(whole),
    past: pastStore(whole),
    groups: groupStore(whole),
    meta: () => readMeta(database),
    taps: tapQueries(database, whole, (brands) => haveFewProducts(database, brands)),
  }
}
