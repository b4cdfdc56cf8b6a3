/** Statements about how payments ended, and whether the buyer has the answer. */
import type { Hex } from '@touchstone/verdict'
import { bytes, bytesToHex, numbers, texts } from '../../db/columns.ts'
import type { BlockId } from '../../domain/chain.ts'
import { paymentName, type PaymentKey } from '../key.ts'
import { gasShare, nameOfRow, ofKey, ofToken, sharedStatement, type PaymentTable, type StoredPayment } from './table.ts'

type Paid = { readonly transaction: Hex; readonly answer: string; readonly block: BlockId | null }
/** `isNew`: this call has stored the answer. */
type Recorded = { readonly answer: string; readonly isNew: boolean }

export function outcomeStatements({ runOne, runMany, update, holder }: PaymentTable) {
  const finish = sharedStatement<PaymentKey & Paid, Recorded | undefined>(async (paid) => {
    // A transfer is undelivered until its proof was sent; a mark from before stays. The second part reads rows as they were before the
    // statement: those that had an answer already.
    const rows = await runMany<Pick<StoredPayment, 'payer' | 'nonce'> & Recorded>(
      paid,
      `with given as (select * from unnest($3::bytea[], $4::bytea[], $5::bytea[], $6::text[], $7::bigint[], $8::bytea[])
           g(payer, nonce, tx_hash, answer, block_number, block_hash)),
         finished as (update payment p set state = 'done', answer = g.answer, tx_hash = g.tx_hash, block_number = g.block_number,
           block_hash = g.block_hash, claim = null, reason = null, settled_at = clock_timestamp(),
           undelivered = p.undelivered or p.channel is null,
           holder = case when p.undelivered or p.channel is not null then null else ${holder.number} end
         from given g where ${ofToken} and p.payer = g.payer and p.nonce = g.nonce and p.state in ('settling', 'dead')
         returning p.payer, p.nonce, p.answer, true as "isNew")
         select * from finished union all
         select p.payer, p.nonce, p.answer, false from given g join payment p on ${ofToken} and p.payer = g.payer and p.nonce = g.nonce
         where p.state = 'done'`,
      [
        bytes(paid.map(({ transaction }) => transaction)),
        texts(paid.map(({ answer }) => answer)),
        numbers(paid.map(({ block }) => block?.number ?? null)),
        bytes(paid.map(({ block }) => block?.hash ?? null)),
      ],
    )
    const recorded = new Map(rows.map((row) => [nameOfRow(row), { answer: row.answer, isNew: row.isNew }]))
    return paid.map((key) => {
      const name = paymentName(key)
      const found = recorded.get(name)
      if (found !== undefined) recorded.set(name, { ...found, isNew: false }) // two requests may end one payment together
      return found
    })
  })

  return {
    /**
     * settling → done. The first answer stays; it is returned. `block`: null where it is not known. The proof counts as not delivered once
     * this process has ended, unless `delivered` follows.
     */
    async done(key: PaymentKey, paid: Paid): Promise<Recorded> {
      // The first statement sees no row that another process ends at the same moment.
      const recorded = (await finish({ ...key, ...paid })) ?? (await finish({ ...key, ...paid }))
      if (recorded === undefined) throw new Error('The ledger has no row for a paid payment.')
      return recorded
    },

    /** settling → rejected; its identifiers are free again. Returns the gas in wei that its transaction cost for nothing, 0 where none was mined. */
    async reject(key: PaymentKey, reason: string): Promise<bigint> {
      const [row] = await runOne<{ gas: string | null }>(
        key,
        `with rejected as (update payment p set state = 'dead', reason = $5, claim = null, holder = null, undelivered = false,
           settled_at = clock_timestamp() where ${ofKey} and state = 'settling'
         returning (select ${gasShare}::text from settlement s where s.pk = p.settlement and s.state = 'mined') as gas),
         freed as (delete from payment_identifier p where ${ofKey} and exists (select from rejected))
         select gas from rejected`,
        [reason],
      )
      return BigInt(row?.gas ?? 0)
    },

    /** Notes that the proof was sent which this process has stored by `done`, or by the sale of a voucher. Marks of `setUndelivered` stay. */
    delivered: sharedStatement<PaymentKey, undefined>(async (keys) => {
      await runMany(
        keys,
        `update payment p set undelivered = false, holder = null from unnest($3::bytea[], $4::bytea[]) g(payer, nonce)
         where ${ofToken} and p.payer = g.payer and p.nonce = g.nonce and p.state = 'done' and p.holder = ${holder.number}`,
      )
      return keys.map(() => undefined)
    }),

    /** Notes whether the buyer's last answer was that the outcome is unknown; returns the newest transaction that was sent. */
    async setUndelivered(key: PaymentKey, undelivered: boolean): Promise<Hex | null> {
      const [row] = await runOne<{ hash: Uint8Array | null }>(
        key,
        `update payment p set undelivered = $5, holder = case when state = 'done' then null else holder end
         where ${ofKey} and state <> 'dead' returning tx_hash as hash`,
        [undelivered],
      )
      return row?.hash ? bytesToHex(row.hash) : null
    },

    /** Replaces the answer of a payment whose proof was not delivered. Returns false where it was delivered, or has another answer by now. */
    renew: (key: PaymentKey, { from, to }: { readonly from: string; readonly to: string }): Promise<boolean> =>
      update(key, 'answer = $6', `undelivered and answer = $5`, [from, to]),
  }
}
