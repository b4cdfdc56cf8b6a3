/**
 * Announcements of the index to subscribers (spec §6). Every event of the registry, and every status of a transfer, is a row of the outbox.
 * A row of its own retracts each event that a reorganisation or a repair took back.
 */
import { zeroAddress } from '@touchstone/verdict'
import { zeroHash } from '../domain/chain.ts'
import { numbers, seconds, texts } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import { clampSeconds, type TransferStatus } from '../domain/chain-index.ts'
import { formatInstant } from '../domain/text.ts'
import { type AssetEvent, type EventCode, eventKinds } from '../domain/registry-event.ts'
import { readEvents, tokensSince } from './history.ts'
import {
  announcedTokens,
  type EventKind,
  formatPosition,
  type Payload,
  positionColumns,
  presentBrands,
  unannouncedTokens,
} from './outbox.ts'
import { projectTransfers, type Transfer, type TransferStep } from './project.ts'
import { expiredIds } from './transfers.ts'

/**
 * `at` is in unix seconds. `retracts` is the position of the row that is taken back, and `was` the status that it brought. `brands` are those
 * whose keys got that row; `null` is not known.
 */
export type Announcement = Readonly<{
  kind: EventKind
  tokenId: string
  at: bigint
  payload: Payload
  retracts: Readonly<{
    seq: bigint
    position: string
    was: TransferStatus | null
    brands: readonly string[] | null
  }> | null
}>

/**
 * Returns the announcements of events and of the new statuses of transfers, in order. `formerBrands` are those of products before these
 * events. The first new metadata of a product keeps it.
 */
export function announcementsOf(
  events: readonly AssetEvent[],
  steps: readonly TransferStep[],
  formerBrands: ReadonlyMap<string, string> = new Map(),
): Announcement[] {
  const stepsAt = Map.groupBy(steps, ({ shownAt }) => shownAt)
  const replaced = new Map(formerBrands)
  const announcements: Announcement[] = []
  for (const event of events) {
    const kind = kindOf(event)
    const { tokenId, timestamp: at } = event
    const formerBrand = kind === 'METADATA_SET' ? replaced.get(tokenId) : undefined
    if (formerBrand !== undefined) replaced.delete(tokenId)
    const payload = { cause: causeOf(event), ...(formerBrand !== undefined && { formerBrand }) }
    if (kind !== null) announcements.push({ kind, tokenId, at, payload, retracts: null })
    for (const step of stepsAt.get(event) ?? []) announcements.push(transferAnnouncement(step))
  }
  return [...announcements, ...(stepsAt.get(null) ?? []).map(transferAnnouncement)]
}

/** Returns the brands, before a step, of the products whose metadata its events replace. */
export function replacedBrands(sql: Sql, events: readonly AssetEvent[]): Promise<ReadonlyMap<string, string>> {
  const tokens = events.flatMap(({ kind, tokenId }) => (kind === eventKinds.MetadataHashSet ? [tokenId] : []))
  return tokens.length === 0 ? Promise.resolve(new Map()) : presentBrands(sql, tokens)
}

/** Events of transfers are announced as statuses. */
const kinds: Readonly<Record<EventCode, EventKind | null>> = {
  [eventKinds.AssetMinted]: 'REGISTERED',
  [eventKinds.TagBound]: 'TAG_BOUND',
  [eventKinds.StateChanged]: 'STATE_CHANGED',
  [eventKinds.FlagsChanged]: 'FLAGS_CHANGED',
  [eventKinds.MetadataHashSet]: 'METADATA_SET',
  [eventKinds.Transfer]: 'OWNER_CHANGED',
  [eventKinds.TransferInitiated]: null,
  [eventKinds.TransferCancelled]: null,
  [eventKinds.AssetResold]: null,
}

/** The owner at a mint is part of its registration. */
function kindOf({ kind, from }: AssetEvent): EventKind | null {
  return kind === eventKinds.Transfer && from === zeroAddress ? null : kinds[kind]
}

