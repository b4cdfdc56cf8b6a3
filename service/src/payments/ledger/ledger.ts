/**
 * The ledger of payments (spec §4.8): one row per (asset, payer, nonce). It binds a payment to one request and stores the proof before the
 * payment is executed. One authorization buys one proof for one request.
 */
import { earlierClock } from '../../db/columns.ts'
import type { Database } from '../../db/database.ts'
import type { PaymentScope } from '../holder.ts'
import { intakeStatements } from './intake.ts'
import { outcomeStatements } from './outcomes.ts'
import { recheckStatements } from './rechecks.ts'
import { settlingStatements } from './settling.ts'
import { createPaymentTable } from './table.ts'

export type PaymentLedger = ReturnType<typeof createPaymentLedger>

/** Rows of a kind that one pruning deletes. */
export const mostPruned = 10_000

/** Keeps the payments in one token, whose address is `asset`. */
export function createPaymentLedger(database: Pick<Database, 'query'>, scope: PaymentScope) {
  const table = createPaymentTable(database, scope)
  return {
    ...intakeStatements(table),
    ...settlingStatements(table),
    ...outcomeStatements(table),
    ...recheckStatements(table),

    /**
     * Deletes old rows, at most `mostPruned` of each kind, and returns how many. They are paid ones and mined transactions after `paidDays`,
     * others that ended after `otherDays`. From then on the nonce on chain refuses a replay. `now` is in unix milliseconds.
     */
    async prune({ paidDays, otherDays }: Record<'paidDays' | 'otherDays', number>, now = Date.now()): Promise<number> {
      if (!(Math.min(paidDays, otherDays) >= 1)) throw new RangeError('Payments are kept for at least one day.')
      let deleted = 0
      for (const [kind, state, time, days] of [
        ['payment', 'done', 'settled_at', paidDays],
        ['payment', 'dead', 'settled_at', otherDays],
        ['payment', 'open', 'claimed_until', otherDays],
        ['settlement', 'mined', 'mined_at', paidDays],
        ['settlement', 'lost', 'sent_at', otherDays],
      ] as const) {
        const rows = await database.query(
          `delete from ${kind} where pk in (select pk from ${kind} where state = '${state}'
             and ${time} < ${earlierClock('$2')} - make_interval(secs => $1::float8 * 86400) order by ${time} limit ${mostPruned}) returning pk`,
          [days, now / 1_000],
        )
        deleted += rows.length
      }
      return deleted
    },
  }
}
