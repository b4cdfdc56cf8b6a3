/**
 * Quota windows in PostgreSQL (spec §8): any number of windows in one statement, timed by the server's clock.
 * Rows are locked in the order of their keys, so that two processes cannot deadlock.
 */
import type { LimitStore } from './shared-limiter.ts'

type Query = <Row>(text: string, values: readonly unknown[]) => Promise<Row[]>
type Row = { readonly key: string; readonly used: number; readonly granted: number; readonly remaining: bigint }

export function rateWindowStore({ query }: { readonly query: Query }) {
  return {
    async consume(requests, size) {
      const rows = await query<Row>(consumeText, [
        requests.map(({ key }) => key),
        requests.map(({ limit }) => limit),
        requests.map(({ windowMs }) => windowMs),
        requests.map(({ count }) => count),
        size,
      ])
      const found = new Map(rows.map((row) => [row.key, row]))
      return requests.map(({ key }) => {
        const row = found.get(key)
        if (row === undefined) throw new Error('PostgreSQL returned no row for a quota window.')
        return { used: row.used, granted: row.granted, remainingMs: Number(row.remaining) }
      })
    },
    /** Deletes at most `limit` ended windows and returns how many. */
    async prune(limit: number): Promise<number> {
      const rows = await query(pruneWindowsStatement, [limit])
      return rows.length
    },
  } satisfies LimitStore & { prune: unknown }
}

const milliseconds = (clock: string) => `(extract(epoch from ${clock}) * 1000)::bigint`
/** `clock_timestamp()`, because a statement that waited for a row must not count by the moment when it began. */
const clock = milliseconds('clock_timestamp()')

const consumeText = `
insert into rate_window as held (key, used, granted, allowed, length_ms, ends_at)
select key, fitting, fitting, allowed, length_ms, ${clock} + length_ms
from unnest($1::text[], $2::integer[], $3::integer[], $4::integer[]) as request (key, allowed, length_ms, wanted),
lateral (select least(wanted, allowed / $5::integer * $5) as fitting) as lists
order by key collate "C"
on conflict (key) do update set (used, granted, allowed, length_ms, ends_at) = (
  select
    case when is_over then excluded.used else held.used + room end,
    case when is_over then excluded.used else room end,
    excluded.allowed,
    excluded.length_ms,
    case when is_over then at + excluded.length_ms else held.ends_at end
  from (select ${clock} as at) as clock,
  lateral (select
    held.ends_at <= at or held.ends_at > at + excluded.length_ms as is_over,
    greatest(0, least(excluded.used, (excluded.allowed - held.used) / $5 * $5)) as room
  ) as state
)
returning key, used, granted, greatest(1, ends_at - ${clock}) as remaining`

/** Compares with the moment when the statement began, which an index can serve. It never waits for a row. */
export const pruneWindowsStatement = `
delete from rate_window where key in (
  select key from rate_window where ends_at <= ${milliseconds('statement_timestamp()')} order by ends_at limit $1
  for update skip locked
) returning 1`
