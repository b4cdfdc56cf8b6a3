/** Reads the log of taps and its anomalies in pages by keyset, which cost the same at any depth. */
import type { Hex } from '@touchstone/verdict'
import { countWithin } from '../../db/bounded-count.ts'
import { briefReads, cheapStatement, createCostCheck } from '../../db/cost.ts'
import { behindOf, hex, hexToBytes, instant, type KeysetPage } from '../../db/columns.ts'
import type { Database } from '../../db/database.ts'
import type { TapRecordOutcome } from './recorder.ts'

/** One row of `tap_log`. Times are RFC 3339 with microseconds, in UTC. */
export type TapRow = Readonly<{
  id: bigint
  /** Null for a cryptogram that no key made. */
  tagHash: Hex | null
  counter: number | null
  outcome: TapRecordOutcome
  country: string | null
  times: number
  firstAt: string
  lastAt: string
}>

export type TapAnomalyKind = 'TWO_PLACES' | 'COUNTER_JUMP' | 'MANY_REPLAYS'

/** One row of `tap_anomaly`. Which fields are set follows from the kind. */
export type TapAnomalyRow = Readonly<{
  id: bigint
  tagHash: Hex
  kind: TapAnomalyKind
  foundAt: string
  counter: number | null
  lastCounter: number | null
  countries: readonly string[] | null
  times: number | null
}>

/** A filter; a condition that is left out does not narrow. Instants leave their own instant out. */
export type TapFilter = Readonly<{
  tagHash?: Hex | undefined
  outcome?: TapRecordOutcome | undefined
  country?: string | undefined
  kind?: TapAnomalyKind | undefined
  after?: string | undefined
  before?: string | undefined
  /** Selects the taps of products of these brands. */
  brands?: readonly string[] | undefined
}>

type TapQuestion = KeysetPage & Readonly<{ tagHash: Hex }>

type TapDatabase = Pick<Database, 'query' | 'transaction' | 'dialect'>

/**
 * Taps of brands are found over `indexed`: the index says what brand a tag is of. `haveFewProducts` says for which brands a list that would
 * cost too much is read tag by tag, at a cost that follows from the number of their products alone.
 */
export function tapQueries(
  log: TapDatabase,
  indexed = log,
  haveFewProducts: (brands: readonly string[]) => Promise<boolean> = async () => false,
) {
  const assertCheap = createCostCheck(log)
  const databaseOf = ({ brands }: TapFilter) => (brands === undefined ? log : indexed)
  const rowsOf = async <Row>(list: TapList, filter: TapFilter, page: KeysetPage): Promise<Row[]> => {
    const plain = tapPageStatement(list, filter, page)
    if (isIndexed(filter)) return log.query<Row>(plain.text, plain.values)
    const { text, values } = await cheapStatement(log, assertCheap, plain, async () => {
      const { brands, tagHash } = filter
      const byTag = brands !== undefined && tagHash === undefined && (await haveFewProducts(brands))
      return byTag ? tapPageStatement(list, filter, page, byTag) : null
    })
    return briefReads(databaseOf(filter)).query<Row>(text, values)
  }
  const countOf = ({ table, time }: TapList, filter: TapFilter): Promise<number | null> => {
    const values: unknown[] = []
    return countWithin(databaseOf(filter), `select 1 from ${table} where ${conditionOf(time, filter, values)}`, values)
  }
  return {
    /** Returns one page of taps; backward ones the oldest first. Throws a CostError where PostgreSQL expects that it reads too much. */
    page: (filter: TapFilter, page: KeysetPage) => rowsOf<TapRow>(tapLists.taps, filter, page),
    /** Returns the number of rows; null where a count takes too long. */
    count: (filter: TapFilter) => countOf(tapLists.taps, filter),
    anomalies: (filter: TapFilter, page: KeysetPage) => rowsOf<TapAnomalyRow>(tapLists.anomalies, filter, page),
    countAnomalies: (filter: TapFilter) => countOf(tapLists.anomalies, filter),
    /** Returns a page of the taps of each tag, in the order of the questions. There is a statement for each direction. */
    async pagesOfTags(questions: readonly TapQuestion[]): Promise<TapRow[][]> {
      const pages = questions.map((): TapRow[] => [])
      for (const backward of [false, true]) {
        const asked = questions.flatMap((question, place) =>
          question.backward === backward ? [{ ...question, place }] : [],
        )
        if (asked.length === 0) continue
        const rows = await log.query<TapRow & { place: number }>(tagsStatement(backward), [
          asked.map(({ place }) => place),
          asked.map(({ tagHash }) => tagHash.slice(2)),
          asked.map(({ after }) => after?.[0] ?? null),
          asked.map(({ after }) => after?.[1] ?? null),
          asked.map(({ limit }) => limit),
        ])
        for (const { place, ...row } of rows) pages[place]?.push(row)
      }
      return pages
    },
  }
}

