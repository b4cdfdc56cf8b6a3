/**
 * Events for subscribers (spec §6), in the order of their commits. A writer inserts its row in the transaction that causes it. A position
 * names a row and the moment at which it was written, so that one of a database that was restored since is recognised.
 */
import type { Hex } from '@touchstone/verdict'
import { earlierClock, instant, numbers } from '../db/columns.ts'
import type { Database, Sql } from '../db/database.ts'
import { lockTimeout } from '../db/errors.ts'
import { holdersStatement, locks } from '../db/locks.ts'
import type { TransferStatus } from '../domain/chain-index.ts'
import type { AssetEvent } from '../domain/registry-event.ts'
import { sleep } from '../lib/async/sleep.ts'
import { withSpan } from '../lib/async/span.ts'

/** The kinds of events of the feed. */
export type EventKind = (typeof chainKinds)[number] | 'VERIFIED'

const chainKinds = [
  'REGISTERED',
  'TAG_BOUND',
  'STATE_CHANGED',
  'FLAGS_CHANGED',
  'METADATA_SET',
  'OWNER_CHANGED',
  'TRANSFER',
] as const

/**
 * The event of the registry as JSON, and a transfer with the status that the event brought. A tap has neither. `formerBrand` is that of the
 * product before its metadata was replaced.
 */
export type Payload = Readonly<{
  formerBrand?: string
  cause?: Omit<AssetEvent, 'tokenId' | 'blockNumber' | 'timestamp' | 'expiry'> &
    Readonly<{ blockNumber: string; timestamp: string; expiry: string | null }>
  id?: string
  status?: TransferStatus
  from?: Hex
  to?: Hex
  initiatedAt?: string
  initiatedTx?: Hex
  expiresAt?: string | null
  settledTx?: Hex | null
  messageHash?: Hex | null
}>

/**
 * `topic` is `transfer` and `tap` for the two specified subscriptions, `chain` for the feed alone. `kind` is null in a row of an earlier
 * version, which the feed leaves out. `at` is RFC 3339; `retracts` is the position of the event that is taken back. `brands` are those of
 * the product while the event held. `null` is not known.
 */
export type OutboxEvent = Readonly<{
  seq: bigint
  position: string
  topic: string
  kind: EventKind | null
  tokenId: bigint
  at: string
  retracts: string | null
  isRetracted: boolean
  brands: readonly string[] | null
  payload: Payload
}>

/**
 * Returns the brands whose keys get an event that was taken back, or its retraction. `null` stands for the present brand of the product, to
 * which all others belong.
 */
export function keptBrands({ retracts, isRetracted, brands }: OutboxEvent): readonly string[] | null {
  return retracts !== null || isRetracted ? brands : null
}

/** Selects events; what is left out is any. */
export type EventFilter = Readonly<{ topic?: 'transfer' | 'tap'; kinds?: readonly EventKind[]; tokenId?: bigint }>

export function matchesFilter(event: OutboxEvent, { topic, kinds, tokenId }: EventFilter): boolean {
  if (tokenId !== undefined && event.tokenId !== tokenId) return false
  if (topic !== undefined) return event.topic === topic
  return event.kind !== null && (kinds === undefined || kinds.includes(event.kind))
}

/** Events after a position up to the event `upTo`, at most `limit`. With `brands`, those that belong to one of these. */
export type EventRange = EventFilter &
  Readonly<{ after: bigint; upTo: bigint; limit: number; brands?: readonly string[] | null }>

/** All events of a range up to `reached`, the place from which a reader goes on. `null` is the end of the range. */
type EventPage = Readonly<{ events: readonly OutboxEvent[]; reached: Place | null }>

/** The place of an event: its number, and the microsecond of its row since 1970. */
export type Place = Readonly<{ seq: bigint; micros: bigint }>

export type OutboxStore = ReturnType<typeof outboxStore>

