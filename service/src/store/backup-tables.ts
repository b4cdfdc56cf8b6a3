/** Which tables a backup keeps. `backup.test.ts` fails on a table that stands in neither list. */

/** In an order in which every row comes after those that it refers to. */
export const keptTables = [
  'metadata',
  'tag_batch',
  'tag',
  'tap',
  'signer',
  'operation',
  'replaced_transaction',
  'item',
  'status_place',
  'index_cursor',
  'index_block',
  'history',
  'registration',
  'asset_tap',
  'asset',
  'product_count',
  'product_total',
  'transfer',
  'transfer_message',
  'outbox',
  'api_key',
  'payment',
  'attestation_key',
  'issuer_key',
] as const

/** `migration` stands in the head of the file; what a rate limit has counted is worth nothing a minute later. */
export const leftOutTables = ['migration', 'rate_window'] as const
