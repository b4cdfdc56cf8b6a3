/**
 * The seller's view of the payments (spec §4.8): lists, totals and export. Rows are kept for ten years, so that every statement reads an
 * index within bounds. The gas of a transaction is shared evenly by its payments.
 */
import type { Hex } from '@touchstone/verdict'
import { hexToBytes, instant } from '../db/columns.ts'
import type { Database } from '../db/database.ts'
import { withHexColumns, type Stored } from './key.ts'
import { gasCost, gasShare, ofToken } from './ledger/table.ts'

/** settled: paid. rejected: ended without a transfer. removed: paid, until a reorganisation took it away. pending: not decided. */
export const outcomes = ['settled', 'rejected', 'removed', 'pending'] as const
type Outcome = (typeof outcomes)[number]
type Kind = 'transfer' | 'deposit' | 'voucher'
export const dimensions = ['day', 'outcome', 'payer', 'asset', 'kind'] as const
export type Dimension = (typeof dimensions)[number]

/** Unix milliseconds; `until` is not part of the span. */
type Span = { readonly since?: number | undefined; readonly until?: number | undefined }
export type Filter = Span & { readonly outcome?: Outcome | undefined; readonly payer?: Hex | undefined }

/** `time` is that of the end, or the beginning of a pending payment. `units` are millionths of USDC, `gas` is in wei, both in decimal. */
export type BookRow = {
  readonly pk: bigint
  readonly time: string
  readonly outcome: Outcome
  readonly payer: Hex
  readonly nonce: Hex
  readonly assetId: string | null
  readonly units: string
  readonly transaction: Hex | null
  readonly block: bigint | null
  readonly reason: string | null
  readonly gas: string | null
  /** A voucher is a purchase through a payment channel, and a deposit fills one. `units` of a deposit are 0, because it is the buyer's. */
  readonly kind: Kind
  readonly channel: Hex | null
}

/** Sums of the payments that share `key`. A dash in the key: gas of transactions without a payment. */
export type Group = { readonly key: readonly string[]; payments: number; units: bigint; gas: bigint }

export type Book = ReturnType<typeof createBook>

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const maxGroups = 100_000
const rowsPerPage = 1_000
const conditions = {
  settled: `p.state = 'done' and p.reason is null`,
  rejected: `p.state = 'dead'`,
  removed: `p.state = 'done' and p.reason is not null`,
  pending: `p.state = 'settling'`,
} as const satisfies Readonly<Record<Outcome, string>>
const outcomeSql = `case ${outcomes.map((outcome) => `when ${conditions[outcome]} then '${outcome}'`).join(' ')} else 'pending' end`
const columns = `p.pk, ${instant('coalesce(p.settled_at, p.created_at)')} as time, ${outcomeSql} as outcome, p.payer, p.nonce,
  p.token_id::text as "assetId", case p.kind when 'deposit' then '0' else coalesce(p.amount, 0)::text end as units, p.kind, p.channel, p.tx_hash as transaction, p.block_number as block, p.reason,
  (select ${gasShare}::text from settlement s where s.pk = p.settlement and s.state = 'mined') as gas`
const fields = {
  outcome: outcomeSql,
  payer: `'0x' || encode(p.payer, 'hex')`,
  asset: `coalesce(p.token_id::text, '')`,
  kind: 'p.kind',
}

