/** Taps and their anomalies for the back office. They are personal data, so that they have a scope of their own. */
import type { Hex } from '@touchstone/verdict'
import type { ProductRow } from '../../index/queries/products.ts'
import type { TapAnomalyKind, TapAnomalyRow, TapFilter, TapRow } from '../../tap/log/queries.ts'
import type { TapRecordOutcome } from '../../tap/log/recorder.ts'
import type { GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import type { ResolverMap } from '../schema.ts'
import { isGiven, listKey, type PageArguments, readConnection } from './pages.ts'
import { requireTokenId } from './filter.ts'

type Given<T> = { readonly [K in keyof T]?: T[K] | null }
type TapsArguments = PageArguments & {
  readonly filter?: Given<{
    productId: string
    outcome: TapRecordOutcome
    country: string
    timeAfter: string
    timeBefore: string
  }> | null
}
type AnomaliesArguments = PageArguments & {
  readonly filter?: Given<{ productId: string; kind: TapAnomalyKind; timeAfter: string; timeBefore: string }> | null
}

export const tapResolvers: ResolverMap = {
  Query: {
    async taps(_root: unknown, given: TapsArguments, context: GraphqlContext) {
      const { productId, outcome, country, timeAfter, timeBefore } = given.filter ?? {}
      const span = { after: timeAfter ?? undefined, before: timeBefore ?? undefined }
      const filter = { outcome: outcome ?? undefined, country: parseCountry(country), ...span }
      return readTaps(given, filter, await findTag(productId, context), context)
    },
    async tapAnomalies(_root: unknown, given: AnomaliesArguments, context: GraphqlContext) {
      const { productId, kind, timeAfter, timeBefore } = given.filter ?? {}
      const span = { after: timeAfter ?? undefined, before: timeBefore ?? undefined }
      const tagHash = await findTag(productId, context)
      const filter = { kind: kind ?? undefined, ...span, ...(tagHash && { tagHash }) }
      const { taps } = context.lists
      return readConnection<TapAnomalyRow>(given, listKey('instant', 'tapAnomalies', tagHash, filter), (page) => ({
        rows: tagHash === null ? none : taps.anomalies(filter, page),
        count: async () => (tagHash === null ? 0 : taps.countAnomalies(filter)),
        placeOf: ({ foundAt, id }) => [foundAt, String(id)],
      }))
    },
  },
  Product: {
    taps(product: ProductRow, given: PageArguments, context: GraphqlContext) {
      return readTaps(given, {}, product.tagHash, context)
    },
  },
  Tap: {
    id: ({ id }: TapRow) => id.toString(),
    time: ({ firstAt }: TapRow) => firstAt,
    lastTime: ({ lastAt }: TapRow) => lastAt,
    product: productOf,
  },
  TapAnomaly: {
    id: ({ id }: TapAnomalyRow) => id.toString(),
    time: ({ foundAt }: TapAnomalyRow) => foundAt,
    product: productOf,
  },
}

const none = Promise.resolve([])

/** A null tag is that of a product without one: it has no taps. */
function readTaps(given: PageArguments, filter: TapFilter, tagHash: Hex | null | undefined, context: GraphqlContext) {
  const { lists, loaders } = context
  const narrowed = { ...filter, ...(tagHash && { tagHash }) }
  const isOfTagOnly = Object.values(filter).every((value) => value === undefined)
  return readConnection<TapRow>(given, listKey('instant', 'taps', tagHash, filter), (page) => ({
    rows:
      tagHash === null
        ? none
        : tagHash !== undefined && isOfTagOnly
          ? loaders.tapsOf.load({ tagHash, ...page })
          : lists.taps.page(narrowed, page),
    count: async () => (tagHash === null ? 0 : lists.taps.count(narrowed)),
    placeOf: ({ firstAt, id }) => [firstAt, String(id)],
  }))
}

/** Returns the tag of a product, null where it has none, undefined where no product is named. */
async function findTag(productId: string | null | undefined, { loaders }: GraphqlContext) {
  if (!isGiven(productId)) return undefined
  const product = await loaders.productByToken.load(requireTokenId(productId))
  if (product === null || product.tagHash === null) return null
  loaders.productByTag.prime(product.tagHash, product) // each of its taps names it
  return product.tagHash
}

function parseCountry(country: string | null | undefined): string | undefined {
  if (!isGiven(country)) return undefined
  if (/^[A-Z]{2}$/.test(country)) return country
  throw graphqlError('BAD_USER_INPUT', '"country" is two capitals of ISO 3166-1, such as FR.')
}

function productOf({ tagHash }: { tagHash: Hex | null }, _args: unknown, { loaders }: GraphqlContext) {
  return tagHash === null ? null : loaders.productByTag.load(tagHash)
}
