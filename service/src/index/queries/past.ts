/**
 * The index as it was at an earlier block (spec §2.9). Tokens that changed since are projected again from their events up to the block.
 * Only what the chain holds goes back; taps, texts and the names of tags are those of now. A tap counts for its own tag there too.
 */
import { setImmediate } from 'node:timers/promises'
import { type Hex, isAuthentic, type StateCode } from '@touchstone/verdict'
import { countIn, countWithin, nullAfterTimeout } from '../../db/bounded-count.ts'
import { createCostCheck, readBriefly } from '../../db/cost.ts'
import { bytes, hex, instant, numbers, seconds } from '../../db/columns.ts'
import type { Sql } from '../../db/database.ts'
import type { BlockId } from '../../domain/chain.ts'
import type { AssetEvent } from '../../domain/registry-event.ts'
import { formatInstant } from '../../domain/text.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { withoutGaps } from '../assets/rows.ts'
import { productTexts } from '../assets/texts.ts'
import { readEvents } from '../history.ts'
import { expiredBefore, projectAssets, projectTransfers } from '../project.ts'
import { type IndexDatabase, wholeReads } from '../steps.ts'
import type { ProductCondition } from './condition.ts'
import {
  columnsOf,
  isIndexed,
  type PastAssets,
  type PastBlock,
  parseProduct,
  pastTable,
  plannedPage,
  type ProductPage,
  productPageStatement,
  productsWhere,
  type ProductRow,
  type StoredProduct,
} from './products.ts'
import type { TransferRow } from './transfers.ts'

/** Answers a question about a block: the block, or the blocks whose state is kept; `null` is an empty index. */
type FoundBlock = Readonly<{ block: PastBlock } | { block: null; kept: { from: bigint; to: bigint } | null }>

/** A token at an earlier block. */
export type PastToken = Readonly<{ tokenId: bigint; at: PastBlock }>
type PastProduct = ProductRow & PastToken

/** Lists go back over at most so many events and tokens. The tokens of one read have at most so many events. */
const mostEvents = 20_000
const mostTokens = 1_000