/** `asset` is the address of the payment token. A day with more than `mostRowsOfDay` is summed hour by hour. */
export function createBook(
  database: Pick<Database, 'query'>,
  {
    chainId,
    asset,
    mostRowsOfDay = 5_000,
  }: { readonly chainId: number; readonly asset: Hex; readonly mostRowsOfDay?: number },
) {
  const run = <R>(text: string, values: readonly unknown[]) =>
    database.query<R>(text, [chainId, hexToBytes(asset), ...values])

  /** Reads rows that meet `where`, whose parameters begin with $3. */
  async function read(where: string, values: readonly unknown[]): Promise<BookRow[]> {
    const rows = await run<Stored<BookRow>>(`select ${columns} from payment p where ${ofToken} and ${where}`, values)
    return rows.map(withHexColumns)
  }

  return {
    /** Returns the newest payments: pending ones, then those that ended last. */
    async list({ outcome, payer, since, until }: Filter, limit: number): Promise<BookRow[]> {
      const within = (time: string) =>
        `($3::bytea is null or p.payer = $3) and ${time} >= $4 and ${time} < $5 order by ${time} desc, p.pk desc limit $6`
      const values = [payer ? hexToBytes(payer) : null, toTime(since, -Infinity), toTime(until, Infinity), limit]
      const isPending = outcome === undefined || outcome === 'pending'
      const pending = isPending ? await read(`${conditions.pending} and ${within('p.created_at')}`, values) : []
      if (outcome === 'pending' || pending.length === limit) return pending
      const state = outcome === undefined ? '' : `${conditions[outcome]} and`
      const ended = await read(`${state} ${within('p.settled_at')}`, [...values.slice(0, 3), limit - pending.length])
      return [...pending, ...ended]
    },

    /** Returns the payment of an authorization, or undefined. */
    async find(payer: Hex, nonce: Hex): Promise<BookRow | undefined> {
      return (await read('p.payer = $3 and p.nonce = $4', [hexToBytes(payer), hexToBytes(nonce)]))[0]
    },

    /** Returns the payments of a transaction, at most 200. */
    findByTransaction(hash: Hex): Promise<BookRow[]> {
      return read(`p.tx_hash = $3 and (p.settled_at is not null or p.state = 'settling') order by p.pk limit 200`, [
        hexToBytes(hash),
      ])
    },

    /** Yields the payments that ended within the span, oldest first, in pages. The last one may be empty. */
    async *pages({ outcome, payer, since, until }: Filter): AsyncGenerator<BookRow[]> {
      const state = outcome === undefined ? '' : `${conditions[outcome]} and`
      let [time, pk] = [toTime(since, -Infinity), -1n]
      for (;;) {
        const page = await read(
          `${state} ($3::bytea is null or p.payer = $3) and p.settled_at >= $4 and (p.settled_at, p.pk) > ($4, $5::bigint)
             and p.settled_at < $6 order by p.settled_at, p.pk limit ${rowsPerPage}`,
          [payer ? hexToBytes(payer) : null, time, pk, toTime(until, Infinity)],
        )
        yield page
        const last = page.at(-1)
        if (last === undefined || page.length < rowsPerPage) return
        time = last.time
        pk = last.pk
      }
    },

    /** Sums the payments that ended within the span, by days or hours. Returns null where there are too many groups to hold. */
    async report({ since, until }: Span, by: readonly Dimension[]): Promise<Group[] | null> {
      const groups = new Map<string, Group>()
      const add = (key: readonly string[], sums: Sums) => {
        const group = groups.get(key.join()) ?? { key, payments: 0, units: 0n, gas: 0n }
        groups.set(key.join(), group)
        group.payments += Number(sums.payments)
        group.units += BigInt(sums.units)
        group.gas += BigInt(sums.gas)
      }
      for await (const [from, to] of parts(since, until)) {
        const day = from.slice(0, 10)
        for (const { key, ...sums } of await sumPayments(by, from, to))
          add(
            key.map((field, index) => (by[index] === 'day' ? day : field)),
            sums,
          )
        const [other] = await database.query<Sums>(
          `select 0 as payments, '0' as units, coalesce(sum(${gasCost}), 0)::text as gas from settlement s
           where chain_id = $1 and state = 'mined' and mined_at >= $2 and mined_at < $3
             and not exists (select from payment m where m.settlement = s.pk)`,
          [chainId, from, to],
        )
        if (other && other.gas !== '0')
          add(
            by.map((dimension) => (dimension === 'day' ? day : '–')),
            other,
          )
        if (groups.size > maxGroups) return null
      }
      return [...groups.values()]
    },
  }

  function sumPayments(by: readonly Dimension[], from: string, to: string) {
    const key = by.map((dimension) => (dimension === 'day' ? `''` : fields[dimension]))
    return run<Sums & { readonly key: readonly string[] }>(
      `with ended as materialized (select array[${key.join()}]::text[] as key, ${conditions.settled} as "isPaid", p.amount, p.settlement, p.kind
           from payment p where ${ofToken} and p.settled_at >= $3 and p.settled_at < $4),
         shares as (select s.pk, ${gasShare} as gas from settlement s
           where s.pk in (select settlement from ended) and s.state = 'mined')
       select key, count(*) filter (where kind <> 'deposit') as payments,
         coalesce(sum(amount) filter (where "isPaid" and kind <> 'deposit'), 0)::text as units,
         coalesce(sum(gas), 0)::text as gas from ended left join shares on shares.pk = ended.settlement group by key`,
      [from, to],
    )
  }

  /** Yields the days of the span in which anything ended, and the hours of days with many rows. */
  async function* parts(since?: number, until?: number): AsyncGenerator<readonly [from: string, to: string]> {
    let at = toTime(since, -Infinity)
    let dayOfHours = -1
    for (;;) {
      const [next] = await database.query<{ ms: number | null }>(
        `select (extract(epoch from least(
           (select min(settled_at) from payment where settled_at >= $1),
           (select min(mined_at) from settlement where state = 'mined' and mined_at >= $1))) * 1000)::float8 as ms`,
        [at],
      )
      const ms = next?.ms ?? null
      if (ms === null || ms >= (until ?? Infinity)) return
      const day = Math.floor(ms / dayMs) * dayMs
      if (day !== dayOfHours && !(await isFew(day))) dayOfHours = day
      const length = day === dayOfHours ? hourMs : dayMs
      const begin = Math.floor(ms / length) * length
      const end = toTime(Math.min(begin + length, until ?? Infinity), Infinity)
      yield [toTime(Math.max(begin, since ?? -Infinity), -Infinity), end]
      at = end
    }
  }

  async function isFew(day: number): Promise<boolean> {
    const [found] = await database.query<{ rows: number }>(
      `select ((select count(*) from (select from payment where settled_at >= $1 and settled_at < $2 limit $3) p)
         + (select count(*) from (select from settlement where state = 'mined' and mined_at >= $1 and mined_at < $2 limit $3) s))::float8 as rows`,
      [toTime(day, 0), toTime(day + dayMs, 0), mostRowsOfDay + 1],
    )
    return (found?.rows ?? 0) <= mostRowsOfDay
  }
}

type Sums = { readonly payments: bigint | number; readonly units: string; readonly gas: string }

/** Formats a time for PostgreSQL. `unbounded` stands for none. */
function toTime(ms: number | undefined, unbounded: number): string {
  const at = ms ?? unbounded
  return Number.isFinite(at) ? new Date(at).toISOString() : at < 0 ? '-infinity' : 'infinity'
}
