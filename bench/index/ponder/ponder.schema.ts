/** One row per event, with the columns and the index of our table `history`. */
import { index, onchainTable, primaryKey } from 'ponder'

export const event = onchainTable(
  'event',
  (t) => ({
    blockNumber: t.integer().notNull(),
    logIndex: t.integer().notNull(),
    tokenId: t.bigint().notNull(),
    kind: t.integer().notNull(),
    fromState: t.integer(),
    toState: t.integer(),
    flags: t.integer(),
    fromAddr: t.hex(),
    toAddr: t.hex(),
    actor: t.hex(),
    nonce: t.integer(),
    expiry: t.bigint(),
    data: t.hex(),
    blockHash: t.hex().notNull(),
    txHash: t.hex().notNull(),
    ts: t.bigint().notNull(),
  }),
  (table) => ({
    key: primaryKey({ columns: [table.blockNumber, table.logIndex] }),
    token: index().on(table.tokenId, table.blockNumber, table.logIndex),
  }),
)
