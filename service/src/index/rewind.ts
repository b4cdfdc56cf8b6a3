/**
 * Takes the index back to an earlier block (a reorganisation): events above it are deleted, and what they had changed is projected again
 * from the events that stay. Tokens that were minted above it are deleted, and their registrations wait for another mint.
 */
import { hex, numbers, texts } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import type { TransferStatus } from '../domain/chain-index.ts'
import { updateAssets } from './assets.ts'
import { deleteEventsAbove, readEvents } from './history.ts'
import { type AssetChange, projectAssets, projectTransfers } from './project.ts'
import { noteStatus, type StatusChanges, storeTransfers } from './transfers.ts'

const tokensAtOnce = 500
const zeroHash = `0x${'0'.repeat(64)}` as const

/** `past` is now, in unix seconds. */
export async function rewindTo(sql: Sql, number: bigint, past: bigint, changes: StatusChanges): Promise<void> {
  const tokens = await deleteEventsAbove(sql, number)
  for (let at = 0; at < tokens.length; at += tokensAtOnce)
    await projectAgain(sql, tokens.slice(at, at + tokensAtOnce), past, changes)
}

async function projectAgain(sql: Sql, tokens: readonly string[], past: bigint, changes: StatusChanges): Promise<void> {
  const stored = await sql.query<StoredTransfer>(transfersStatement, [numbers(tokens)])
  const events = await readEvents(sql, tokens)

  const assets = projectAssets(events).filter(({ minted }) => minted !== null)
  const minted = new Set(assets.map(({ tokenId }) => tokenId))
  const unminted = numbers(tokens.filter((tokenId) => !minted.has(tokenId)))
  for (const statement of deleteStatements) await sql.query(statement, [unminted])
  await updateAssets(sql, assets.map(withoutGaps))

  const transfers = projectTransfers(events, new Map(), past)
  const lost = stored.filter(({ id }) => !transfers.has(id))
  await sql.query('delete from transfer where id in (select unnest($1::text[]))', [texts(lost.map(({ id }) => id))])
  for (const { id, tokenId, status, was } of lost)
    noteStatus(changes, id, { tokenId, before: status, after: null, at: past, was })
  const before = new Map(stored.map(({ id, status }) => [id, status]))
  await storeTransfers(sql, [...transfers.values()], before, changes, past)
}

type StoredTransfer = { id: string; tokenId: string; status: TransferStatus; was: object }

const transfersStatement = `select t.id, a.token_id as "tokenId", t.status, jsonb_build_object(
    'from', ${hex('t.from_addr')}, 'to', ${hex('t.to_addr')},
    'initiatedAt', to_char(t.initiated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'initiatedTx', ${hex('t.initiated_tx')}) as was
  from transfer t join asset a on a.pk = t.asset_pk
  where a.token_id in (select unnest($1::numeric[]))`

/** Completes a projection of all events of a token: what no event set is not there. */
function withoutGaps(change: AssetChange): AssetChange {
  const { state, flags, metadataHash, tagHash } = change
  return {
    ...change,
    state: state ?? 0,
    flags: flags ?? 0,
    metadataHash: metadataHash ?? zeroHash,
    tagHash: tagHash ?? zeroHash,
  }
}

const deleteStatements = [
  `delete from item i using registration r where r.token_id = i.token_id and r.gtin = i.gtin and r.serial = i.serial
    and i.token_id in (select unnest($1::numeric[]))`,
  'update registration set token_id = null where token_id in (select unnest($1::numeric[]))',
  'delete from asset where token_id in (select unnest($1::numeric[]))',
]
