/** The context of resolvers: the API key of the request, and loaders that batch its reads. */
import DataLoader from 'dataloader'
import type { Hex } from '@touchstone/verdict'
import type { Database } from '../db/database.ts'
import { historyStore, type HistoryQuestion } from '../index/history.ts'
import { groupStore } from '../index/queries/groups.ts'
import { readMeta } from '../index/queries/meta.ts'
import { pastStore } from '../index/queries/past.ts'
import { type PastBlock, productStore } from '../index/queries/products.ts'
import { transferStore } from '../index/queries/transfers.ts'
import { tapQueries } from '../tap/log/queries.ts'
import type { ApiKey, Scope } from './api-keys.ts'
import { graphqlError } from './errors.ts'

export type GraphqlContext = {
  readonly key: ApiKey
  /** Written to the log, and shown with faults that are masked. */
  readonly requestId: string
  /** Left out for events of subscriptions. */
  readonly cost?: number
  readonly loaders: Loaders
  readonly lists: Pick<IndexStores, 'products' | 'transfers' | 'meta' | 'past' | 'groups' | 'taps'>
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
    history: historyStore(database),
    past: pastStore(database),
    groups: groupStore(database),
    meta: () => readMeta(database),
    taps: tapQueries(database),
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

export type Loaders = ReturnType<typeof createLoaders>

/** Each loader reads what is asked for in one turn by one statement. Null and empty stand for a missing row. */
export function createLoaders({ products, transfers, history, past, taps }: IndexStores) {
  return {
    productByToken: new DataLoader(async (tokenIds: readonly bigint[]) => {
      const rows = new Map((await products.byTokens(tokenIds)).map((row) => [row.tokenId, row]))
      return tokenIds.map((tokenId) => rows.get(tokenId) ?? null)
    }),
    transferById: new DataLoader(async (ids: readonly string[]) => {
      const rows = new Map((await transfers.byIds(ids)).map((row) => [row.id, row]))
      return ids.map((id) => rows.get(id) ?? null)
    }),
    /** The newest 100 of a product, by its `pk`. */
    transfersOf: new DataLoader(async (pks: readonly bigint[]) => {
      const rows = await transfers.newestOf(pks)
      return pks.map((pk) => rows.get(pk) ?? [])
    }),
    /** Messages of transfers, by their hash. */
    message: new DataLoader(async (hashes: readonly Hex[]) => {
      const texts = await transfers.messages(hashes)
      return hashes.map((hash) => texts.get(hash) ?? null)
    }),
    history: new DataLoader((questions: readonly HistoryQuestion[]) => history.pages(questions), {
      cacheKeyFn: ({ tokenId, after, limit, backward, upTo }) =>
        `${tokenId} ${after?.join(' ')} ${limit} ${backward} ${upTo}`,
    }),
    /** Products by the commitment of their tag. */
    productByTag: new DataLoader(async (tagHashes: readonly Hex[]) => {
      const rows = new Map((await products.byTags(tagHashes)).map((row) => [row.tagHash, row]))
      return tagHashes.map((tagHash) => rows.get(tagHash) ?? null)
    }),
    /** Pages of the taps of a tag. */
    tapsOf: new DataLoader((questions: Parameters<typeof taps.pagesOfTags>[0]) => taps.pagesOfTags(questions), {
      cache: false,
    }),
    /** Products at an earlier block. */
    pastProduct: new DataLoader(
      perBlock(async (block, tokenIds) => {
        const rows = new Map((await past.products(block, tokenIds)).map((row) => [row.tokenId, row]))
        return (tokenId) => rows.get(tokenId) ?? null
      }),
      { cacheKeyFn: pastKey },
    ),
    /** All transfers of a token at an earlier block, the newest first. */
    pastTransfers: new DataLoader(
      perBlock(async (block, tokenIds) => {
        const rows = Map.groupBy(await past.transfers(block, tokenIds), ({ tokenId }) => tokenId)
        return (tokenId) => rows.get(tokenId) ?? []
      }),
      { cacheKeyFn: pastKey },
    ),
  }
}

type PastToken = Readonly<{ tokenId: bigint; at: PastBlock }>

const pastKey = ({ tokenId, at }: PastToken) => `${tokenId} ${at.number}`

/** Reads the tokens of each block at once. */
function perBlock<Row>(read: (block: PastBlock, tokenIds: readonly bigint[]) => Promise<(tokenId: bigint) => Row>) {
  return async (asked: readonly PastToken[]): Promise<Row[]> => {
    const groups = [...Map.groupBy(asked, ({ at }) => at.number).values()]
    const found = await Promise.all(
      groups.map(async ([first, ...rest]) => {
        const group = first === undefined ? rest : [first, ...rest]
        return (
          first &&
          ([
            first.at.number,
            await read(
              first.at,
              group.map(({ tokenId }) => tokenId),
            ),
          ] as const)
        )
      }),
    )
    const rowOf = new Map(found.filter((one) => one !== undefined))
    return asked.map(({ tokenId, at }) => rowOf.get(at.number)?.(tokenId) as Row)
  }
}
