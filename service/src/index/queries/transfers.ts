/** Transfers of the index (spec §2.9, §3, §4.9): by id, the newest of products, or in pages by keyset. */
import type { Hex } from '@touchstone/verdict'
import { briefReads, cheapStatement, createCostCheck } from '../../db/cost.ts'
import { countWithin } from '../../db/bounded-count.ts'
import { behindOf, earlierClock, hex, instant, type KeysetPage } from '../../db/columns.ts'
import type { TransferStatus } from '../../domain/chain-index.ts'
import { type IndexDatabase, wholeReads } from '../steps.ts'
import { haveFewProducts } from './brands.ts'
import type { PastBlock } from './products.ts'

/** One row of `transfer`. Times are RFC 3339 with microseconds, in UTC; addresses are lower case. */
export type TransferRow = {
  readonly pk: bigint
  readonly id: string
  readonly tokenId: bigint
  readonly from: Hex
  readonly to: Hex
  /** FAILED also for an expired offer whose row is not updated yet. */
  readonly status: TransferStatus
  readonly initiatedAt: string
  readonly initiatedTx: Hex
  readonly expiresAt: string | null
  readonly settledTx: Hex | null
  readonly messageHash: Hex | null
  /** The earlier block at which the row was asked for; left out for the present. */
  readonly at?: PastBlock
}

/** A transfer by its id, with the transaction of its offer and the hash of its message. */
export type MessageOf = Readonly<{ id: string; initiatedTx: Hex; messageHash: Hex }>

/** A null, or a field that is left out, stands for all. `party` is who offered or the recipient; the instants themselves are left out. */
export type TransferFilter = Readonly<{
  tokenId: bigint | null
  status: TransferStatus | null
  party?: Hex | null
  initiatedAfter?: string | null
  initiatedBefore?: string | null
  /** Selects the transfers of products of these brands. */
  brands?: readonly string[]
}>
/** A page, the newest first unless it goes backward. */
type TransferPage = TransferFilter & KeysetPage

/** Product.transfers has no arguments and shows this many. */
export const newestTransfers = 100