/** Returns the announcement of a transfer's status. An offer that expired has no cause. */
export function transferAnnouncement({ transfer, cause }: Pick<TransferStep, 'transfer' | 'cause'>): Announcement {
  const { id, tokenId, from, to, status, initiatedAt, settledAt, expiresAt, messageHash } = transfer
  const at = (status === 'PENDING' ? null : settledAt) ?? initiatedAt
  const payload: Payload = {
    id,
    status,
    from,
    to,
    initiatedAt: formatInstant(initiatedAt),
    initiatedTx: transfer.initiatedTransaction,
    expiresAt: expiresAt === null ? null : formatInstant(expiresAt),
    settledTx: transfer.settledTransaction,
    messageHash: messageHash === zeroHash ? null : messageHash,
    ...(cause !== null && { cause: causeOf(cause) }),
  }
  return { kind: 'TRANSFER', tokenId, at, payload, retracts: null }
}

/** Large numbers are decimal text. */
function causeOf({ tokenId: _tokenId, ...event }: AssetEvent): NonNullable<Payload['cause']> {
  const { blockNumber, timestamp, expiry } = event
  return {
    ...event,
    blockNumber: String(blockNumber),
    timestamp: String(timestamp),
    expiry: expiry === null ? null : String(expiry),
  }
}

/**
 * Writes announcements to the outbox. Call it last in a transaction: the lock of the outbox is held from here to its end.
 * `productTransferred` gets every status, but where a reorganisation took some back, only the last one, and only if it is another.
 */
export async function announce(sql: Sql, announcements: readonly Announcement[]): Promise<void> {
  if (announcements.length === 0) return
  const retracted = announcements.flatMap(({ retracts, tokenId }) =>
    retracts === null ? [] : [{ ...retracts, tokenId }],
  )
  if (retracted.length > 0)
    await sql.query(retractStatement, [
      numbers(retracted.map(({ tokenId }) => tokenId)),
      numbers(retracted.map(({ seq }) => seq)),
      texts(retracted.map(({ brands }) => brands && JSON.stringify(brands))),
    ])
  const present = await presentBrands(
    sql,
    announcements.map(({ tokenId }) => tokenId),
  )
  const brandsOf = ({ retracts, tokenId }: Announcement) =>
    retracts === null ? [present.get(tokenId) ?? []].flat() : retracts.brands
  const shown = shownTransfers(announcements)
  await sql.query(insertStatement, [
    texts(announcements.map((one) => (shown.has(one) ? 'transfer' : 'chain'))),
    numbers(announcements.map(({ tokenId }) => tokenId)),
    texts(announcements.map(({ kind }) => kind)),
    numbers(announcements.map(({ at }) => clampSeconds(at))),
    texts(announcements.map(({ retracts }) => retracts?.position ?? null)),
    texts(announcements.map(({ payload }) => JSON.stringify(payload))),
    texts(announcements.map((one) => brandsOf(one)).map((brands) => brands && JSON.stringify(brands))),
  ])
}

function shownTransfers(announcements: readonly Announcement[]): Set<Announcement> {
  const before = new Map<string, TransferStatus | null>()
  const last = new Map<string, Announcement>()
  const transfers = announcements.filter(({ kind }) => kind === 'TRANSFER')
  for (const one of transfers) {
    const id = one.payload.id ?? ''
    last.set(id, one)
    if (one.retracts !== null && !before.has(id)) before.set(id, one.retracts.was)
  }
  return new Set(
    transfers.filter((one) => {
      const { id = '', status } = one.payload
      return !before.has(id) || (last.get(id) === one && before.get(id) !== status)
    }),
  )
}

/** SQL for the brands in a JSON text. */
const brandsIn = (json: string) =>
  `case when ${json} is not null then array(select jsonb_array_elements_text(${json}::jsonb)) end`

const retractStatement = `update outbox o set retracted = true, brands = ${brandsIn('r.brands')}
  from unnest($1::numeric[], $2::bigint[], $3::text[]) r (token_id, seq, brands)
  where o.token_id = r.token_id and o.seq = r.seq`

const insertStatement = `insert into outbox (topic, token_id, kind, happened_at, retracts, payload, brands)
  select topic, token_id, kind, to_timestamp(at), retracts, payload::jsonb, ${brandsIn('e.brands')}
  from unnest($1::text[], $2::numeric[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[]) with ordinality
    e (topic, token_id, kind, at, retracts, payload, brands, place)
  order by place`

