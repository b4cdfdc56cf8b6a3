/** The tokens of the index for a comparison with the chain. Each page in one snapshot with the block at which it holds. */
import type { Hex } from '@touchstone/verdict'
import { hex, numbers, seconds } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import { clampSeconds, type IndexedToken, type TokenPage, type TokenPages } from '../domain/chain-index.ts'
import { missingTokens } from './assets/rows.ts'
import { readEvents, readEventsBetween } from './history.ts'
import { projectAssets, projectTransfers, type Transfer } from './project.ts'
import { type IndexDatabase, waitForStep, wholeReads } from './steps.ts'
import { readTransfers } from './transfers.ts'

export function tokenPages(database: IndexDatabase): TokenPages {
  const whole = wholeReads(database)
  const page = (tokens: string, values: readonly unknown[]) =>
    database.transaction(async (sql): Promise<TokenPage | null> => {
      await waitForStep(sql)
      const rows = await sql.query<Row>(
        `${pageStatement} left join lateral (${tokens}) a on true order by a.token_id`,
        values,
      )
      const [first] = rows
      if (first === undefined) return null
      // An index without tokens still has one row, of the cursor alone.
      const stored = rows.flatMap((row) => (row.token_id === null ? [] : [parseToken(row)]))
      const at = { number: first.number, hash: first.hash }
      return { at, products: BigInt(first.products), tokens: await withStrayed(sql, stored) }
    })

  return {
    after: (after, limit) =>
      page(`${tokensStatement} where b.token_id > $1::numeric order by b.token_id limit $2`, [after.toString(), limit]),
    async sample(count) {
      const [range] = await database.query<{ low: bigint | null; high: bigint | null }>(
        'select min(pk) as low, max(pk) as high from asset',
      )
      const low = Number(range?.low ?? 0n)
      const width = Number(range?.high ?? 0n) - low + 1
      const picked = Array.from({ length: count }, () => low + Math.floor(Math.random() * width))
      return page(`${tokensStatement} where b.pk = any($1::bigint[])`, [numbers(picked)])
    },
    events: (from, to) => whole((sql) => readEventsBetween(sql, from, to)),
    missing: (tokenIds) => whole((sql) => missingTokens(sql, tokenIds)),
  }
}

type StoredToken = Omit<IndexedToken, 'strayed'>
type Row = { number: bigint; hash: Hex; products: string } & (TokenRow | { token_id: null })
type TokenRow = Pick<IndexedToken, 'owner' | 'state' | 'flags' | 'metadataHash' | 'tagHash'> & {
  token_id: string
  pendingId: string | null
  pendingTo: Hex | null
  pendingExpiry: bigint | null
}

const pageStatement = `select c.number, ${hex('c.hash')} as hash,
    (select coalesce(sum(n), 0) from product_total)::text as products, a.*
  from index_cursor c`

const tokensStatement = `select b.token_id, ${hex('b.owner')} as owner, b.state, b.flags,
    ${hex('b.metadata_hash')} as "metadataHash", ${hex('b.tag_hash')} as "tagHash",
    p.id as "pendingId", ${hex('p.to_addr')} as "pendingTo", ${seconds('p.expires_at')} as "pendingExpiry"
  from asset b left join lateral (
    select id, to_addr, expires_at from transfer where token_id = b.token_id and status = 'PENDING' limit 1) p on true`

function parseToken(row: TokenRow): StoredToken {
  const { token_id: id, owner, state, flags, metadataHash, tagHash, pendingId, pendingTo: to, pendingExpiry } = row
  const nonce = BigInt(pendingId?.split('-')[1] ?? 0)
  const pending = to && pendingExpiry !== null ? { to, nonce, expiry: pendingExpiry } : null
  return { tokenId: BigInt(id), owner, state, flags, metadataHash, tagHash, pending }
}

/** Projects the stored events of the tokens again, and adds which fields and transfers differ from them. */
async function withStrayed(sql: Sql, tokens: readonly StoredToken[]): Promise<IndexedToken[]> {
  if (tokens.length === 0) return []
  const ids = tokens.map(({ tokenId }) => tokenId.toString())
  const events = await readEvents(sql, ids)
  const changes = new Map(projectAssets(events).map((change) => [change.tokenId, change]))
  const expected = transferTexts(projectTransfers(events, new Map(), () => false).transfers.values())
  const found = transferTexts(await readTransfers(sql, ids))
  return tokens.map((token) => {
    const id = token.tokenId.toString()
    const change = changes.get(id)
    if (!change?.minted) return { ...token, strayed: ['history'] }
    const strayed = (['owner', 'state', 'flags', 'metadataHash', 'tagHash'] as const).filter(
      (field) => BigInt(change[field] ?? 0) !== BigInt(token[field] ?? 0),
    )
    const sameTransfers = expected.get(id)?.toSorted().join() === found.get(id)?.toSorted().join()
    return { ...token, strayed: sameTransfers ? strayed : [...strayed, 'transfers'] }
  })
}

/** Formats the transfers of each token. An offer that no transaction ended may have expired between two looks. */
function transferTexts(transfers: Iterable<Transfer>): Map<string, string[]> {
  const texts = new Map<string, string[]>()
  for (const { tokenId, id, from, to, status, settledTransaction, ...rest } of transfers) {
    const settled = settledTransaction === null ? '' : `${status} ${settledTransaction}`
    const times = [rest.initiatedAt, rest.expiresAt, settledTransaction && rest.settledAt].map(
      (time) => time && clampSeconds(BigInt(time)),
    )
    const text = [id, from, to, settled, ...times, rest.initiatedTransaction, BigInt(rest.messageHash ?? 0)].join(' ')
    texts.set(tokenId, [...(texts.get(tokenId) ?? []), text])
  }
  return texts
}
