/** The table of payments in one token: its records, and the SQL that all statements share (spec §4.8). */
import type { Hex } from '@touchstone/verdict'
import { bytes, bytesToHex, hexToBytes } from '../../db/columns.ts'
import type { Database } from '../../db/database.ts'
import { createBatcher } from '../../lib/async/batch.ts'
import { bigintAsText } from '../../lib/json.ts'
import type { PaymentScope } from '../holder.ts'
import { paymentName, withHexColumns, type PaymentKey, type Stored } from '../key.ts'
import type { Payment } from '../x402/payment.ts'

/** settling: proof stored, a transfer may be pending. done: paid. rejected: proven never to pay. */
type PaymentState = 'settling' | 'done' | 'rejected'

/**
 * `payload` is the payment as JSON. `reason`: the error code of a rejected row, `removed` of a paid one that a reorganisation removed.
 * `settlement`: the transaction's row, where it has one.
 */
export type PaymentRow = PaymentKey & {
  readonly state: PaymentState
  readonly requestHash: string
  readonly payload: string
  readonly proof: string | null
  readonly fromBlock: bigint | null
  readonly transaction: Hex | null
  readonly settlement: bigint | null
  readonly reason: string | null
  readonly answer: string | null
  /** The payment channel of a deposit or a voucher. */
  readonly channel: Hex | null
  /** The buyer's last answer was that the outcome is unknown, or was not sent. */
  readonly undelivered: boolean
  /** It ended within the last hour. */
  readonly isRecent: boolean
}

/** A row as PostgreSQL returns it. */
export type StoredPayment = Stored<PaymentRow>

/** SQL for a condition: a payment `p` is in this token. */
export const ofToken = 'p.chain_id = $1 and p.asset = $2'
/** SQL for a condition: it is also the one of the key. */
export const ofKey = `${ofToken} and p.payer = $3 and p.nonce = $4`
/** SQL for the cost of a transaction in wei: its gas, and the data fee of a rollup. */
export const gasCost = `(s.gas_used * s.gas_price + s.l1_fee)`
/** SQL for the part of a transaction's cost, in wei, that each of its payments bears. It is null for one without payments. */
export const gasShare = `div(${gasCost}, nullif((select count(*) from payment m where m.settlement = s.pk), 0))`

export type PaymentTable = ReturnType<typeof createPaymentTable>

/** Opens the rows of `scope`. The values of a statement begin with $3, and those of one about given keys with $5. */
export function createPaymentTable(database: Pick<Database, 'query'>, { chainId, asset, holder }: PaymentScope) {
  const run = <R>(text: string, values: readonly unknown[] = []) =>
    database.query<R>(text, [chainId, hexToBytes(asset), ...values])
  const runOne = <R>({ payer, nonce }: PaymentKey, text: string, values: readonly unknown[] = []) =>
    run<R>(text, [hexToBytes(payer), hexToBytes(nonce), ...values])
  const runMany = <R>(keys: readonly PaymentKey[], text: string, values: readonly unknown[] = []) =>
    run<R>(text, [bytes(keys.map(({ payer }) => payer)), bytes(keys.map(({ nonce }) => nonce)), ...values])
  /** SQL for a condition: a living process settles the payment, or sends its proof. */
  const isHeld = `(p.holder is not null and ${holder.isAlive.replaceAll('holder', 'p.holder')})`
  /** SQL for a condition: the buyer's last answer was no proof, or was not sent. A process that has ended sends none. */
  const isUndelivered = `(p.state = 'settling' and p.undelivered or (p.state = 'settling' or p.undelivered) and not ${isHeld})`
  const columns = `p.payer, p.nonce, case p.state when 'dead' then 'rejected' else p.state end as state,
    encode(p.request_hash, 'hex') as "requestHash", p.payload, p.proof, p.from_block as "fromBlock", p.tx_hash as transaction,
    p.settlement, p.reason, p.answer, p.channel, ${isUndelivered} as undelivered,
    coalesce(p.settled_at > statement_timestamp() - interval '1 hour', false) as "isRecent"`
  const select = async (where: string, values: readonly unknown[]): Promise<PaymentRow[]> => {
    const rows = await run<StoredPayment>(`select ${columns} from payment p where ${ofToken} and ${where}`, values)
    return rows.map(withHexColumns)
  }
  /** Changes one row. Returns false where it does not meet `where`. */
  const update = async (key: PaymentKey, set: string, where: string, values: readonly unknown[] = []) => {
    const text = `update payment p set ${set} where ${ofKey} and ${where} returning p.pk`
    return (await runOne(key, text, values)).length > 0
  }
  return { holder, isUndelivered, columns, run, runOne, runMany, select, update }
}

/** Calls that come together share a statement, at most 200 of them. */
export function sharedStatement<T, R>(run: (items: readonly T[]) => Promise<R[]>): (item: T) => Promise<R> {
  return createBatcher({ maxItems: 200, run })
}

export function nameOfRow({ payer, nonce }: Pick<StoredPayment, 'payer' | 'nonce'>): string {
  return paymentName({ payer: bytesToHex(payer), nonce: bytesToHex(nonce) })
}

/** Formats a payment as the ledger stores it. */
export function formatPayload(payment: Payment): string {
  return JSON.stringify(payment, bigintAsText)
}

type Amount = 'value' | 'validAfter' | 'validBefore'

export function parsePayload(payload: string): Payment {
  type Text = Omit<Payment, Amount> & Record<Amount, string>
  const { value, validAfter, validBefore, ...rest } = JSON.parse(payload) as Text
  return { ...rest, value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) }
}