/** One index has one of these conditions in the order of time. */
function isIndexed({ tagHash, outcome, country, kind, brands }: TapFilter): boolean {
  return brands === undefined && [tagHash, outcome, country, kind].filter((value) => value !== undefined).length <= 1
}

type TapList = Readonly<{ table: string; time: string; columns: string }>

const tapColumns = `id, ${hex('tag_hash')} as "tagHash", counter, outcome, country, times, ${instant('first_at')} as "firstAt",
  ${instant('last_at')} as "lastAt"`

export const tapLists = {
  taps: { table: 'tap_log', time: 'first_at', columns: tapColumns },
  anomalies: {
    table: 'tap_anomaly',
    time: 'found_at',
    columns: `id, ${hex('tag_hash')} as "tagHash", kind, ${instant('found_at')} as "foundAt", counter, last_counter as "lastCounter",
      countries, times`,
  },
} as const satisfies Record<string, TapList>

/** Returns the statement of a page of taps or anomalies. `byTag` reads a page of each tag of the brands first. */
export function tapPageStatement(
  { table, time, columns }: TapList,
  { brands, ...filter }: TapFilter,
  { after, backward, limit }: KeysetPage,
  byTag = false,
) {
  const values: unknown[] = []
  const [direction, behind] = backward ? (['asc', '>'] as const) : (['desc', '<'] as const)
  const wanted = [conditionOf(time, byTag ? filter : { ...filter, brands }, values)]
  if (after !== null) wanted.push(behindOf(`(${time}, id)`, behind, after, values))
  const where = wanted.join(' and ')
  const most = values.push(limit)
  if (!byTag) {
    const text = `select ${columns} from ${table} where ${where}
    order by ${time} ${direction}, id ${direction} limit $${most}`
    return { text, values }
  }
  const text = `select ${columns} from (select t.* from asset b cross join lateral (
      select * from ${table} where ${where} and tag_hash = b.tag_hash order by ${time} ${direction}, id ${direction} limit $${most}) t
    where b.brand = any($${values.push(brands)}::text[])) taps
    order by ${time} ${direction}, id ${direction} limit $${most}`
  return { text, values }
}

function conditionOf(time: string, filter: TapFilter, values: unknown[]): string {
  const { tagHash, outcome, country, kind, after, before, brands } = filter
  const conditions = [
    tagHash && `tag_hash = $${values.push(hexToBytes(tagHash))}`,
    outcome && `outcome = $${values.push(outcome)}`,
    country && `country = $${values.push(country)}`,
    kind && `kind = $${values.push(kind)}`,
    after && `${time} > $${values.push(after)}::text::timestamptz`,
    brands && `tag_hash in (select a.tag_hash from asset a where a.brand = any($${values.push(brands)}::text[]))`,
    before && `${time} < $${values.push(before)}::text::timestamptz`,
  ].filter(Boolean)
  return conditions.length === 0 ? 'true' : conditions.join(' and ')
}

/** Returns the statement of the pages of several tags in one direction. */
export function tagsStatement(backward: boolean): string {
  const [direction, behind, end] = backward ? ['asc', '>', '-infinity'] : ['desc', '<', 'infinity']
  return `select q.place, t.* from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::int[])
      as q(place, tag_hash, after_at, after_id, most)
    cross join lateral (
      select ${tapColumns} from tap_log where tag_hash = decode(q.tag_hash, 'hex')
        and (first_at, id) ${behind} (coalesce(q.after_at, '${end}')::timestamptz, coalesce(q.after_id, '0')::bigint)
      order by first_at ${direction}, id ${direction} limit q.most
    ) t`
}