/** Whether the feed is kept up under the present epoch, and the unix second before which it does not reach. */
export type FeedState = Readonly<{ isFed: boolean; since: bigint }>

export async function readFeedState(sql: Sql): Promise<FeedState> {
  const [row] = await sql.query<FeedState>(stateStatement)
  return row ?? { isFed: false, since: 0n }
}

const stateStatement = `select coalesce(c.fed_epoch = c.epoch, false) as "isFed",
    coalesce(${seconds('greatest(c.fed_since, t.created_at)')}, 0) as since
  from index_cursor c cross join outbox_trim t`

/**
 * Compares what was announced of tokens with all their stored events. Returns retractions of what no longer holds, the newest first, and
 * announcements of what is missing since the feed began. `formerBrands` are the brands of products before this change, where known.
 */
export async function feedDifferences(
  sql: Sql,
  tokens: readonly string[],
  events: readonly AssetEvent[],
  { since }: Pick<FeedState, 'since'>,
  formerBrands: ReadonlyMap<string, string> = new Map(),
): Promise<Announcement[]> {
  // The index decides which offers have expired, so that the feed never differs from it, whatever clock was read.
  const expired = await expiredIds(sql, tokens)
  const { transfers, steps } = projectTransfers(events, new Map(), ({ id }) => expired.has(id))
  const expected = new Map(announcementsOf(events, steps).map((one) => [keyOf(one.payload), one]))
  const rows = await sql.query<AnnouncedRow>(announcedStatement, [numbers(tokens)])
  const brandsOf = brandsWhileHeld(rows, formerBrands)
  const live = rows.filter(({ isLive }) => isLive)
  const missing = missingFrom(expected, new Set(live.map(({ payload }) => keyOf(payload))), since)
  const retracted = live.filter(({ payload }) => !expected.has(keyOf(payload)) || missing.has(keyOf(payload)))
  return [...retracted.map((row) => retractionOf(row, transfers, brandsOf.get(row.seq) ?? null)), ...missing.values()]
}

/**
 * Returns the expected announcements that are not known, and those of the same tokens after them. A client applies events in their order, so
 * that a later one which it has already must come again.
 */
function missingFrom(
  expected: ReadonlyMap<string, Announcement>,
  known: ReadonlySet<string>,
  since: bigint,
): ReadonlyMap<string, Announcement> {
  const begun = new Map<string, bigint>()
  const missing = new Map<string, Announcement>()
  for (const [key, one] of expected) {
    const { tokenId, at } = one
    if (at <= since) continue
    const isMissing = !known.has(key)
    if (isMissing && !begun.has(tokenId)) begun.set(tokenId, at)
    const from = begun.get(tokenId)
    // An expiry stands behind all events here, also behind later ones.
    if (isMissing || (from !== undefined && at >= from)) missing.set(key, one)
  }
  return missing
}

/**
 * Returns the brands that products had since each event, by its number. They are those of the event, of later ones, and the last. Their keys
 * got the event. Left out are events of a version that kept no brands. `rows` begin with the newest.
 */
function brandsWhileHeld(
  rows: readonly AnnouncedRow[],
  formerBrands: ReadonlyMap<string, string>,
): ReadonlyMap<bigint, readonly string[]> {
  const since = new Map<string, Set<string>>()
  const brandsOf = new Map<bigint, readonly string[]>()
  for (const { seq, tokenId, brands, payload } of rows) {
    const former = formerBrands.get(tokenId)
    const known = since.get(tokenId) ?? (former === undefined ? undefined : new Set([former]))
    if (known === undefined && brands === null) continue
    const all = new Set([...(known ?? []), ...(brands ?? [])])
    brandsOf.set(seq, [...all])
    // A brand that came with a text has no event of its own.
    if (payload.formerBrand !== undefined) all.add(payload.formerBrand)
    since.set(tokenId, all)
  }
  return brandsOf
}

