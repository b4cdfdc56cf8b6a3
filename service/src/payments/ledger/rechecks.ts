/** Statements about payments that ended, and that the chain may still change: a reorganisation removes or moves a transfer. */
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, hexToBytes } from '../../db/columns.ts'
import type { BlockId } from '../../domain/chain.ts'
import type { PaymentKey } from '../key.ts'
import { ofToken, type PaymentRow, type PaymentTable } from './table.ts'

/** `age` in seconds since the oldest of its payments and transactions ended. `hasRemoved`: a payment of it was removed. */
export type RecentBlock = BlockId & { readonly age: number; readonly hasRemoved: boolean }

/** SQL for a condition: the authorization of a payment that ended is valid, or was a moment ago. */
const mayBeExecuted = `settled_at > statement_timestamp() - interval '2 hours' and valid_before > extract(epoch from statement_timestamp()) - 900`

export function recheckStatements({ run, select, update }: PaymentTable) {
  return {
    /** Returns the blocks of payments that were settled within `seconds`, and of all transactions that were mined then. */
    async recentBlocks(seconds: number): Promise<RecentBlock[]> {
      const isRecent = (time: string) => `${time} > statement_timestamp() - make_interval(secs => $3::float8)`
      const rows = await run<Omit<RecentBlock, 'hash'> & { hash: Uint8Array }>(
        `select block_number as number, block_hash as hash, extract(epoch from clock_timestamp() - min(ended_at))::float8 as age,
           bool_or(removed) as "hasRemoved" from (
         select block_number, block_hash, settled_at as ended_at, reason is not null as removed from payment p
           where ${isRecent('settled_at')} and ${ofToken} and state = 'done' and block_hash is not null
         union all select block_number, block_hash, mined_at, false from settlement
           where ${isRecent('mined_at')} and chain_id = $1 and state = 'mined' and block_hash is not null) ended group by 1, 2`,
        [seconds],
      )
      return rows.map(({ hash, ...block }) => ({ ...block, hash: bytesToHex(hash) }))
    },

    /** Returns the payments that were settled in a block. */
    settledIn: ({ hash }: BlockId): Promise<PaymentRow[]> =>
      select(`state = 'done' and block_hash = $3 and settled_at > statement_timestamp() - interval '1 day'`, [
        hexToBytes(hash),
      ]),

    /** Returns rejected payments whose transfer others may execute, or might a moment ago. Those that expire first come first. */
    rejected: (limit: number): Promise<PaymentRow[]> =>
      select(
        `state = 'dead' and (reason not in ('authorization_expired', 'nonce_already_used') or tx_hash is not null and settled_at > statement_timestamp() - interval '1 hour')
           and proof is not null and ${mayBeExecuted} order by valid_before limit $3`,
        [limit],
      ),

    /** Returns paid payments that a reorganisation has removed, and that may be executed again, or might a moment ago. */
    removedLately: (limit: number): Promise<PaymentRow[]> =>
      select(
        `state = 'done' and block_hash is not null and reason is not null and ${mayBeExecuted} order by valid_before limit $3`,
        [limit],
      ),

    /** Marks a paid payment that a reorganisation has removed. Returns false where it is marked already. */
    removed: (key: PaymentKey): Promise<boolean> =>
      update(key, `reason = 'removed'`, `state = 'done' and reason is null`),

    /** Moves a paid payment to the block, and to the transaction, that a reorganisation has put its transfer into. */
    async moved(
      key: PaymentKey,
      { transaction, block }: { readonly transaction: Hex; readonly block: BlockId },
    ): Promise<void> {
      await update(
        key,
        `tx_hash = $5, block_number = $6, block_hash = $7, reason = null, settlement = coalesce((select s.pk from settlement s
           where s.state = 'mined' and s.mined_at > statement_timestamp() - interval '1 hour' and s.chain_id = $1 and $5 = any(s.hashes)
           limit 1), p.settlement)`,
        `p.state = 'done'`,
        [hexToBytes(transaction), block.number, hexToBytes(block.hash)],
      )
    },
  }
}