export function outboxStore(database: Pick<Database, 'query' | 'dialect'>) {
  /**
   * Waits until the writers of this moment have ended, for half a second. The numbers below an event that was visible before are then
   * committed, or never will be. A writer takes the lock before its first number, and holds it until its commit is visible. It does not wait
   * for a reader.
   */
  async function writersOfNow(): Promise<void> {
    if (database.dialect === 'pglite') return // it runs one transaction at a time
    const read = async () =>
      (await database.query<{ holder: string }>(holdersStatement(locks.outbox))).map(({ holder }) => holder)
    const until = performance.now() + mostWaitMs
    let writers = await read()
    for (let pauseMs = 1; writers.length > 0; pauseMs = Math.min(pauseMs * 2, 32)) {
      if (performance.now() > until) throw lockTimeout('A writer holds the events.')
      await sleep(pauseMs)
      const holders = new Set(await read())
      writers = writers.filter((writer) => holders.has(writer))
    }
  }

  return {
    /** Returns events after `seq`, the oldest first. No later call returns an event below one that was returned. */
    async after(seq: bigint, limit: number): Promise<OutboxEvent[]> {
      const [last] = await database.query<{ seq: bigint }>(lastStatement, [seq])
      if (last === undefined) return []
      await writersOfNow()
      return (await database.query<Row>(afterStatement, [seq, last.seq, limit])).map(parseRow)
    },
    /**
     * Returns the place of the last event, also of one that is deleted since. Every event below it is committed. `known` is a place that
     * was returned before.
     */
    async newest(known?: Place): Promise<Place> {
      const [place = { seq: 0n, micros: 0n }] = await database.query<Place>(newestStatement)
      if (place.seq !== known?.seq || place.micros !== known.micros) await writersOfNow()
      return place
    },
    /**
     * Returns events in the order of their numbers; `upTo` is the number of an event that was read. It looks at a bounded number of events,
     * so that a page may be short, or empty, before the end of the range. `null` stands for events that are deleted already.
     */
    range(range: EventRange): Promise<EventPage | null> {
      return range.brands ? rangeOfBrands(range, range.brands) : readRange(range)
    },
    withRetracted,
    /** Returns whether a place is of this outbox and all events after it are kept. Also returns the place after which they are. */
    async check({ seq, micros }: Place): Promise<Readonly<{ known: boolean; oldest: Place }>> {
      const [row] = await database.query<Place & { given: bigint | null }>(checkStatement, [seq])
      const oldest = { seq: row?.seq ?? 0n, micros: row?.micros ?? 0n }
      const given = row?.given ?? (seq === oldest.seq ? oldest.micros : null)
      return { known: seq >= oldest.seq && given === micros, oldest }
    },
  }

  async function readRange(range: EventRange): Promise<EventPage | null> {
    const { text, values } = rangeStatement(range)
    const rows = await database.query<RangeRow>(text, values)
    const [first] = rows
    if (first !== undefined && first.trimmed > range.after) return null
    const events = rows.flatMap(({ trimmed: _trimmed, lookedSeq: _seq, lookedMicros: _micros, ...row }) =>
      row.seq === null ? [] : [parseRow(row)],
    )
    const last = events.at(-1)
    if (last !== undefined && events.length === range.limit) return { events, reached: parsePosition(last.position) }
    const isPart = first !== undefined && first.lookedSeq !== null && first.lookedMicros !== null
    return { events, reached: isPart ? { seq: first.lookedSeq, micros: first.lookedMicros } : null }
  }

  /**
   * Events are read in pages, and then filtered. One statement over both tables would look at all events where few have these brands. On a
   * cluster the brands are on the shards of the products.
   */
  async function rangeOfBrands(range: EventRange, brands: readonly string[]): Promise<EventPage | null> {
    const found: OutboxEvent[] = []
    let { after } = range
    for (let pages = 0; ; pages += 1) {
      const page = await readRange({ ...range, after, limit: pages === 0 ? range.limit : eventsAtOnce })
      if (page === null) return null
      found.push(...(await eventsOfBrands(page.events, brands)))
      const last = found[range.limit - 1]
      if (last !== undefined) return { events: found.slice(0, range.limit), reached: parsePosition(last.position) }
      if (page.reached === null || pages === mostPages) return { events: found, reached: page.reached }
      after = page.reached.seq
    }
  }

  async function eventsOfBrands(given: readonly OutboxEvent[], brands: readonly string[]): Promise<OutboxEvent[]> {
    if (given.length === 0) return []
    const present = await presentBrands(
      database,
      given.map(({ tokenId }) => tokenId),
    )
    const brandOf = (tokenId: bigint) => present.get(tokenId.toString()) ?? null
    const events = await withRetracted(given, brandOf)
    return events.filter((event) =>
      (keptBrands(event) ?? [brandOf(event.tokenId)]).some((brand) => brand !== null && brands.includes(brand)),
    )
  }

  /**
   * Returns the events as they are after the brands of their products were read. One that was taken back in between would otherwise go to a
   * key that does not get its retraction.
   */
  async function withRetracted(
    events: readonly OutboxEvent[],
    brandOf: (tokenId: bigint) => string | null,
  ): Promise<readonly OutboxEvent[]> {
    const doubtful = events.filter(({ retracts, isRetracted, kind, brands, tokenId }) => {
      if (kind === null || kind === 'VERIFIED' || retracts !== null || isRetracted) return false
      const brand = brandOf(tokenId)
      return brand !== null && brands?.includes(brand) !== true
    })
    if (doubtful.length === 0) return events
    const rows = await database.query<Pick<OutboxEvent, 'seq' | 'brands'>>(retractedStatement, [
      numbers(doubtful.map(({ seq }) => seq)),
    ])
    const retracted = new Map(rows.map(({ seq, brands }) => [seq, { isRetracted: true, brands }]))
    return events.map((event) => ({ ...event, ...retracted.get(event.seq) }))
  }
}

