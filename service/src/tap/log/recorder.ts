/**
 * The log of taps: every presentation of a tag with its outcome, for the operator's back office. It holds the commitment of a tag, never
 * its UID, cryptogram or the client's address. The answer to a tap does not wait for it.
 */
import { bytes, hex, numbers, texts } from '../../db/columns.ts'
import type { Database, Sql } from '../../db/database.ts'
import { createBatcher } from '../../lib/async/batch.ts'
import { withSpan } from '../../lib/async/span.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'

export type TapRecordOutcome = 'FRESH' | 'REPEATED' | 'REPLAYED' | 'COUNTERFEIT_SUSPECTED'

/**
 * `tagHash` and `counter` are null for a cryptogram that no key made; `jumpFrom` is the last counter before a jump. A tag that the index
 * knows by `formerTagHash` is recorded under that, so that its product keeps its taps.
 */
export type TapPresentation = Readonly<{
  tagHash: `0x${string}` | null
  formerTagHash?: `0x${string}`
  counter: number | null
  jumpFrom: number | null
  country: string | null
  outcome: TapRecordOutcome
}>

export type TapLog = ReturnType<typeof createTapLog>

/** Presentations that wait for the database; those beyond are counted in the log only. */
const maxWaiting = 10_000

/** Creates the log of one process. Taps that come while a statement runs are written together by the next one. */
export function createTapLog({
  database,
  log,
}: {
  readonly database: Pick<Database, 'transaction'>
  readonly log: Log
}) {
  const batch = createBatcher<TapPresentation, null>({ maxItems: 1_000, run: writeAll })
  const waiting = new Set<Promise<unknown>>()
  let dropped = 0

  async function writeAll(presentations: readonly TapPresentation[]): Promise<null[]> {
    await write(database, presentations).catch((error: unknown) => {
      log.warn('taps not recorded', { count: presentations.length, reason: reasonOf(error) })
    })
    if (dropped > 0) log.warn('taps not recorded', { count: dropped, reason: 'the database is too slow' })
    dropped = 0
    return presentations.map(() => null)
  }

  return {
    /** Never waits and never fails. */
    record: (presentation: TapPresentation): void => {
      if (waiting.size >= maxWaiting) return void (dropped += 1)
      // No request waits for it, so that it belongs to no trace.
      const written = withSpan(undefined, () => batch(presentation)).finally(() => waiting.delete(written))
      waiting.add(written)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(waiting)
    },
  }
}

/** Replaces the commitment of each tag that is bound under its former one. */
async function asBound(sql: Sql, presentations: readonly TapPresentation[]): Promise<readonly TapPresentation[]> {
  const former = presentations.flatMap(({ formerTagHash }) => formerTagHash ?? [])
  if (former.length === 0) return presentations
  const statement = `select ${hex('tag_hash')} as "tagHash" from asset where tag_hash = any($1::bytea[])`
  const rows = await sql.query<{ tagHash: string }>(statement, [bytes([...new Set(former)])])
  const bound = new Set(rows.map(({ tagHash }) => tagHash))
  return presentations.map((presentation) => {
    const { formerTagHash } = presentation
    return formerTagHash !== undefined && bound.has(formerTagHash)
      ? { ...presentation, tagHash: formerTagHash }
      : presentation
  })
}

/** Counts equal presentations, in the order of their keys. */
function fold(presentations: readonly TapPresentation[]): Entry[] {
  const entries = new Map<string, Entry>()
  for (const presentation of presentations) {
    const { tagHash, counter, outcome, country } = presentation
    const key = `${tagHash} ${counter} ${outcome} ${country}`
    entries.set(key, { ...presentation, times: (entries.get(key)?.times ?? 0) + 1 })
  }
  return [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry)
}

type Entry = TapPresentation & Readonly<{ times: number }>

