/** The tokens of the index for a comparison with the chain, each page in one snapshot with the block at which it is true. */
import type { Hex } from '@touchstone/verdict'
import type { Sql } from './database.ts'
import { hexOf, numbers } from './index-columns.ts'

type Page = Readonly<{ at: Readonly<{ number: bigint; hash: Hex }>; products: bigint; tokens: readonly Token[] }>
type Token = Readonly<{
  tokenId: bigint
  owner: Hex
  state: number
  flags: number
  metadataHash: Hex | null
  tagHash: Hex | null
  pending: Readonly<{ to: Hex; nonce: bigint; expiry: bigint }> | null
}>

/** `products` is the sum of the counters. */
export function tokenPages(sql: Sql) {
  async function page(chosen: string, values: readonly unknown[]): Promise<Page | null> {
    const rows = await sql.query<Row>(
      `${pageStatement} left join lateral (${chosen}) a on true order by a.token_id`,
      values,
    )
    const [first] = rows
    if (first === undefined) return null
    const at = { number: first.number, hash: hexOf(first.hash) }
    return {
      at,
      products: BigInt(first.products),
      tokens: rows.flatMap((row) => (row.token_id === null ? [] : [tokenOf(row)])),
    }
  }

  return {
    after: (after: bigint, limit: number) =>
      page(`${tokensStatement} where b.token_id > $1::numeric order by b.token_id limit $2`, [after.toString(), limit]),
    async sample(count: number): Promise<Page | null> {
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

type Row = { number: bigint; hash: Uint8Array; products: string } & (TokenRow | { token_id: null })
type TokenRow = {
  token_id: string
  owner: Uint8Array
  state: number
  flags: number
  metadata_hash: Uint8Array | null
  tag_hash: Uint8Array | null
  pending_id: string | null
  pending_to: Uint8Array | null
  pending_expires: bigint | null
}

const pageStatement = `select c.number, c.hash, (select coalesce(sum(n), 0) from product_total)::text as products, a.*
  from index_cursor c`

const tokensStatement = `select b.token_id, b.owner, b.state, b.flags, b.metadata_hash, b.tag_hash,
    p.id as pending_id, p.to_addr as pending_to, extract(epoch from p.expires_at)::bigint as pending_expires
  from asset b left join lateral (
    select id, to_addr, expires_at from transfer where asset_pk = b.pk and status = 'PENDING' limit 1) p on true`

function tokenOf(row: TokenRow): Token {
  const { pending_id: id, pending_to: to, pending_expires: expiry } = row
  return {
    tokenId: BigInt(row.token_id),
    owner: hexOf(row.owner),
    state: row.state,
    flags: row.flags,
    metadataHash: row.metadata_hash && hexOf(row.metadata_hash),
    tagHash: row.tag_hash && hexOf(row.tag_hash),
    pending: id && to && expiry !== null ? { to: hexOf(to), nonce: BigInt(id.split('-')[1] ?? 0), expiry } : null,
  }
}
