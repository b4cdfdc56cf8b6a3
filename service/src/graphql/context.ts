/** The context of resolvers: the API key of the request, and loaders that batch its reads. */
import DataLoader from 'dataloader'
import { cleanText, type Hex } from '@touchstone/verdict'
import { type Actor, appendAudit, auditText } from '../db/audit.ts'
import type { Sql } from '../db/database.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import type { HistoryQuestion } from '../index/history.ts'
import type { PastToken } from '../index/queries/past.ts'
import type { PastBlock } from '../index/queries/products.ts'
import type { MessageOf } from '../index/queries/transfers.ts'
import { type Verb, verbsOf } from '../access/rights.ts'
import { graphqlError, throwWithoutCost } from './errors.ts'
import { scopedStores } from './access/scoped-stores.ts'
import type { ApiKey } from '../access/api-keys.ts'
import { queuedStores } from './queued-stores.ts'
import type { IndexStores } from './stores.ts'
import { createTurns, type Turns } from './turns.ts'

export type GraphqlContext = {
  readonly key: ApiKey
  readonly verbs: ReadonlySet<Verb>
  /** Written to the log, and shown with faults that are masked. */
  readonly requestId: string
  /** Left out for events of subscriptions. */
  readonly cost?: number
  /** The read of `_meta` where the operation asks for it. Its other reads begin after this one. */
  readonly metaRead?: Promise<unknown>
  /** Aborted once no further field of a mutation may begin. */
  readonly tooLate?: AbortSignal
  /** Notes in the audit trail that a mutation was refused. It never throws. */
  readonly noteRefusal: (refusal: Refusal) => Promise<void>
  readonly loaders: Loaders
  readonly lists: Pick<IndexStores, 'products' | 'transfers' | 'meta' | 'past' | 'groups' | 'taps'>
  /** Those of all keys of the process. */
  readonly turns: Turns
}

/** A mutation that changed nothing: its field, the id that its input names, and the first reason. */
type Refusal = Readonly<{ act: string; subject: string; because: string }>
export type NoteRefusal = (refusal: Refusal, by: Actor) => Promise<void>

/** Creates the context of an operation, or of an event. `listing`: the operation reads lists only. */
export type CreateContext = (
  key: ApiKey,
  requestId: string,
  operation?: { readonly listing: boolean; readonly cost: number; readonly asksMeta?: boolean },
) => GraphqlContext

/** An operation reads one database: `listStores`, which may be a few seconds behind, when it only lists, else `stores`. */
export function contextFactory(
  stores: IndexStores,
  listStores: IndexStores = stores,
  note: NoteRefusal = async () => {},
  turns: Turns = createTurns(),
): CreateContext {
  return (key, requestId, operation) => {
    const all = operation?.listing === true ? listStores : stores
    const own = key.brands === null ? all : scopedStores(all, key.brands)
    const metaRead = operation?.asksMeta === true ? own.meta() : undefined
    metaRead?.catch(() => {}) // `_meta` shows the fault
    const inTurn = <T>(work: () => Promise<T>) => turns.read(key.id, work)
    const ownLists = queuedStores(own, key.brands === null ? inTurn : (work) => inTurn(work).catch(throwWithoutCost))
    const lists = metaRead === undefined ? ownLists : { ...ownLists, meta: () => metaRead }
    const noteRefusal = (refusal: Refusal) => note(refusal, { who: `key:${key.id}`, requestId })
    const verbs = new Set(verbsOf(key.scopes))
    const context = { key, verbs, requestId, noteRefusal, lists, loaders: createLoaders(lists), turns }
    return operation === undefined ? context : { ...context, cost: operation.cost, ...(metaRead && { metaRead }) }
  }
}

/** Returns the function that appends refused mutations to the audit trail of a database. */
export function refusalNotes(database: Sql, log: Log): NoteRefusal {
  return (refusal, by) =>
    appendAudit(database, auditText(by, { ...refusal, outcome: 'REFUSED' })).catch((error: unknown) =>
      log.warn('refused mutation not noted', { reason: reasonOf(error) }),
    )
}

