/** Rows of the index for tests of what reads it, by SQL. */
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import type { AssetEvent } from '../../../src/domain/registry-event.ts'
import type { Database, Sql } from '../../../src/db/database.ts'
import { returned, withSums } from '../../../src/index/assets/sums.ts'

export type AssetRow = {
  tokenId: bigint | number
  owner?: string
  state?: number
  flags?: number
  metadataHash?: string
  tagHash?: string
  tagId?: string
  name?: string
  brand?: string
  serial?: string
  gtin?: string
  tapped?: boolean
  createdAt?: string
  updatedAt?: string
}

export const alice = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
export const bob = '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc'
export const hashOf = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`

/** The members that an event of any kind may lack. */
export const noMembers = {
  fromState: null,
  toState: null,
  flags: null,
  from: null,
  to: null,
  actor: null,
  nonce: null,
  expiry: null,
  data: null,
} as const satisfies Partial<AssetEvent>

const bytes = (hex: string | undefined) => (hex === undefined ? null : new Uint8Array(Buffer.from(hex.slice(2), 'hex')))

/** Inserts an asset and gives its `pk`. Left out: MINTED, Alice's, from 2026-01-01. */
export async function insertAsset(sql: Pick<Database, 'query' | 'dialect'>, row: AssetRow): Promise<bigint> {
  const { createdAt = '2026-01-01T00:00:00Z', updatedAt = createdAt } = row
  const statement = `insert into asset as a (token_id, owner, state, flags, metadata_hash, tag_hash, tag_id, name, brand, serial, gtin, tapped_at,
       created_at, updated_at, updated_block)
     values ($1::text::numeric, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::timestamptz, $13::text::timestamptz,
       $14::text::timestamptz, 1) returning ${returned('a')}`
  // A cluster has no trigger that counts.
  await sql.query(sql.dialect === 'citus' ? withSums('insert', statement) : statement, [
    String(row.tokenId),
    bytes(row.owner ?? alice),
    row.state ?? 1,
    row.flags ?? 0,
    bytes(row.metadataHash),
    bytes(row.tagHash),
    row.tagId ?? null,
    row.name ?? null,
    row.brand ?? null,
    row.serial ?? null,
    row.gtin ?? null,
    row.tapped === true ? createdAt : null,
    createdAt,
    updatedAt,
  ])
  const [inserted] = await sql.query<{ pk: bigint }>('select pk from asset where token_id = $1::text::numeric', [
    String(row.tokenId),
  ])
  return inserted?.pk ?? 0n
}

/** Counts the products anew, after a test changed them by SQL of its own. A cluster has no trigger that does. */
export async function recountProducts({ exec, dialect }: Pick<Database, 'exec' | 'dialect'>): Promise<void> {
  if (dialect !== 'citus') return
  await exec(`truncate product_count, product_total, product_group;
    insert into product_count (brand, verified, n) select brand, verified, count(*) from asset group by 1, 2;
    insert into product_total (verified, n) select verified, count(*) from asset group by 1;
    insert into product_group (dimension, key, n)
    select g.dimension, g.key, count(*) from asset, groups_of(state, flags, created_at) g group by 1, 2;
    insert into product_name (name) select distinct name from asset where name is not null on conflict do nothing`)
}

export type TransferInsert = {
  id: string
  assetPk: bigint
  from?: string
  to?: string
  status?: string
  initiatedAt?: string
  expiresAt?: string | null
  initiatedTx?: string
  settledTx?: string
  messageHash?: string
}

/** Inserts a transaction of this service, under a key. */
export async function insertOperation(sql: Sql, txHash: string, key = txHash): Promise<void> {
  const signer = bytes(alice)
  await sql.query('insert into signer (address) values ($1) on conflict do nothing', [signer])
  await sql.query(
    `insert into operation (idempotency_key, request_hash, kind, signer, nonce, tx_hash, raw)
     values ($1, $2, 'initiateTransferBySig', $3, 0, $2, '')`,
    [key, bytes(txHash), signer],
  )
}

export async function insertTransfer(sql: Sql, row: TransferInsert): Promise<void> {
  await sql.query(
    `insert into transfer (id, token_id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx, expires_at, settled_tx, message_hash)
     values ($1, split_part($1, '-', 1)::numeric, $2, $3, $4, $5, $6::text::timestamptz, $7, $8::text::timestamptz, $9, $10)`,
    [
      row.id,
      row.assetPk,
      bytes(row.from ?? alice),
      bytes(row.to ?? bob),
      row.status ?? 'PENDING',
      row.initiatedAt ?? '2026-01-02T00:00:00Z',
      bytes(row.initiatedTx ?? hashOf(7)),
      row.expiresAt ?? null,
      bytes(row.settledTx),
      bytes(row.messageHash),
    ],
  )
}

/** One event; `kind` is a code of domain/registry-event.ts. */
export async function insertEvent(
  sql: Sql,
  { tokenId, block, log = 0, kind = 3, from = 0, to = 1 }: Record<string, number> & { tokenId: number; block: number },
): Promise<void> {
  await sql.query(
    `insert into history (block_number, log_index, token_id, kind, from_state, to_state, flags, actor, block_hash, tx_hash, ts)
     values ($1, $2, $3::text::numeric, $4, $5, $6, $7, $8, $9, $10, to_timestamp($11::int))`,
    [
      block,
      log,
      String(tokenId),
      kind,
      from,
      to,
      33,
      bytes(alice),
      bytes(hashOf(block)),
      bytes(hashOf(1000 + block)),
      1_767_225_600 + block,
    ],
  )
}

/** Sets the block up to which the index is complete. */
export async function setCursor(sql: Sql, { number, at }: { number: number; at: string }): Promise<void> {
  await sql.query('delete from index_cursor')
  await sql.query(
    'insert into index_cursor (contract, number, hash, block_time) values ($1, $2, $3, $4::text::timestamptz)',
    [bytes(alice), number, bytes(hashOf(number)), at],
  )
}

/** Returns whether the product of a token was tapped; undefined for one that the index does not have. */
export async function isVerified(sql: Sql, tokenId: bigint): Promise<boolean | undefined> {
  const statement = 'select verified from asset where token_id = $1::numeric'
  return (await sql.query<{ verified: boolean }>(statement, [String(tokenId)]))[0]?.verified
}

/** Asserts that the numbers of products are those of the rows. */
export async function assertSums(sql: Sql): Promise<void> {
  for (const [table, columns, from] of [
    ['product_total', 'verified', 'asset'],
    ['product_count', 'brand, verified', 'asset'],
    ['product_group', 'dimension, key', 'asset, groups_of(state, flags, created_at)'],
  ]) {
    const sums = `select ${columns}, sum(n)::int as n from ${table} group by ${columns} having sum(n) <> 0 order by ${columns}`
    const counts = `select ${columns}, count(*)::int as n from ${from} group by ${columns} order by ${columns}`
    assert.deepEqual(await sql.query(sums), await sql.query(counts), table)
  }
}
