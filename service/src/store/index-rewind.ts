/**
 * Takes the index back to an earlier block (a reorganisation): events above it go, and what they had changed is made anew from
 * the events that stay. Tokens that were minted above it vanish, and their registrations wait for another mint.
 */
import type { Sql } from './database.ts'
import { changeAssets } from './index-assets.ts'
import { numbers, texts } from './index-columns.ts'
import { eventColumns, eventOfRow, transferKinds, type EventRow, type IndexedEvent } from './index-events.ts'
import { foldAssets, foldTransfers, type AssetChange, type TransferStatus } from './index-fold.ts'
import { noteStatus, storeTransfers, type StatusChanges } from './index-transfers.ts'

const eventsAtOnce = 10_000
const tokensAtOnce = 500
const zeroHash = `0x${'0'.repeat(64)}` as const

/** `past` is now, in unix seconds. */
export async function rewindTo(sql: Sql, number: bigint, past: bigint, changes: StatusChanges): Promise<void> {
  const tokens = await forgetAbove(sql, number)
  for (let at = 0; at < tokens.length; at += tokensAtOnce)
    await mend(sql, tokens.slice(at, at + tokensAtOnce), past, changes)
}

/** Returns the tokens that the forgotten events named. */
async function forgetAbove(sql: Sql, number: bigint): Promise<string[]> {
  const tokens = new Set<string>()
  for (;;) {
    const gone = await sql.query<{ token_id: string }>(forgetStatement, [number, eventsAtOnce])
    if (gone.length === 0) return [...tokens]
    for (const { token_id } of gone) tokens.add(token_id)
  }
}

const forgetStatement = `with gone as (
    delete from history where (block_number, log_index) in (
      select block_number, log_index from history where block_number > $1
      order by block_number desc, log_index desc limit $2)
    returning token_id)
  select distinct token_id from gone`

async function mend(sql: Sql, tokens: readonly string[], past: bigint, changes: StatusChanges): Promise<void> {
  const asked = [numbers(tokens)]
  const stored = await sql.query<TransferRow>(transfersStatement, asked)
  const events = await eventsOfTokens(sql, tokens)

  const assets = foldAssets(events).filter(({ minted }) => minted !== null)
  const alive = new Set(assets.map(({ tokenId }) => tokenId))
  const vanished = numbers(tokens.filter((tokenId) => !alive.has(tokenId)))
  for (const statement of vanishStatements) await sql.query(statement, [vanished])
  await changeAssets(sql, assets.map(whole))

  const folded = foldTransfers(
    events.filter(({ kind }) => transferKinds.has(kind)),
    new Map(),
    past,
  )
  const lost = stored.filter(({ id }) => !folded.has(id))
  await sql.query('delete from transfer where id in (select unnest($1::text[]))', [texts(lost.map(({ id }) => id))])
  for (const { id, token_id, status, was } of lost)
    noteStatus(changes, { id, tokenId: token_id, before: status, after: null, at: past, was })
  await storeTransfers(sql, [...folded.values()], new Map(stored.map(({ id, status }) => [id, status])), changes, past)
}

type TransferRow = { id: string; token_id: string; status: TransferStatus; was: object }

const transfersStatement = `select t.id, a.token_id, t.status, jsonb_build_object(
    'from', '0x' || encode(t.from_addr, 'hex'), 'to', '0x' || encode(t.to_addr, 'hex'),
    'initiatedAt', to_char(t.initiated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'initiatedTx', '0x' || encode(t.initiated_tx, 'hex')) as was
  from transfer t join asset a on a.pk = t.asset_pk
  where a.token_id in (select unnest($1::numeric[]))`

/** All events of these tokens, each token's in the order of the chain. */
async function eventsOfTokens(sql: Sql, tokens: readonly string[]): Promise<IndexedEvent[]> {
  const events: IndexedEvent[] = []
  let after: readonly [string, bigint, number] = ['-1', -1n, -1]
  for (;;) {
    const rows = await sql.query<EventRow>(eventsStatement, [numbers(tokens), ...after, eventsAtOnce])
    for (const row of rows) events.push(eventOfRow(row))
    const last = rows.at(-1)
    if (last === undefined || rows.length < eventsAtOnce) return events
    after = [last.token_id, last.block_number, last.log_index]
  }
}

const eventsStatement = `select ${eventColumns} from history
  where token_id in (select unnest($1::numeric[])) and (token_id, block_number, log_index) > ($2::numeric, $3, $4)
  order by token_id, block_number, log_index limit $5`

/** Of a fold over all events of a token: what it does not name is not there. */
function whole(change: AssetChange): AssetChange {
  const { state, flags, metadataHash, tagHash } = change
  return {
    ...change,
    state: state ?? 0,
    flags: flags ?? 0,
    metadataHash: metadataHash ?? zeroHash,
    tagHash: tagHash ?? zeroHash,
  }
}

const vanishStatements = [
  `delete from item i using registration r where r.token_id = i.token_id and r.gtin = i.gtin and r.serial = i.serial
    and i.token_id in (select unnest($1::numeric[]))`,
  'update registration set token_id = null where token_id in (select unnest($1::numeric[]))',
  'delete from asset where token_id in (select unnest($1::numeric[]))',
]
