/** The tokens of the index for a comparison with the chain: each page in one snapshot with the block at which it holds. */
import type { Hex } from '@touchstone/verdict'
import { hex, numbers, seconds } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import type { IndexedToken, TokenPage, TokenPages } from '../domain/chain-index.ts'

export function tokenPages(sql: Sql): TokenPages {
  async function page(tokens: string, values: readonly unknown[]): Promise<TokenPage | null> {
    const rows = await sql.query<Row>(
      `${pageStatement} left join lateral (${tokens}) a on true order by a.token_id`,
      values,
    )
    const [first] = rows
    if (first === undefined) return null
    return {
      at: { number: first.number, hash: first.hash },
      products: BigInt(first.products),
      // An index without tokens still has one row, of the cursor alone.
      tokens: rows.flatMap((row) => (row.token_id === null ? [] : [parseToken(row)])),
    }
  }

  return {
    after: (after, limit) =>
      page(`${tokensStatement} where b.token_id > $1::numeric order by b.token_id limit $2`, [after.toString(), limit]),
    async sample(count) {
      const [range] = await sql.query<{ low: bigint | null; high: bigint | null }>(
        'select min(pk) as low, max(pk) as high from asset',
      )
      const low = Number(range?.low ?? 0n)
      const width = Number(range?.high ?? 0n) - low + 1
      const picked = Array.from({ length: count }, () => low + Math.floor(Math.random() * width))
      return page(`${tokensStatement} where b.pk in (select unnest($1::bigint[]))`, [numbers(picked)])
    },
  }
}

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
    select id, to_addr, expires_at from transfer where asset_pk = b.pk and status = 'PENDING' limit 1) p on true`

function parseToken(row: TokenRow): IndexedToken {
  const { token_id: id, owner, state, flags, metadataHash, tagHash, pendingId, pendingTo: to, pendingExpiry } = row
  const nonce = BigInt(pendingId?.split('-')[1] ?? 0)
  const pending = to && pendingExpiry !== null ? { to, nonce, expiry: pendingExpiry } : null
  return { tokenId: BigInt(id), owner, state, flags, metadataHash, tagHash, pending }
}
