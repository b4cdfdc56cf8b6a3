/** The fields of Product and of what hangs on it (spec §2.9), from its row in the index. */
import { checksumAddress, isAuthentic, isFlagged, lifecycleStates, type Hex } from '@touchstone/verdict'
import type { HistoryRow } from '../store/product-history.ts'
import type { ProductRow } from '../store/products.ts'
import type { GraphqlContext } from './context.ts'
import { historyFields } from './history-fields.ts'
import { ownerOf } from './owner.ts'
import { connection, listName, readPage, type Connection, type PageArguments } from './page-arguments.ts'
import { createProductMetadata, type MetadataSource } from './product-metadata.ts'
import type { ResolverMap } from './resolvers.ts'
import { shown } from './shown-text.ts'

export type ProductFieldDeps = {
  /** Metadata texts by their hash; asked for many in one turn, it gathers them. */
  readonly metadata: MetadataSource
  readonly chainId: number
  readonly contract: Hex
}

export function productFields({ metadata, chainId, contract }: ProductFieldDeps): ResolverMap {
  const metadataOf = createProductMetadata(metadata)
  const registry = checksumAddress(contract)
  return {
    ...historyFields,
    Product: {
      id: ({ tokenId }: ProductRow) => tokenId.toString(),
      tagId: ({ tagId, tagHash }: ProductRow) => (tagId === null ? (tagHash ?? '') : shown(tagId)),
      name: ({ name, tokenId }: ProductRow) => (name === null ? '' : shown(name)) || `Asset ${tokenId}`,
      brand: ({ brand }: ProductRow) => (brand === null ? null : shown(brand) || null),
      serialNumber: ({ serial }: ProductRow) => (serial === null ? null : shown(serial) || null),
      metadata: ({ metadataHash }: ProductRow) => (metadataHash === null ? null : metadataOf(metadataHash)),
      currentOwner: ({ owner }: ProductRow) => ownerOf(owner),
      transfers: ({ pk }: ProductRow, _args: unknown, { loaders }: GraphqlContext) =>
        pk === null ? [] : loaders.transfersOf.load(pk),
      state: ({ state }: ProductRow) => lifecycleStates[state],
      stateCode: ({ state }: ProductRow) => state,
      flagged: (row: ProductRow) => isFlagged(row),
      authentic: (row: ProductRow) => isAuthentic(row),
      chainRef: ({ tokenId, indexed }: ProductRow) =>
        indexed && {
          chainId,
          contract: registry,
          tokenId: tokenId.toString(),
          blockNumber: Number(indexed.number),
          blockHash: indexed.hash,
        },
      history: historyPage,
    },
  }
}

async function historyPage(
  { tokenId }: ProductRow,
  given: Pick<PageArguments, 'first' | 'after'>,
  { loaders }: GraphqlContext,
): Promise<Connection<HistoryRow>> {
  const list = listName('history', tokenId.toString())
  const page = readPage({ first: given.first ?? null, after: given.after ?? null }, list)
  const { rows, total } = await loaders.history.load({ tokenId, after: page.from, limit: page.size + 1 })
  return connection({
    page,
    list,
    rows,
    placeOfRow: ({ blockNumber, logIndex }) => [blockNumber.toString(), String(logIndex)],
    totalCount: () => total,
  })
}
