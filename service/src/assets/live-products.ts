/**
 * Products of the index as their records on the chain are. A contract that is no registry of this project changes the flags of a record
 * without an event, so that the index does not have them (spec §2.2, §2.9).
 */
import { isAuthentic } from '@touchstone/verdict'
import type { AssetReader } from '../chain/assets/reader.ts'
import type { ProductRow, ProductStore } from '../index/queries/products.ts'

/** Reads records of the chain. Both throw CHAIN_UNAVAILABLE. */
export type Records = Pick<AssetReader, 'read' | 'emitsChanges'>

/**
 * Returns a store whose rows have owner, state and flags of the chain, at the block that they name. Conditions on them are those of the
 * index all the same. Rows of a registry of this project are those of the index.
 */
export function liveProducts(store: ProductStore, records: Records): ProductStore {
  const live = async (rows: Promise<ProductRow[]>) => {
    const [indexed, emitsChanges] = await Promise.all([rows, records.emitsChanges()])
    return emitsChanges ? indexed : Promise.all(indexed.map(withRecord))
  }

  async function withRecord(row: ProductRow): Promise<ProductRow> {
    const { asset, block } = await records.read(row.tokenId)
    const { owner, state, flags } = asset.record
    const indexed = { number: block.number, hash: block.hash }
    return { ...row, owner, state, flags, verified: row.verified && isAuthentic({ state, flags }), indexed }
  }

  return {
    byTokens: (tokenIds) => live(store.byTokens(tokenIds)),
    byTags: (tagHashes) => live(store.byTags(tagHashes)),
    page: (page) => live(store.page(page)),
    count: (condition) => store.count(condition),
  }
}
