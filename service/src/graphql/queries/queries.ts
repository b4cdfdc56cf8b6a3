/** The queries of spec §4.9, from the index. */
import { lifecycleStates, parseTokenId } from '@touchstone/verdict'
import { flagNamesOf } from '../../domain/registry-event.ts'
import type { TransferStatus } from '../../domain/chain-index.ts'
import type { GroupRow, ProductGroup } from '../../index/queries/groups.ts'
import type { Keyset } from '../../db/columns.ts'
import type { PastBlock, ProductRow } from '../../index/queries/products.ts'
import type { TransferFilter, TransferRow } from '../../index/queries/transfers.ts'
import type { GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import type { ResolverMap } from '../schema.ts'
import { cleanLine } from '../../domain/text.ts'
import { fieldResolvers, type ProductFieldDeps } from './fields.ts'
import { parseOwner, parseFilter, requireTokenId, type ProductFilter } from './filter.ts'
import { isGiven, listKey, type PageArguments, readConnection } from './pages.ts'

export type QueryDeps = ProductFieldDeps & {
  /**
   * Returns the newest block of the chain and whether the index can be brought up to date. The block is null where no provider names one.
   */
  readonly chainStatus: () => Promise<Readonly<{ head: bigint | null; isFaulty: boolean }>>
}

/** Resolvers of Query and of the types that it returns, without transferTypedData. */
export function queryResolvers(deps: QueryDeps): ResolverMap {
  return {
    ...fieldResolvers(deps),
    ProductStat: {
      key: ({ group, key }: Stat) => groupNames[group](key),
      count: ({ n }: Stat) => Number(n),
    },
    Node: { __resolveType: (row: object) => ('initiatedAt' in row ? 'Transfer' : 'Product') },
    Query: {
      async product(_root: unknown, { id, block }: { id: string } & AtBlock, context: GraphqlContext) {
        const tokenId = requireTokenId(id)
        const at = await findBlock(block, context)
        return at ? context.loaders.pastProduct.load({ tokenId, at }) : context.loaders.productByToken.load(tokenId)
      },

      async products(_root: unknown, given: ProductsArguments, context: GraphqlContext) {
        const { products, past } = context.lists
        const at = await findBlock(given.block, context)
        const { field = 'CREATED_AT', direction = 'DESC' } = given.orderBy ?? {}
        const condition = parseFilter(given.filter)
        const { by, kind, keyOf } = orders[field]
        return readConnection<ProductRow>(
          given,
          listKey(kind, 'products', condition, field, direction, at?.hash),
          ({ backward, ...rest }) => {
            const page = { condition, by, descending: (direction === 'DESC') !== backward, ...rest }
            return {
              rows: at ? past.page(at, page).then(orTooMuchChanged) : products.page(page),
              count: () => (at ? past.count(at, condition) : products.count(condition)),
              placeOf: (row) => [keyOf(row), String(row.pk)],
            }
          },
        )
      },

      async transfers(_root: unknown, given: TransfersArguments, context: GraphqlContext) {
        const { transfers } = context.lists
        const { productId, status = null } = given
        const filter = parseTransferFilter(given.filter)
        const tokenId = typeof productId === 'string' ? requireTokenId(productId) : null
        const at = await findBlock(given.block, context)
        if (at) return pastTransfers({ tokenId, status, ...filter, at }, given, context)
        return readConnection<TransferRow>(
          given,
          listKey('instant', 'transfers', String(tokenId), status, filter),
          (page) => ({
            rows: transfers.page({ tokenId, status, ...filter, ...page }),
            count: () => transfers.count({ tokenId, status, ...filter }),
            placeOf: ({ initiatedAt, pk }) => [initiatedAt, String(pk)],
          }),
        )
      },

      async transfer(_root: unknown, { id, block }: { id: string } & AtBlock, context: GraphqlContext) {
        const transferId = parseAnyTransferId(id)
        const at = await findBlock(block, context)
        if (!at) return context.loaders.transferById.load(transferId)
        const tokenId = parseTokenId(transferId.split('-')[0] ?? '')
        const all = tokenId === null ? [] : await context.loaders.pastTransfers.load({ tokenId, at })
        return all.find((transfer) => transfer.id === transferId) ?? null
      },

      productStats(_root: unknown, given: PageArguments & { groupBy: ProductGroup }, context: GraphqlContext) {
        const { groups } = context.lists
        const { groupBy: group } = given
        return readConnection<Stat>(given, listKey('text', 'stats', group), ({ after, backward, limit }) => ({
          rows: groups
            .page({ group, after: after?.[0] ?? null, descending: (group === 'DAY') !== backward, limit })
            .then((rows) => rows.map((row) => ({ ...row, group }))),
          count: () => groups.count(group),
          placeOf: ({ key }) => [key, '0'],
        }))
      },

      node(_root: unknown, { id }: { id: string }, context: GraphqlContext) {
        const tokenId = parseTokenId(id)
        return tokenId === null
          ? context.loaders.transferById.load(parseAnyTransferId(id))
          : context.loaders.productByToken.load(tokenId)
      },

      async _meta(_root: unknown, _given: unknown, context: GraphqlContext) {
        const [{ block, comparedAt }, { head, isFaulty }] = await Promise.all([
          context.lists.meta(),
          deps.chainStatus(),
        ])
        // The provider of the index may be ahead of the one that names the head.
        const newest = block !== null && head !== null && head < block.number ? block.number : head
        return {
          block: block && { ...block, number: Number(block.number) },
          head: newest === null ? null : Number(newest),
          lagBlocks: block === null || newest === null ? null : Number(newest - block.number),
          verifiedAt: comparedAt,
          hasErrors: isFaulty,
        }
      },
    },
  }
}

type Stat = GroupRow & { readonly group: ProductGroup }

/** The names of groups by their keys. */
const groupNames: Readonly<Record<ProductGroup, (key: string) => string | null | undefined>> = {
  BRAND: (key) => cleanLine(key) || null,
  STATE: (key) => lifecycleStates[Number(key)],
  FLAG: (key) => flagNamesOf(Number(key))[0],
  DAY: (key) => key,
}

/** The orders of products. Names differ by no capitals of ASCII, as in the index. */
const orders = {
  CREATED_AT: { by: 'created', kind: 'instant', keyOf: ({ createdAt }: ProductRow) => createdAt },
  UPDATED_AT: { by: 'updated', kind: 'instant', keyOf: ({ updatedAt }: ProductRow) => updatedAt },
  NAME: {
    by: 'name',
    kind: 'text',
    keyOf: ({ name }: ProductRow) => (name ?? '').replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()),
  },
} as const