/** Returns retractions of the expiry of these offers, which had not expired. */
export async function expiryRetractions(sql: Sql, offers: readonly Transfer[]): Promise<Announcement[]> {
  if (offers.length === 0) return []
  const tokens = offers.map(({ tokenId }) => tokenId)
  const rows = await sql.query<AnnouncedRow>(announcedStatement, [numbers(tokens)])
  const brandsOf = brandsWhileHeld(rows, await presentBrands(sql, tokens))
  const open = new Set(offers.map(({ id }) => `${id} expired`))
  const taken = rows.filter(({ isLive, payload }) => isLive && open.has(keyOf(payload)))
  const transfers = new Map(offers.map((offer) => [offer.id, offer]))
  return taken.map((row) => retractionOf(row, transfers, brandsOf.get(row.seq) ?? null))
}

/** So many tokens are compared by one statement each for events, announcements and offers. */
const comparedAtOnce = 500

/**
 * Compares the feed with all stored events, in groups of tokens, and yields of each group those that differ. Tokens without an announcement
 * are compared if they have events after `since`. A token may come again.
 */
export async function* differingTokens(sql: Sql, since: bigint): AsyncGenerator<string[]> {
  for await (const tokens of tokensToCompare(sql, since))
    for (let at = 0; at < tokens.length; at += comparedAtOnce) {
      const some = tokens.slice(at, at + comparedAtOnce)
      const differences = await feedDifferences(sql, some, await readEvents(sql, some), { since })
      yield differences.map(({ tokenId }) => tokenId)
    }
}

async function* tokensToCompare(sql: Sql, since: bigint): AsyncGenerator<string[]> {
  yield* announcedTokens(sql)
  for await (const tokens of tokensSince(sql, since)) yield await unannouncedTokens(sql, tokens)
}

/** Announces in what way the feed differs from the stored events of these tokens. Call it last in a transaction. */
export async function announceDifferences(sql: Sql, tokens: readonly string[], since: bigint): Promise<void> {
  if (tokens.length === 0) return
  const events = await readEvents(sql, tokens)
  await announce(sql, sortedDifferences(await feedDifferences(sql, tokens, events, { since })))
}

/** Sorts the differences of several groups of tokens: retractions, the newest first, then announcements in the order of the chain. */
export function sortedDifferences(differences: readonly Announcement[]): Announcement[] {
  const placeOf = ({ payload: { cause }, at }: Announcement) =>
    cause === undefined ? [at, -1n, 0] : [BigInt(cause.timestamp), BigInt(cause.blockNumber), cause.logIndex]
  return differences.toSorted((a, b) => {
    if (a.retracts !== null && b.retracts !== null) return a.retracts.seq > b.retracts.seq ? -1 : 1
    if (a.retracts !== null || b.retracts !== null) return a.retracts === null ? 1 : -1
    const [places, others] = [placeOf(a), placeOf(b)]
    const at = places.findIndex((place, index) => place !== others[index])
    return at < 0 ? 0 : (places[at] ?? 0) < (others[at] ?? 0) ? -1 : 1
  })
}

/** A log causes at most one announcement; an offer expires once. */
function keyOf({ cause, id }: Payload): string {
  return cause === undefined ? `${id} expired` : `${cause.blockHash} ${cause.logIndex}`
}

type AnnouncedRow = Pick<Announcement, 'kind' | 'tokenId' | 'at' | 'payload'> &
  Readonly<{ seq: bigint; micros: bigint; isLive: boolean; brands: readonly string[] | null }>

/** A transfer has the status of its remaining events, and has failed where it has none. */
function retractionOf(
  { kind, tokenId, at, payload: announced, seq, micros }: AnnouncedRow,
  transfers: ReadonlyMap<string, Transfer>,
  brands: readonly string[] | null,
): Announcement {
  const { formerBrand: _formerBrand, ...event } = announced
  const { id, status = null } = event
  const payload = id === undefined ? event : { ...event, status: transfers.get(id)?.status ?? 'FAILED' }
  return {
    kind,
    tokenId,
    at,
    payload,
    retracts: { seq, position: formatPosition({ seq, micros }), was: status, brands },
  }
}

const announcedStatement = `select ${positionColumns('o')}, o.kind, o.token_id as "tokenId", ${seconds('o.happened_at')} as at,
    o.retracts is null and not o.retracted as "isLive", o.brands, o.payload
  from outbox o where o.token_id in (select unnest($1::numeric[])) and o.kind is not null and o.kind <> 'VERIFIED'
  order by o.seq desc`