export function transferStore(database: IndexDatabase, { now = Date.now }: { readonly now?: () => number } = {}) {
  const [whole, briefly] = [wholeReads(database), wholeReads(briefReads(database))]
  const assertCheap = createCostCheck(database)
  const rowsOf = (text: string, values: readonly unknown[], reads = whole) =>
    reads(async (sql) => (await sql.query<StoredTransfer>(text, values)).map(parseRow))
  return {
    /** Returns the indexed ones, in no order. An id begins with the token. */
    async byIds(ids: readonly string[]): Promise<TransferRow[]> {
      const text = `select ${columnsAt(now())} from transfer t where t.token_id = any($2::text[]::numeric[]) and t.id = any($1::text[])`
      const tokens = ids.map((id) => /^\d{1,78}(?=-)/.exec(id)?.[0] ?? '-1')
      return rowsOf(text, [ids, tokens])
    },
    /** Returns the newest 100 of each product, by its token, newest first, in one statement. */
    async newestOf(tokenIds: readonly bigint[]): Promise<Map<bigint, TransferRow[]>> {
      const rows = await rowsOf(newestTransfersStatement(database.dialect === 'citus', now()), [tokenIds.map(String)])
      return Map.groupBy(rows, ({ tokenId }) => tokenId)
    },
    /** Returns one page, in its order. Throws a CostError where PostgreSQL expects that it reads too much. */
    async page(page: TransferPage): Promise<TransferRow[]> {
      const moment = now()
      const plain = transferPageStatement(page, { now: moment })
      if (!isAsked(page)) return rowsOf(plain.text, plain.values)
      const { text, values } = await cheapStatement(database, assertCheap, plain, async () => {
        const byProduct = page.tokenId === null && (await haveFewProducts(database, page.brands ?? null))
        return byProduct ? transferPageStatement(page, { now: moment, byProduct }) : null
      })
      return rowsOf(text, values, briefly)
    },
    /** Returns the number of transfers; null where a count takes too long. */
    async count(filter: TransferFilter): Promise<number | null> {
      const values: unknown[] = []
      const branches = conditionsOf(filter, values, now()).map(({ text }) => `select 1 from transfer t where ${text}`)
      return countWithin(database, branches.join(' union all '), values)
    },
    /**
     * Returns the messages of transfers, by their ids. One is missing where its text is unknown, or was erased, and where this service did
     * not send the offer: the chain shows the hashes of all messages, and an owner may put any of them into an offer of their own.
     */
    async messages(transfers: readonly MessageOf[]): Promise<Map<string, string>> {
      const hashes = [...new Set(transfers.map(({ messageHash }) => messageHash))]
      const [sent, texts, erased] = await Promise.all([
        database.query<{ hash: Hex }>(sentStatement, [
          [...new Set(transfers.map(({ initiatedTx }) => `\\x${initiatedTx.slice(2)}`))],
        ]),
        database.query<{ hash: Hex; body: string }>(
          `select ${hex('hash')} as hash, body from transfer_message where hash = any($1::text[]::bytea[])`,
          [hashes.map((hash) => `\\x${hash.slice(2)}`)],
        ),
        database.query<{ id: string; hash: Hex }>(
          `select transfer_id as id, ${hex('hash')} as hash from erased_message where transfer_id = any($1::text[])`,
          [transfers.map(({ id }) => id)],
        ),
      ])
      const textOf = new Map(texts.map(({ hash, body }) => [hash, body]))
      const isErased = new Set(erased.map(({ id, hash }) => `${id} ${hash}`))
      const isSent = new Set(sent.map(({ hash }) => hash))
      return new Map(
        transfers.flatMap(({ id, initiatedTx, messageHash }) => {
          const text = isSent.has(initiatedTx) ? textOf.get(messageHash) : undefined
          return text === undefined || isErased.has(`${id} ${messageHash}`) ? [] : [[id, text]]
        }),
      )
    },
  }
}

/** Selects those of the transactions that this service signed. */
const sentStatement = ['operation', 'replaced_transaction']
  .map((table) => `select ${hex('tx_hash')} as hash from ${table} where tx_hash = any($1::text[]::bytea[])`)
  .join(' union all ')

/**
 * An offer has expired by the chain, or by the clocks of the database and of this machine. The latter counts by the minute, so that the
 * expected cost of a statement is kept.
 */
const isExpired = (now: number) => `t.status = 'PENDING' and t.expires_at < ${timeOf(now)}`
const timeOf = (now: number) =>
  `greatest(${earlierClock(String(Math.ceil(now / 60_000) * 60))}, (select block_time from index_cursor))`

const columnsAt = (
  now: number,
) => `t.pk, t.id, t.token_id::text as "tokenId", ${hex('t.from_addr')} as "from", ${hex('t.to_addr')} as "to",
  case when ${isExpired(now)} then 'FAILED' else t.status end as status, ${instant('t.initiated_at')} as "initiatedAt",
  ${hex('t.initiated_tx')} as "initiatedTx", ${instant('t.expires_at')} as "expiresAt", ${hex('t.settled_tx')} as "settledTx",
  ${hex('t.message_hash')} as "messageHash"`

/** A cluster reads only the shards that both tables name. */
export function newestTransfersStatement(isDistributed: boolean, now = Date.now()): string {
  const tokens = 'any($1::text[]::numeric[])'
  return `select ${columnsAt(now)}
  from asset a cross join lateral (
    select * from transfer where token_id = a.token_id ${isDistributed ? `and token_id = ${tokens}` : ''}
    order by initiated_at desc, pk desc limit ${newestTransfers}
  ) t
  where a.token_id = ${tokens}
  order by t.token_id, t.initiated_at desc, t.pk desc`
}

type Condition = Readonly<{ text: string; selectsExpired?: boolean }>