/** `mostOfTokens` is for tests. */
export function pastStore(
  database: IndexDatabase,
  { mostOfTokens = mostEvents }: { readonly mostOfTokens?: number } = {},
) {
  const isDistributed = database.dialect === 'citus'
  const columns = columnsOf(isDistributed)
  const whole = wholeReads(database)
  const assertCheap = createCostCheck(database)

  /** Runs `read` in one snapshot in which the blocks are canonical, or while no index step is written. */
  function at<T>(blocks: readonly PastBlock[], read: (sql: Sql) => Promise<T>): Promise<T> {
    const readAt = async (sql: Sql) => {
      const values = [numbers(blocks.map(({ number }) => number)), bytes(blocks.map(({ hash }) => hash))]
      if ((await sql.query(canonicalStatement, values)).length < blocks.length)
        throw chainUnavailable('a block of the past is no longer canonical')
      return read(sql)
    }
    if (isDistributed) return whole(readAt)
    return database.transaction(async (sql) => {
      await sql.query('set transaction isolation level repeatable read')
      return readAt(sql)
    })
  }

  /** Runs `read` for each block with the events of its tokens. The tokens of all blocks are read at once. `null`: they have too many events. */
  async function eachAt<T>(
    asked: readonly PastToken[],
    read: (sql: Sql, block: PastBlock, tokenIds: readonly string[], events: AssetEvent[]) => Promise<T[]>,
  ): Promise<T[] | null> {
    const byBlock = Map.groupBy(asked, ({ at: { number } }) => number)
    const blocks = [...byBlock.values()].flatMap(([first]) => first?.at ?? [])
    return at(blocks, async (sql) => {
      const all = await readEvents(sql, [...new Set(asked.map(({ tokenId }) => tokenId.toString()))], mostOfTokens)
      if (all.length > mostOfTokens) return null
      const found: T[] = []
      for (const block of blocks) {
        await setImmediate() // a projection of many events takes a while
        const tokenIds = new Set(byBlock.get(block.number)?.map(({ tokenId }) => tokenId.toString()))
        const events = upTo(block, all).filter(({ tokenId }) => tokenIds.has(tokenId))
        found.push(...(await read(sql, block, [...tokenIds], events)))
      }
      return found
    })
  }

  /** Returns the time that a block has at least, for a row of a version that kept no times. */
  async function lastEventTime(number: bigint): Promise<bigint> {
    const [event] = await whole((sql) => sql.query<{ time: bigint }>(eventTimeStatement, [number]))
    return event?.time ?? 0n
  }

  return {
    async find(number: bigint): Promise<FoundBlock> {
      const [block] = await database.query<BlockId & { time: bigint | null }>(blockStatement, [number])
      if (block !== undefined) return { block: { ...block, time: block.time ?? (await lastEventTime(number)) } }
      const [kept] = await database.query<{ from: bigint; to: bigint }>(keptStatement)
      return { block: null, kept: kept ?? null }
    },

    /** Throws CHAIN_UNAVAILABLE where one of the blocks is no longer canonical. What was read up to it may be of another branch then. */
    assertCanonical: async (blocks: readonly PastBlock[]): Promise<void> => {
      if (blocks.length > 0) await at(blocks, async () => {})
    },

    /** Returns the products of these tokens, in no order; `null` where they have too many events. */
    products: (asked: readonly PastToken[]): Promise<PastProduct[] | null> =>
      eachAt(asked, async (sql, block, tokenIds, events) => {
        const rows = await pastAssets(sql, tokenIds, events)
        const text = `select ${columns} from ${pastTable} where true`
        return (await sql.query<StoredProduct>(text, [JSON.stringify(rows)])).map((row) => rowAt(row, block))
      }),

    /** Returns all transfers of these tokens, of each block the newest first; `null` where they have too many events. */
    transfers: (asked: readonly PastToken[]): Promise<TransferRow[] | null> =>
      eachAt(asked, async (sql, block, tokenIds, events) => {
        const transfers = [...projectTransfers(events, new Map(), expiredBefore(block.time)).transfers.values()]
        const stored = await sql.query<{ id: string; pk: bigint }>(transfersStatement, [numbers(tokenIds)])
        const pks = new Map(stored.map(({ id, pk }) => [id, pk]))
        const rows = transfers.map(
          ({ settledAt: _settledAt, settledTransaction, initiatedTransaction, initiatedAt, expiresAt, ...rest }) => ({
            ...rest,
            tokenId: BigInt(rest.tokenId),
            pk: pks.get(rest.id) ?? 0n,
            initiatedAt: formatSeconds(initiatedAt),
            expiresAt: expiresAt === null ? null : formatSeconds(expiresAt),
            initiatedTx: initiatedTransaction,
            settledTx: settledTransaction,
            messageHash: orNull(rest.messageHash),
            at: block,
          }),
        )
        return rows.toSorted((a, b) =>
          a.initiatedAt === b.initiatedAt ? Number(b.pk - a.pk) : a.initiatedAt < b.initiatedAt ? 1 : -1,
        )
      }),

    /** Returns one page; `null` where too much has changed since. Throws a CostError as a page of today does. */
    page: (block: PastBlock, given: ProductPage): Promise<ProductRow[] | null> =>
      at([block], async (sql) => {
        const past = await changedAssets(sql, block, mostOfTokens)
        if (past === null) return null
        const { page, isCheap } = await plannedPage({ ...sql, dialect: database.dialect }, given)
        const { text, values } = productPageStatement(page, { past, pastCondition: given.condition, isDistributed })
        if (!isIndexed(page)) {
          if (!isCheap) await assertCheap(text, values, sql)
          if (!isDistributed) await readBriefly(sql)
        }
        return (await sql.query<StoredProduct>(text, values)).map((row) => rowAt(row, block))
      }),

    /** Returns the number of products; `null` where too much has changed since, or a count takes too long. */
    count(block: PastBlock, condition: ProductCondition): Promise<number | null> {
      const counted = at([block], async ({ query }) => {
        const past = await changedAssets({ query }, block, mostOfTokens)
        if (past === null) return null
        const { text, values } = productsWhere(condition, past)
        // A cluster has no snapshot: its reads are repeated where a step came between.
        return isDistributed
          ? countWithin(database, text, values)
          : countIn({ query, dialect: database.dialect }, text, values)
      })
      return nullAfterTimeout(counted)
    },
  }
}

const canonicalStatement = `select from unnest($1::bigint[], $2::bytea[]) k (number, hash)
  join index_block b on b.number = k.number and b.hash = k.hash`

const blockStatement = `select b.number, ${hex('b.hash')} as hash,
    ${seconds('coalesce(b.time, case when b.number = c.number then c.block_time end)')} as time
  from index_cursor c join index_block b on b.number <= c.number
  where b.number = $1`

const eventTimeStatement = `select ${seconds('ts')} as time from history where block_number <= $1
  order by block_number desc, log_index desc limit 1`

/** The last run of blocks without a gap. */
const keptStatement = `select (select max(number) from index_block b
      where not exists (select from index_block p where p.number = b.number - 1)) as "from", number as "to"
  from index_cursor where number >= 0`