export type Loaders = ReturnType<typeof createLoaders>

type HistoryOf = Omit<HistoryQuestion, 'upTo'> & { readonly at?: PastBlock }

/** Each loader reads what is asked for in one turn by one statement. */
export function createLoaders({ products, transfers, history, past, taps }: IndexStores) {
  return {
    productByToken: new DataLoader(async (tokenIds: readonly bigint[]) =>
      inOrder(tokenIds, await products.byTokens(tokenIds), ({ tokenId }) => tokenId),
    ),
    transferById: new DataLoader(async (ids: readonly string[]) =>
      inOrder(ids, await transfers.byIds(ids), ({ id }) => id),
    ),
    /** The newest 100 of a product, by its token id. */
    transfersOf: new DataLoader(async (tokenIds: readonly bigint[]) => {
      const rows = await transfers.newestOf(tokenIds)
      return tokenIds.map((tokenId) => rows.get(tokenId) ?? [])
    }),
    /** The messages of transfers, cleaned once for all their aliases. */
    message: new DataLoader(
      async (asked: readonly MessageOf[]) => {
        const texts = await transfers.messages(asked)
        return asked.map(({ id }) => cleanText(texts.get(id) ?? '', { max: 4_000, multiline: true }) || null)
      },
      { cacheKeyFn: ({ id, messageHash }) => `${id} ${messageHash}` },
    ),
    /** With a block, the events of a product up to it. */
    history: new DataLoader(
      async (asked: readonly HistoryOf[]) => {
        const pages = await history.pages(asked.map(({ at, ...page }) => ({ ...page, ...(at && { upTo: at.number }) })))
        const blocks = new Map(asked.flatMap(({ at }) => (at === undefined ? [] : [[at.hash, at] as const])))
        await past.assertCanonical([...blocks.values()])
        return pages
      },
      {
        cacheKeyFn: ({ tokenId, after, limit, backward, at }) =>
          `${tokenId} ${after?.join(' ')} ${limit} ${backward} ${at?.hash}`,
      },
    ),
    productByTag: new DataLoader(async (tagHashes: readonly Hex[]) =>
      inOrder(tagHashes, await products.byTags(tagHashes), ({ tagHash }) => tagHash),
    ),
    tapsOf: new DataLoader((questions: Parameters<typeof taps.pagesOfTags>[0]) => taps.pagesOfTags(questions), {
      cache: false,
    }),
    /** Earlier blocks by their numbers. All that are asked for in one turn come together, so that what is read at them is read together. */
    pastBlock: new DataLoader((numbers: readonly bigint[]) => Promise.all(numbers.map((number) => past.find(number)))),
    pastProduct: new DataLoader(
      async (asked: readonly PastToken[]) =>
        inOrder(asked.map(pastKey), orTooMany(await past.products(asked)), pastKey),
      { cacheKeyFn: pastKey },
    ),
    /** All transfers of a token at an earlier block, the newest first. */
    pastTransfers: new DataLoader(
      async (asked: readonly PastToken[]) => {
        const rows = Map.groupBy(orTooMany(await past.transfers(asked)), pastKey)
        return asked.map((one) => rows.get(pastKey(one)) ?? [])
      },
      { cacheKeyFn: pastKey },
    ),
  }
}

/** Returns the row of each key; null stands for a missing one. */
function inOrder<Row>(keys: readonly unknown[], rows: readonly Row[], keyOf: (row: Row) => unknown): (Row | null)[] {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]))
  return keys.map((key) => byKey.get(key) ?? null)
}

function orTooMany<Row>(rows: Row[] | null): Row[] {
  if (rows !== null) return rows
  throw graphqlError(
    'TOO_COMPLEX',
    'These products have too many events to compute their state at an earlier block. Ask for fewer, or for that of now.',
  )
}

const pastKey = ({ tokenId, at }: Partial<PastToken>) => `${tokenId} ${at?.number}`
