/**
 * Windows of request budgets on PostgreSQL (spec §8): any number of draws in one statement, by the server's clock. The rows are locked in
 * the order of their keys, so that two processes never wait for each other.
 */
import type { Sql } from './database.ts'

type Draw = { readonly key: string; readonly limit: number; readonly windowMs: number; readonly count: number }
type Row = { readonly key: string; readonly used: number; readonly granted: number; readonly remaining: bigint }

export function rateWindowStore(sql: Sql) {
  return {
    /** Every key must be another one. The answers are in the order of the draws. */
    async draw(draws: readonly Draw[]) {
      const rows = await sql.query<Row>(drawText, [
        draws.map(({ key }) => key),
        draws.map(({ limit }) => limit),
        draws.map(({ windowMs }) => windowMs),
        draws.map(({ count }) => count),
      ])
      const found = new Map(rows.map((row) => [row.key, row]))
      return draws.map(({ key }) => {
        const row = found.get(key)
        if (row === undefined) throw new Error('a window without an answer')
        return { used: row.used, granted: row.granted, remainingMs: Number(row.remaining) }
      })
    },
    /** Deletes at most `limit` windows that are over; how many it were. */
    async sweep(limit: number): Promise<number> {
      const rows = await sql.query(sweepText, [limit])
      return rows.length
    },
  }
}

/** `clock_timestamp()`, because a statement that had to wait for a row must not count by the moment when it began. */
const clock = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

const drawText = `
insert into rate_window as held (key, used, granted, allowed, length_ms, ends_at)
select key, least(wanted, allowed), least(wanted, allowed), allowed, length_ms, ${clock} + length_ms
from unnest($1::text[], $2::integer[], $3::integer[], $4::integer[]) as draw (key, allowed, length_ms, wanted)
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
    greatest(0, least(excluded.used, excluded.allowed - held.used)) as room
  ) as state
)
returning key, used, granted, greatest(1, ends_at - ${clock}) as remaining`

const sweepText = `
delete from rate_window where key in (
  select key from rate_window where ends_at <= ${clock} order by ends_at limit $1 for update skip locked
) returning 1`