/** FAILED is two conditions, each read by its own index: with one «or» the planner would scan all transfers. */
const conditionsAt = (now: number): Readonly<Record<TransferStatus, readonly Condition[]>> => ({
  // An offer without an end stays open.
  PENDING: [{ text: `t.status = 'PENDING' and (t.expires_at >= ${timeOf(now)}) is not false` }],
  CONFIRMED: [{ text: "t.status = 'CONFIRMED'" }],
  FAILED: [{ text: "t.status = 'FAILED'" }, { text: isExpired(now), selectsExpired: true }],
})

/** Returns conditions that no row meets twice; their values are appended to `values`. */
function conditionsOf(
  { tokenId, status, party = null, initiatedAfter = null, initiatedBefore = null, brands }: TransferFilter,
  values: unknown[],
  now: number,
): Condition[] {
  const all = status === null ? [{ text: 'true' }] : conditionsAt(now)[status]
  const common: string[] = []
  if (tokenId !== null) common.push(`t.token_id = $${values.push(tokenId.toString())}::text::numeric`)
  if (initiatedAfter !== null) common.push(`t.initiated_at > $${values.push(initiatedAfter)}::text::timestamptz`)
  if (initiatedBefore !== null) common.push(`t.initiated_at < $${values.push(initiatedBefore)}::text::timestamptz`)
  if (brands !== undefined)
    common.push(
      `exists (select from asset b where b.token_id = t.token_id and b.brand = any($${values.push(brands)}::text[]))`,
    )
  const either = party === null ? [''] : partyConditions(values.push(party.slice(2)))
  return all.flatMap((one) =>
    either.map((other) => ({ ...one, text: [one.text, ...common, other].filter(Boolean).join(' and ') })),
  )
}

/** Each side of a transfer has an index of its own. */
function partyConditions(parameter: number): string[] {
  const address = `decode($${parameter}::text, 'hex')`
  return [`t.from_addr = ${address}`, `t.to_addr = ${address} and t.from_addr <> ${address}`]
}

/** Returns whether PostgreSQL is asked for the cost of a page first. */
function isAsked({ party, status, brands }: TransferFilter): boolean {
  return (Boolean(party) && status !== null) || brands !== undefined
}

/**
 * No index has this order. The planner then finds expired offers by their expiry, not among all open ones. It expects a third of all to have
 * expired, and the cost of a page that is asked for it would be refused.
 */
const orderOfExpired = "t.initiated_at + interval '0'"

/** `byProduct` reads a page of each product of the brands first. Its cost follows from their number alone. */
export function transferPageStatement(
  { after, limit, backward, ...filter }: TransferPage,
  { now = Date.now(), byProduct = false }: { readonly now?: number; readonly byProduct?: boolean } = {},
) {
  const values: unknown[] = []
  const { brands, ...others } = filter
  const direction = backward ? 'asc' : 'desc'
  const behind = after === null ? '' : `and ${behindOf('(t.initiated_at, t.pk)', backward ? '>' : '<', after, values)}`
  const branches = conditionsOf(byProduct ? others : filter, values, now).map(({ text, selectsExpired }) => {
    const order = selectsExpired && !isAsked(filter) ? orderOfExpired : 't.initiated_at'
    const rows = `select t.* from transfer t where ${byProduct ? 't.token_id = b.token_id and' : ''} ${text} ${behind}
      order by ${order} ${direction}, t.pk ${direction} limit $${values.push(limit)}`
    if (!byProduct) return `(${rows})`
    return `(select t.* from asset b cross join lateral (${rows}) t where b.brand = any($${values.push(brands)}::text[]))`
  })
  const text = `select ${columnsAt(now)} from (${branches.join(' union all ')}) t
    order by t.initiated_at ${direction}, t.pk ${direction} limit $${values.push(limit)}`
  return { text, values }
}

type StoredTransfer = Omit<TransferRow, 'tokenId'> & { readonly tokenId: string }

function parseRow(row: StoredTransfer): TransferRow {
  return { ...row, tokenId: BigInt(row.tokenId) }
}
