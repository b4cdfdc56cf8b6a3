/** Statements about payments that are settling: which process works on them, and which transactions were sent. */
import type { Hex } from '@touchstone/verdict'
import { bytes, bytesToHex, hexToBytes, isRecent } from '../../db/columns.ts'
import { withHexColumns, type PaymentKey } from '../key.ts'
import { ofKey, ofToken, type PaymentRow, type PaymentTable, type StoredPayment } from './table.ts'

export function settlingStatements({ run, runOne, update, columns, holder }: PaymentTable) {
  /** Versions that know `claim` only see a claim of half a minute on the rows of this one. */
  const claimed = `holder = ${holder.number}, claim = gen_random_uuid(), claimed_until = clock_timestamp() + interval '30 s'`
  /** A row of this process is free ten seconds after its write, unless it is in work. Its write had no answer then. */
  const isFree = `case when p.holder is null then (p.claim is null or p.claimed_until <= statement_timestamp())
    when p.holder = ${holder.number} then not ${isRecent("p.claimed_until - interval '30 s'", "interval '10 s'")} and p.payer || p.nonce <> all($6::bytea[])
    else not ${holder.isAlive.replaceAll('holder', 'p.holder')} end`
  const isOwn = `p.state = 'settling' and p.holder = ${holder.number}`

  return {
    /**
     * Takes over at most `limit` rows that no living process works on, or the one of `key`. This process works on those of `own`. The
     * buyer has no answer yet.
     */
    async adopt(limit: number, key?: PaymentKey, own: readonly PaymentKey[] = []): Promise<PaymentRow[]> {
      const rows = await run<StoredPayment>(
        `update payment p set ${claimed}, undelivered = true where pk in (select pk from payment p
           where ${ofToken} and state = 'settling' and ${isFree} and ($4::bytea is null or (p.payer = $4 and p.nonce = $5))
           order by pk limit $3 for update skip locked)
         returning ${columns}`,
        [
          limit,
          key ? hexToBytes(key.payer) : null,
          key ? hexToBytes(key.nonce) : null,
          bytes(own.map(({ payer, nonce }) => `${payer}${nonce.slice(2)}` as const)),
        ],
      )
      return rows.map(withHexColumns)
    },

    /** Gives a row of this process to whichever process adopts it first. The buyer has no answer yet. */
    async release(key: PaymentKey): Promise<void> {
      await update(key, 'holder = null, claim = null, undelivered = true', isOwn)
    },

    /** Deletes a row of this process for which no transaction was signed. `sent`: one was, which can settle it no more, and the row stays. */
    async drop(key: PaymentKey): Promise<'dropped' | 'sent' | undefined> {
      const [row] = await runOne<{ fate: 'dropped' | 'sent' }>(
        key,
        `with own as (select p.pk, s.state from payment p left join settlement s on s.pk = p.settlement where ${ofKey} and ${isOwn}),
         dropped as (delete from payment p using own where p.pk = own.pk and own.state is null and ${isOwn} returning p.pk)
         select 'dropped' as fate from dropped union all select 'sent' from own where state in ('mined', 'lost')`,
      )
      return row?.fate
    },

    /** Stores the transaction that a remote facilitator names. One of our own has a row. */
    async setTransaction(key: PaymentKey, transaction: Hex): Promise<void> {
      const isUnknown = `state = 'settling' and settlement is null and tx_hash is null`
      await update(key, 'tx_hash = $5', isUnknown, [hexToBytes(transaction)])
    },

    /**
     * Returns the transactions known to have been sent for a payment. `isSigned`: this service signed `transaction`, also one that counted as
     * lost before the payment was sent again. `since`: when it came (unix).
     */
    async sentFor(
      key: PaymentKey,
      transaction: Hex,
    ): Promise<{ transactions: readonly Hex[]; isSigned: boolean; since: bigint }> {
      const [row] = await runOne<{ hashes: readonly Uint8Array[]; isSigned: boolean; since: bigint }>(
        key,
        `select array_remove(coalesce(s.hashes, '{}') || p.tx_hash, null) as hashes, extract(epoch from p.created_at)::bigint as since,
           exists (select from settlement m where m.chain_id = $1 and $5 = any(m.hashes) and (m.pk = s.pk or m.state = 'pending'
             or m.state = 'lost' and m.sent_at > p.created_at or m.state = 'mined' and m.mined_at > p.created_at)) as "isSigned"
         from payment p left join settlement s on s.pk = p.settlement where ${ofKey}`,
        [hexToBytes(transaction)],
      )
      const { hashes = [], isSigned = false, since = 0n } = row ?? {}
      return { transactions: hashes.map(bytesToHex), isSigned, since }
    },

    /** Returns the seconds since the oldest payment came that is not settled, 0 where there is none. */
    async oldestPending(): Promise<number> {
      const [row] = await run<{ age: number | null }>(
        `select extract(epoch from clock_timestamp() - min(created_at))::float8 as age from payment p where ${ofToken} and state = 'settling'`,
      )
      return row?.age ?? 0
    },
  }
}