const eventsAtOnce = 1_000
/** The pages of 1,000 events that one read of a key with brands looks at. */
const mostPages = 5
/** The events that one read looks at where no index serves its filter. */
const mostLooked = 10_000

/** Returns the brands that products have now, by token; products without a brand are left out. */
export async function presentBrands(
  sql: Sql,
  tokens: readonly (bigint | string)[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await sql.query<{ tokenId: string; brand: string }>(brandsStatement, [numbers([...new Set(tokens)])])
  return new Map(rows.map(({ tokenId, brand }) => [tokenId, brand]))
}

const brandsStatement = `select token_id::text as "tokenId", brand from asset
  where token_id = any($1::numeric[]) and brand is not null`

const retractedStatement = 'select seq, brands from outbox where seq = any($1::bigint[]) and retracted'

export function formatPosition({ seq, micros }: Place): string {
  return `${seq}-${micros.toString(36)}`
}

/** Parses a position; `null` is none. */
export function parsePosition(text: string): Place | null {
  const [, seq, digits] = /^(\d{1,18})-([0-9a-z]{1,11})$/.exec(text) ?? []
  if (seq === undefined || digits === undefined) return null
  const micros = parseInt(digits, 36)
  return Number.isSafeInteger(micros) ? { seq: BigInt(seq), micros: BigInt(micros) } : null
}

const microsOf = (table: string) => `(extract(epoch from ${table}.created_at) * 1000000)::bigint`
/** SQL for the place of a row. */
export const positionColumns = (table: string) => `${table}.seq, ${microsOf(table)} as micros`

type Row = Omit<OutboxEvent, 'tokenId' | 'position'> & Readonly<{ tokenId: string; micros: bigint }>
/** `lookedSeq` and `lookedMicros` are the place up to which events were looked at. They are null at the end of the range. */
type RangeRow = (Row | Readonly<{ seq: null }>) &
  Readonly<{ trimmed: bigint; lookedSeq: bigint | null; lookedMicros: bigint | null }>

function parseRow({ tokenId, micros, ...row }: Row): OutboxEvent {
  return { ...row, tokenId: BigInt(tokenId), position: formatPosition({ seq: row.seq, micros }) }
}

const columns = `${positionColumns('o')}, o.topic, o.kind, o.token_id::text as "tokenId",
  coalesce(o.payload->>'at', ${instant('coalesce(o.happened_at, o.created_at)')}) as at, o.retracts,
  o.retracted as "isRetracted", o.brands, o.payload`

/** Readers wait so long for a writer, in milliseconds. Then they throw, and repeat. */
const mostWaitMs = 500

const lastStatement = 'select seq from outbox where seq > $1 order by seq desc limit 1'

const afterStatement = `select ${columns} from outbox o where o.seq > $1 and o.seq <= $2 order by o.seq limit $3`

const newestStatement = `select seq, micros from (
    select ${positionColumns('o')} from outbox o union all select ${positionColumns('t')} from outbox_trim t) p
  order by seq desc limit 1`

const checkStatement = `select ${positionColumns('t')}, (select ${microsOf('o')} from outbox o where o.seq = $1) as given from outbox_trim t`

/**
 * An answer without events still has one row, of what was deleted. Each kind is read by itself, from its place in its index. Topics have no
 * index, so that all events of a part of the range are looked at.
 */
function rangeStatement({ after, upTo, limit, topic, kinds, tokenId }: EventRange) {
  const values: unknown[] = [after, upTo, limit]
  const between = 'o.seq > $1 and o.seq <= $2'
  const wanted = topic === undefined ? ['o.kind is not null', between] : [`o.topic = $${values.push(topic)}`]
  if (tokenId !== undefined) wanted.push(`o.token_id = $${values.push(tokenId.toString())}::text::numeric`)
  let from = 'outbox o'
  let looked = 'select null::bigint as seq, null::bigint as micros'
  if (topic !== undefined) {
    const most = `$${values.push(mostLooked)}::int`
    from = `(select * from outbox o where ${between} order by o.seq limit ${most}) o`
    looked = `select ${positionColumns('o')} from outbox o where ${between} order by o.seq offset ${most} - 1 limit 1`
  } else if (kinds !== undefined) {
    const given = `$${values.push(kinds)}::text[]`
    if (tokenId !== undefined) wanted.push(`o.kind = any(${given})`)
    else
      from = `unnest(${given}) as k (kind) cross join lateral (
        select * from outbox o where ${afterOfKind('k.kind', '$1')} and o.seq <= $2 order by o.kind, o.seq limit $3) o`
  }
  const text = `select t.seq as trimmed, l.seq as "lookedSeq", l.micros as "lookedMicros", e.*
    from outbox_trim t left join lateral (${looked}) l on true
    left join lateral (select ${columns} from ${from} where ${wanted.join(' and ')} order by o.seq limit $3) e on true
    order by e.seq`
  return { text, values }
}

const mostTrimmed = 10_000

/** Deletes old events, 10,000 at most, and returns whether there may be more. `now` is the clock of this machine in unix seconds. */
export async function trimOutbox(sql: Sql, days: number, now: bigint): Promise<boolean> {
  const [trimmed] = await sql.query<{ n: number }>(trimStatement, [days, mostTrimmed, now])
  return trimmed?.n === mostTrimmed
}

export const trimStatement = `with deleted as (
    delete from outbox where seq in (
      select seq from outbox where created_at < ${earlierClock('$3')} - $1 * interval '1 day' order by created_at limit $2)
    returning 1)
  select count(*)::int as n from deleted`

/**
 * Yields the tokens of which the feed has events of the chain, each once, with its first event. They are read in pages, so that no statement
 * reaches its time limit.
 */
export async function* announcedTokens(sql: Sql): AsyncGenerator<string[]> {
  for (const kind of chainKinds)
    for (let after: bigint | undefined = 0n; after !== undefined;) {
      const values = [kind, after, eventsAtOnce, chainKinds]
      const rows: AnnouncedRow[] = await sql.query<AnnouncedRow>(announcedStatement, values)
      yield rows.flatMap(({ tokenId, first, seq }) => (first === seq ? [tokenId] : []))
      after = rows.length < eventsAtOnce ? undefined : rows.at(-1)?.seq
    }
}

type AnnouncedRow = Readonly<{ seq: bigint; tokenId: string; first: bigint | null }>

/** SQL for the number of a token's first event of the chain in the feed; null where there is none. */
const firstEventOf = (token: string, chain: string) => `(select p.seq from outbox p
    where p.token_id = ${token} and p.kind is not null and p.kind = any(${chain}::text[]) order by p.token_id, p.seq limit 1)`

const announcedStatement = `select o.seq, o.token_id::text as "tokenId", ${firstEventOf('o.token_id', '$4')} as first
  from outbox o where ${afterOfKind('$1', '$2')} order by o.kind, o.seq limit $3`

/** Returns those of the tokens of which the feed has no event of the chain. */
export async function unannouncedTokens(sql: Sql, tokens: readonly string[]): Promise<string[]> {
  const rows = await sql.query<Omit<AnnouncedRow, 'seq'>>(firstEventsStatement, [numbers(tokens), chainKinds])
  return rows.flatMap(({ tokenId, first }) => (first === null ? [tokenId] : []))
}

const firstEventsStatement = `select t.token_id::text as "tokenId", ${firstEventOf('t.token_id', '$2')} as first
  from unnest($1::numeric[]) t (token_id)`

/**
 * SQL condition for rows of a kind above a number, to be ordered by `o.kind, o.seq`. An equality would let PostgreSQL walk through all
 * kinds in the order of `seq`, because it expects the kind soon.
 */
function afterOfKind(kind: string, seq: string): string {
  return `(o.kind, o.seq) > (${kind}, ${seq}) and o.kind <= ${kind}`
}

/** The channel that is notified, without a payload, after every transaction that wrote an event. */
export const outboxChannel = 'touchstone_outbox'

/**
 * Returns a function that notifies readers of events of taps, after their commit. Calls during a notice become one more notice. A lost
 * notice costs a second, because readers poll too.
 */
export function outboxNotices(sql: Sql): () => void {
  let wanted = false
  let sending = false
  async function send(): Promise<void> {
    sending = true
    while (wanted) {
      wanted = false
      await sql.query("select pg_notify($1, '')", [outboxChannel]).catch(() => {})
    }
    sending = false
  }
  return () => {
    wanted = true
    if (!sending) withSpan(undefined, () => void send()) // no request waits for it
  }
}