async function changedAssets(sql: Sql, block: PastBlock, most: number): Promise<PastAssets | null> {
  const rows = await sql.query<{ token: string; events: bigint }>(changedStatement, [block.number, mostEvents + 1])
  if (rows.length > mostTokens || (rows[0]?.events ?? 0n) > mostEvents) return null
  const tokens = rows.map(({ token }) => token)
  const events = await readEvents(sql, tokens, most)
  if (events.length > most) return null
  const assets = await pastAssets(sql, tokens, upTo(block, events))
  return { block: block.number, rows: JSON.stringify(assets) }
}

const changedStatement = `with later as (
    select token_id from history where block_number > $1 order by block_number, log_index limit $2)
  select distinct token_id::text as token, (select count(*) from later) as events from later limit ${mostTokens + 1}`

const transfersStatement = 'select id, pk from transfer where token_id = any($1::numeric[])'

type CurrentAsset = Readonly<{
  pk: string
  token_id: string
  metadataHash: Hex | null
  tagHash: Hex | null
  tag_id: string | null
  name: string | null
  brand: string | null
  serial: string | null
  gtin: string | null
  tapped_at: string | null
  /** The tag that was tapped last, where it is kept. */
  tappedTag: Hex | null
}>

const currentStatement = `select a.pk::text as pk, a.token_id::text as token_id, ${hex('a.metadata_hash')} as "metadataHash",
    ${hex('a.tag_hash')} as "tagHash", a.tag_id, a.name, a.brand, a.serial, a.gtin, ${instant('a.tapped_at')} as tapped_at,
    ${hex('t.tag_hash')} as "tappedTag"
  from asset a left join asset_tap t on t.token_id = a.token_id where a.token_id = any($1::numeric[])`

/** Returns rows of `asset` as they were after these events; a token that was minted later has none. */
async function pastAssets(sql: Sql, tokenIds: readonly string[], events: readonly AssetEvent[]): Promise<object[]> {
  const current = await sql.query<CurrentAsset>(currentStatement, [numbers(tokenIds)])
  const known = new Map(current.map((row) => [row.token_id, row]))
  const changes = projectAssets(events).filter(({ minted }) => minted !== null)
  const states = changes.map(withoutGaps)
  const others = states.flatMap(({ tokenId, metadataHash }) => {
    const hash = orNull(metadataHash)
    return hash === null || hash === known.get(tokenId)?.metadataHash ? [] : [hash]
  })
  const texts = await productTexts(sql, new Set(others))
  return states.flatMap((state) => {
    const row = known.get(state.tokenId)
    if (row === undefined) return []
    const { metadataHash: _metadataHash, tagHash: presentTag, tappedTag, ...rest } = row
    const [metadataHash, tagHash] = [orNull(state.metadataHash), orNull(state.tagHash)]
    const isGenuine = isAuthentic({ state: state.state as StateCode, flags: state.flags })
    const isTapped = tagHash === presentTag ? row.tapped_at !== null : tagHash === tappedTag
    const commitment = row.tag_id !== null && row.tag_id === presentTag
    const own = metadataHash === row.metadataHash ? row : texts.get(metadataHash ?? '0x')
    return {
      ...rest,
      owner: escaped(state.owner),
      state: state.state,
      flags: state.flags,
      metadata_hash: escaped(metadataHash),
      tag_hash: escaped(tagHash),
      tag_id: commitment ? tagHash : row.tag_id,
      name: own?.name ?? null,
      brand: own?.brand ?? null,
      verified: isGenuine && tagHash !== null && isTapped,
      created_at: formatSeconds(state.minted?.time ?? state.time),
      updated_at: formatSeconds(state.time),
      updated_block: state.block.toString(),
    }
  })
}

function upTo({ number }: PastBlock, events: readonly AssetEvent[]): AssetEvent[] {
  return events.filter(({ blockNumber }) => blockNumber <= number)
}

function rowAt(row: StoredProduct, block: PastBlock): PastProduct {
  return { ...parseProduct(row, null), indexed: { number: block.number, hash: block.hash }, at: block }
}

/** The zero hash stands for none. */
function orNull(hash: Hex | null): Hex | null {
  return hash === null || BigInt(hash) === 0n ? null : hash
}

/** Formats a `bytea` as JSON takes it. */
function escaped(value: Hex | null): string | null {
  return value === null ? null : `\\x${value.slice(2)}`
}

function formatSeconds(time: bigint): string {
  return formatInstant(time).replace('Z', '000Z')
}