/** A page of the transfers of one product at an earlier block, the newest first. */
async function pastTransfers(
  filter: TransferFilter & { readonly at: PastBlock },
  given: PageArguments,
  { loaders }: GraphqlContext,
) {
  const { tokenId, status, party = null, initiatedAfter: from = null, initiatedBefore: to = null, at } = filter
  if (tokenId === null)
    throw graphqlError(
      'BAD_USER_INPUT',
      'At an earlier block, transfers are listed of one product: give its productId.',
    )
  const all = (await loaders.pastTransfers.load({ tokenId, at })).filter(
    (row) =>
      (status ?? row.status) === row.status &&
      (party === null || row.from === party || row.to === party) &&
      (from === null || row.initiatedAt > from) &&
      (to === null || row.initiatedAt < to),
  )
  return readConnection<TransferRow>(
    given,
    listKey('instant', 'transfers', String(tokenId), status, party, from, to, at.hash),
    ({ after, backward, limit }) => ({
      rows: Promise.resolve(
        (backward ? all.toReversed() : all)
          .filter((row) => after === null || isBehind(row, after, backward))
          .slice(0, limit),
      ),
      count: async () => all.length,
      placeOf: ({ initiatedAt, pk }) => [initiatedAt, String(pk)],
    }),
  )
}

function isBehind({ initiatedAt, pk }: TransferRow, [at, afterPk]: Keyset, backward: boolean): boolean {
  if (initiatedAt === at) return backward ? pk > BigInt(afterPk) : pk < BigInt(afterPk)
  return backward ? initiatedAt > at : initiatedAt < at
}

/** Returns the earlier block that is asked for, undefined for the present. Throws BAD_USER_INPUT where its state is not kept. */
async function findBlock(block: AtBlock['block'], { loaders }: GraphqlContext): Promise<PastBlock | undefined> {
  if (!isGiven(block)) return undefined
  const found = await loaders.pastBlock.load(BigInt(block.number))
  if (found.block !== null) return found.block
  const kept = found.kept && `; ask for one from ${found.kept.from} to ${found.kept.to}`
  throw graphqlError(
    'BAD_USER_INPUT',
    `The state of block ${block.number} is not kept${kept ?? ', for the index is empty'}.`,
  )
}

function orTooMuchChanged(rows: ProductRow[] | null): ProductRow[] {
  if (rows !== null) return rows
  throw graphqlError(
    'TOO_COMPLEX',
    'Too many products have changed since this block: ask for a later one, or for single products.',
  )
}

type TransferFilterInput = Partial<
  Readonly<{ party: string | null; initiatedAfter: string | null; initiatedBefore: string | null }>
>

function parseTransferFilter(filter: TransferFilterInput | null | undefined) {
  const { party, initiatedAfter = null, initiatedBefore = null } = filter ?? {}
  const address = typeof party === 'string' ? parseOwner('party', party) : null
  return { party: address, initiatedAfter, initiatedBefore }
}

type AtBlock = { readonly block?: { readonly number: number } | null }
type ProductsArguments = PageArguments &
  AtBlock & {
    readonly filter?: ProductFilter | null
    readonly orderBy?: { readonly field: keyof typeof orders; readonly direction: 'ASC' | 'DESC' } | null
  }
type TransfersArguments = PageArguments &
  AtBlock & {
    readonly productId?: string | null
    readonly status?: TransferStatus | null
    readonly filter?: TransferFilterInput | null
  }

/** Parses the id of a transfer of either kind and returns it without leading zeros. Throws BAD_USER_INPUT when the text is none. */
function parseAnyTransferId(text: string): string {
  if (text.length <= 200 && /^\d+(-\d+){1,2}$/.test(text)) return text.replaceAll(/\b0+(?=\d)/g, '')
  throw graphqlError('BAD_USER_INPUT', 'A transfer id is <tokenId>-<nonce>, such as 7-1.')
}