async function write(
  { transaction }: Pick<Database, 'transaction'>,
  presentations: readonly TapPresentation[],
): Promise<void> {
  await transaction(async (sql) => {
    const entries = fold(await asBound(sql, presentations))
    const suspicious = entries.filter(isSuspicious)
    await sql.query(logStatement, [
      bytes(entries.map(({ tagHash }) => tagHash)),
      numbers(entries.map(({ counter }) => counter)),
      texts(entries.map(({ outcome }) => outcome)),
      texts(entries.map(({ country }) => country)),
      numbers(entries.map(({ times }) => times)),
    ])
    if (suspicious.length === 0) return
    const jumps = suspicious.filter(({ jumpFrom }) => jumpFrom !== null)
    await sql.query(anomalyStatement, [
      bytes([...new Set(suspicious.map(({ tagHash }) => tagHash))]),
      bytes(jumps.map(({ tagHash }) => tagHash)),
      numbers(jumps.map(({ counter }) => counter)),
      numbers(jumps.map(({ jumpFrom }) => jumpFrom)),
    ])
  })
}

/** Returns whether a presentation can make an anomaly, alone or with others of its tag. */
function isSuspicious({ tagHash, country, outcome, jumpFrom }: Entry): boolean {
  return tagHash !== null && (country !== null || jumpFrom !== null || (outcome !== 'FRESH' && outcome !== 'REPEATED'))
}

/** A tag counts as in two places when two countries present it within so many hours. */
const placesHours = 6
/** So many replays within a day are an anomaly. */
const manyReplays = 5

// Rows are in the order of their keys, so that two processes never wait for each other crosswise.
const logStatement = `
insert into tap_log as t (tag_hash, counter, outcome, country, hour, times, first_at, last_at)
select g.tag_hash, g.counter, g.outcome, g.country, date_trunc('hour', c.at, 'UTC'), g.times, c.at, c.at
from unnest($1::bytea[], $2::int[], $3::text[], $4::text[], $5::int[]) with ordinality
  as g(tag_hash, counter, outcome, country, times, place), (select clock_timestamp() as at) c
order by g.place
on conflict (tag_hash, counter, outcome, country, hour) do update set times = t.times + excluded.times, last_at = excluded.last_at`

// A row of the log spans an hour at most. So its index by first_at bounds the time of its last tap.
const anomalyStatement = `
with c as (select clock_timestamp() as at, (clock_timestamp() at time zone 'UTC')::date as day)
insert into tap_anomaly as a (tag_hash, kind, day, counter, last_counter, countries, times, found_at, last_at)
select found.tag_hash, found.kind, c.day, found.counter, found.last_counter, found.countries, found.times, c.at, c.at from (
  select tag_hash, 'COUNTER_JUMP' as kind, counter, last_counter, null::text[] as countries, null::int as times
  from unnest($2::bytea[], $3::int[], $4::int[]) as jump(tag_hash, counter, last_counter)
  union all
  select t.tag_hash, 'TWO_PLACES', null, null, array_agg(distinct t.country order by t.country), null
  from tap_log t, c where t.tag_hash = any($1::bytea[]) and t.country is not null
    and t.first_at > c.at - interval '${placesHours + 1} hours' and t.last_at > c.at - interval '${placesHours} hours'
  group by t.tag_hash having count(distinct t.country) > 1
  union all
  select t.tag_hash, 'MANY_REPLAYS', null, null, null, sum(t.times)::int
  from tap_log t, c where t.tag_hash = any($1::bytea[]) and t.outcome in ('REPLAYED', 'COUNTERFEIT_SUSPECTED')
    and t.first_at > c.at - interval '25 hours' and t.last_at > c.at - interval '24 hours'
  group by t.tag_hash having sum(t.times) >= ${manyReplays}
) found, c
order by found.tag_hash, found.kind, found.counter
on conflict (tag_hash, kind, day, counter) do update set countries = excluded.countries, times = excluded.times,
  last_at = excluded.last_at`

/** Statements that delete a number of rows from before a moment, and return as many. */
export const pruneLogStatements = [
  `delete from tap_log where id in (
    select id from tap_log where first_at < $1::text::timestamptz order by first_at limit $2)
  returning id`,
  `delete from tap_anomaly where id in (
    select id from tap_anomaly where found_at < $1::text::timestamptz order by found_at limit $2)
  returning id`,
]
