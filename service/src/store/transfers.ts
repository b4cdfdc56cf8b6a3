/** Transfers as the index has them (spec §2.9, §3, §4.9): by id, the newest of products, or pages by keyset. */
import type { Hex } from '@touchstone/verdict'
import { countWithin } from './bounded-count.ts'
import type { Database } from './database.ts'
import { hex, instant, type Keyset } from './products.ts'

export const transferStatuses = ['PENDING', 'CONFIRMED', 'FAILED'] as const
export type TransferStatus = (typeof transferStatuses)[number]

/** One row of `transfer`. Times are RFC 3339 with microseconds, in UTC; addresses are lower case. */
export type TransferRow = {
  readonly pk: bigint
  readonly id: string
  readonly tokenId: bigint
  readonly from: Hex
  readonly to: Hex
  /** FAILED also where the offer is past its time and nobody has settled it yet. */
  readonly status: TransferStatus
  readonly initiatedAt: string
  readonly initiatedTx: Hex
  readonly expiresAt: string | null
  readonly settledTx: Hex | null
  readonly messageHash: Hex | null
}

/** Left out: of all products, of all statuses. Newest first. */
export type TransferFilter = { readonly tokenId: bigint | null; readonly status: TransferStatus | null }
export type TransferPage = TransferFilter & { readonly after: Keyset | null; readonly limit: number }

export type TransferStore = ReturnType<typeof transferStore>

/** Product.transfers has no arguments, so that it shows this many. */
const newest = 100

export function transferStore(database: Pick<Database, 'query' | 'transaction' | 'dialect'>) {
  return {
    /** Those that are there, in no order. */
    async byIds(ids: readonly string[]): Promise<TransferRow[]> {
      const text = `select ${columns} from transfer t join asset a on a.pk = t.asset_pk where t.id = any($1::text[])`
      return (await database.query<StoredTransfer>(text, [ids])).map(transferOf)
    },
    /** The newest 100 of each product, by its `pk`, newest first; one statement for all. */
    async newestOf(pks: readonly bigint[]): Promise<Map<bigint, TransferRow[]>> {
      const rows = await database.query<StoredTransfer & { assetPk: bigint }>(newestStatement, [pks.map(String)])
      const found = new Map<bigint, TransferRow[]>()
      for (const { assetPk, ...row } of rows) {
        const known = found.get(assetPk)
        if (known === undefined) found.set(assetPk, [transferOf(row)])
        else known.push(transferOf(row))
      }
      return found
    },
    async page(page: TransferPage): Promise<TransferRow[]> {
      const { text, values } = transferPageStatement(page)
      return (await database.query<StoredTransfer>(text, values)).map(transferOf)
    },
    /** How many there are; null where counting takes too long. */
    async count(filter: TransferFilter): Promise<number | null> {
      const values: unknown[] = []
      const branches = branchesOf(filter).map(
        (branch) => `select from transfer t where ${conditionOf(filter, branch, values)}`,
      )
      return countWithin(database, branches.join(' union all '), values)
    },
    /** The texts of those hashes that are known. */
    async messages(hashes: readonly Hex[]): Promise<Map<Hex, string>> {
      const rows = await database.query<{ hash: Hex; body: string }>(
        `select ${hex('hash')} as hash, body from transfer_message
         where hash in (select decode(digits, 'hex') from unnest($1::text[]) digits)`,
        [hashes.map((hash) => hash.slice(2))],
      )
      return new Map(rows.map(({ hash, body }) => [hash, body]))
    },
  }
}

/** The chain's clock where it is ahead of ours: an offer is past its time when it can no longer be accepted. */
const now = 'greatest(now(), (select block_time from index_cursor))'
const isOver = `t.status = 'PENDING' and t.expires_at < ${now}`

const columns = `t.pk, t.id, a.token_id::text as "tokenId", ${hex('t.from_addr')} as "from", ${hex('t.to_addr')} as "to",
  case when ${isOver} then 'FAILED' else t.status end as status, ${instant('t.initiated_at')} as "initiatedAt",
  ${hex('t.initiated_tx')} as "initiatedTx", ${instant('t.expires_at')} as "expiresAt", ${hex('t.settled_tx')} as "settledTx",
  ${hex('t.message_hash')} as "messageHash"`

export const newestStatement = `select a.pk as "assetPk", ${columns}
  from (select a.pk, a.token_id from unnest($1::text[]::bigint[]) k join asset a on a.pk = k) a
  cross join lateral (
    select * from transfer where asset_pk = a.pk order by initiated_at desc, pk desc limit ${newest}
  ) t
  order by a.pk, t.initiated_at desc, t.pk desc`

/**
 * FAILED is two ranges, what has failed and what is over, each read by its own index: under one «or» the planner would walk through
 * all transfers.
 */
type Branch = 'all' | 'confirmed' | 'open' | 'failed' | 'over'

function branchesOf({ status }: TransferFilter): readonly Branch[] {
  if (status === null) return ['all']
  if (status === 'PENDING') return ['open']
  return status === 'FAILED' ? ['failed', 'over'] : ['confirmed']
}

const conditions: Readonly<Record<Branch, string>> = {
  all: 'true',
  confirmed: "t.status = 'CONFIRMED'",
  failed: "t.status = 'FAILED'",
  over: isOver,
  // An offer without an end stays open.
  open: `t.status = 'PENDING' and (t.expires_at >= ${now}) is not false`,
}

function conditionOf({ tokenId }: TransferFilter, branch: Branch, values: unknown[]): string {
  if (tokenId === null) return conditions[branch]
  const id = values.push(tokenId.toString())
  return `t.asset_pk = (select pk from asset where token_id = $${id}::text::numeric) and ${conditions[branch]}`
}

export function transferPageStatement({ after, limit, ...filter }: TransferPage) {
  const values: unknown[] = []
  const branches = branchesOf(filter).map((branch) => {
    const wanted = [conditionOf(filter, branch, values)]
    if (after !== null) {
      const [at, pk] = [values.push(after[0]), values.push(after[1])]
      wanted.push(`(t.initiated_at, t.pk) < ($${at}::text::timestamptz, $${pk}::text::bigint)`)
    }
    return `(select t.* from transfer t where ${wanted.join(' and ')}
      order by t.initiated_at desc, t.pk desc limit $${values.push(limit)})`
  })
  const text = `select ${columns} from (${branches.join(' union all ')}) t join asset a on a.pk = t.asset_pk
    order by t.initiated_at desc, t.pk desc limit $${values.push(limit)}`
  return { text, values }
}

type StoredTransfer = Omit<TransferRow, 'tokenId'> & { readonly tokenId: string }

function transferOf(row: StoredTransfer): TransferRow {
  return { ...row, tokenId: BigInt(row.tokenId) }
}
