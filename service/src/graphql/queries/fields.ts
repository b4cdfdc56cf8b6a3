/** The fields of Product, Owner, HistoryEvent and Transfer (spec §2.9), from rows of the index. */
import { checksumAddress, type Hex, isAuthentic, isFlagged, lifecycleStates, zeroAddress } from '@touchstone/verdict'
import type { MetadataSource } from '../../assets/verdicts.ts'
import { type AssetEvent, type EventCode, eventKinds, flagNamesOf } from '../../domain/registry-event.ts'
import { cleanLine } from '../../domain/text.ts'
import type { ProductRow } from '../../index/queries/products.ts'
import { newestTransfers, type TransferRow } from '../../index/queries/transfers.ts'
import { memoize } from '../../lib/memoize.ts'
import type { GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import type { ResolverMap } from '../schema.ts'
import { createProductMetadata } from './metadata.ts'
import { listKey, type PageArguments, readConnection } from './pages.ts'

export type ProductFieldDeps = {
  readonly metadata: MetadataSource
  readonly chainId: number
  readonly contract: Hex
}

export function fieldResolvers({ metadata, chainId, contract }: ProductFieldDeps): ResolverMap {
  const metadataOf = createProductMetadata(metadata)
  const registry = checksumAddress(contract)
  return {
    Product: {
      id: ({ tokenId }: ProductRow) => tokenId.toString(),
      tagId: ({ tagId, tagHash }: ProductRow) => (tagId === null ? (tagHash ?? '') : cleanLine(tagId)),
      name: ({ name, tokenId }: ProductRow) => cleanLine(name ?? '') || `Asset ${tokenId}`,
      brand: ({ brand }: ProductRow) => cleanLine(brand ?? '') || null,
      serialNumber: ({ serial }: ProductRow) => cleanLine(serial ?? '') || null,
      metadata: ({ metadataHash }: ProductRow) => (metadataHash === null ? null : metadataOf(metadataHash)),
      currentOwner: ({ owner }: ProductRow) => toOwnerOrNull(owner),
      async transfers({ pk, tokenId, at }: ProductRow, _args: unknown, context: GraphqlContext) {
        const { loaders } = context
        if (at === undefined && pk === null) return []
        const rows = at ? await loaders.pastTransfers.load({ tokenId, at }) : await loaders.transfersOf.load(tokenId)
        return countTransfers(rows.slice(0, newestTransfers), context)
      },
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
      history({ tokenId, at }: ProductRow, given: PageArguments, { loaders }: GraphqlContext) {
        return readConnection<AssetEvent>(given, listKey('block', 'history', tokenId.toString()), (page) => {
          const answer = loaders.history.load({ tokenId, ...page, ...(at && { at }) })
          return {
            rows: answer.then(({ rows }) => rows),
            count: () => answer.then(({ total }) => total),
            placeOf: ({ blockNumber, logIndex }) => [blockNumber.toString(), String(logIndex)],
          }
        })
      },
    },
    HistoryEvent: {
      type: ({ kind }: AssetEvent) => eventTypes[kind],
      timestamp: ({ timestamp }: AssetEvent) => new Date(Number(timestamp) * 1_000),
      txHash: ({ transactionHash }: AssetEvent) => transactionHash,
      blockNumber: ({ blockNumber }: AssetEvent) => Number(blockNumber),
      fromState: ({ fromState }: AssetEvent) => (fromState === null ? null : lifecycleStates[fromState]),
      toState: ({ toState }: AssetEvent) => (toState === null ? null : lifecycleStates[toState]),
      reports: ({ flags }: AssetEvent) => (flags === null ? null : flagNamesOf(flags)),
      actor: ({ actor }: AssetEvent) => toOwnerOrNull(actor),
      from: ({ from }: AssetEvent) => toOwnerOrNull(from),
      to: ({ to }: AssetEvent) => toOwnerOrNull(to),
      hash: ({ data }: AssetEvent) => data,
    },
    Transfer: {
      from: ({ from }: TransferRow) => toOwner(from),
      to: ({ to }: TransferRow) => toOwner(to),
      timestamp: ({ initiatedAt }: TransferRow) => initiatedAt,
      txHash: ({ initiatedTx }: TransferRow) => initiatedTx,
      settledTxHash: ({ settledTx }: TransferRow) => settledTx,
      async product({ tokenId, at }: TransferRow, _args: unknown, { loaders }: GraphqlContext) {
        const product = await (at === undefined
          ? loaders.productByToken.load(tokenId)
          : loaders.pastProduct.load({ tokenId, at }))
        if (product !== null) return product
        throw graphqlError(
          'NOT_FOUND',
          `The index does not have product ${tokenId} now, such as after a reorganisation. Ask for the transfer without its product.`,
        )
      },
      message: ({ id, initiatedTx, messageHash }: TransferRow, _args: unknown, { loaders }: GraphqlContext) =>
        messageHash === null ? null : loaders.message.load({ id, initiatedTx, messageHash }),
    },
  }
}

/** The transfers of products in one result. The cost of an operation counts ten for each product, before any is read. */
const mostTransfers = 2_000
const transfersRead = new WeakMap<GraphqlContext, number>()

/** Throws TOO_COMPLEX when an operation reads too many. Nested lists are counted again, because each is an object of the result. */
function countTransfers(rows: readonly TransferRow[], context: GraphqlContext): readonly TransferRow[] {
  const read = (transfersRead.get(context) ?? 0) + rows.length
  transfersRead.set(context, read)
  if (read <= mostTransfers) return rows
  throw graphqlError(
    'TOO_COMPLEX',
    `These products have more than ${mostTransfers} transfers together. Ask for fewer products, or page with transfers(productId:).`,
  )
}

/** An owner is known by address only; no name is verified. */
export type Owner = { readonly address: string; readonly displayName: null; readonly verifiedAt: null }

/** Memoized, because the capitals of an address cost a hash and the same owners recur. */
export const toOwner = memoize(
  (address: Hex): Owner => ({ address: checksumAddress(address), displayName: null, verifiedAt: null }),
  { max: 10_000 },
)

/** The zero address holds what has no owner. */
function toOwnerOrNull(address: Hex | null): Owner | null {
  return address === null || address === zeroAddress ? null : toOwner(address)
}

const eventTypes: Readonly<Record<EventCode, string>> = {
  [eventKinds.AssetMinted]: 'MINTED',
  [eventKinds.TagBound]: 'TAG_BOUND',
  [eventKinds.StateChanged]: 'STATE_CHANGED',
  [eventKinds.FlagsChanged]: 'FLAGS_CHANGED',
  [eventKinds.MetadataHashSet]: 'METADATA_SET',
  [eventKinds.Transfer]: 'OWNER_CHANGED',
  [eventKinds.TransferInitiated]: 'TRANSFER_INITIATED',
  [eventKinds.TransferCancelled]: 'TRANSFER_CANCELLED',
  [eventKinds.AssetResold]: 'RESOLD',
}
