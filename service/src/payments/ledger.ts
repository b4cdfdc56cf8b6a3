/**
 * The ledger of payments (spec §4.8): one row per (asset, payer, nonce). It binds a payment to one request and stores the proof before the
 * payment is executed. One authorization buys one proof for one request. Each change is one statement that names the state it starts from.
 */
import { createHash } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, hexToBytes } from 'viem'
import type { Database } from '../db/database.ts'
import { accountLock, lockStatement } from '../db/locks.ts'
import type { Payment } from './x402/payment.ts'

/** open: claimed, nothing sent. settling: proof stored, a transfer may be pending. done: paid. rejected: proven never to pay. */
type PaymentState = 'open' | 'settling' | 'done' | 'rejected'
export type PaymentKey = { readonly payer: Hex; readonly nonce: Hex }

/** `payload` is the payment as JSON. `claimed`: a process is working on the row. `reason`: the error code of a rejected row. */
export type PaymentRow = PaymentKey & {
  readonly state: PaymentState
  readonly requestHash: string
  readonly payload: string
  readonly claimed: boolean
  readonly proof: string | null
  readonly fromBlock: bigint | null
  readonly transaction: Hex | null
  readonly reason: string | null
  readonly answer: string | null
}

type NewPayment = PaymentKey & {
  readonly requestHash: string
  readonly payload: string
  readonly validBefore: bigint
}

export type Ledger = ReturnType<typeof createLedger>

const columns = `payer, nonce, case state when 'dead' then 'rejected' else state end as state, encode(request_hash, 'hex') as "requestHash",
  payload, proof, from_block as "fromBlock", tx_hash as transaction, reason, answer,
  (claim is not null and claimed_until > clock_timestamp()) as claimed`
const one = 'chain_id = $1 and asset = $2 and payer = $3 and nonce = $4'
const inSeconds = (seconds: string) => `clock_timestamp() + make_interval(secs => ${seconds}::float8)`
const unclaimed = '(claim is null or claimed_until <= clock_timestamp())'

/** Keeps the payments in one token, whose address is `asset`. A `claim` is a UUID of the caller's, and ends by itself. */
export function createLedger(
  database: Pick<Database, 'query' | 'transaction' | 'dialect'>,
  { chainId, asset }: { readonly chainId: number; readonly asset: Hex },
) {
  const run = <R>({ payer, nonce }: PaymentKey, text: string, values: readonly unknown[] = []) =>
    database.query<R>(text, [chainId, hexToBytes(asset), hexToBytes(payer), hexToBytes(nonce), ...values])

  async function findRow(...statement: Parameters<typeof run>): Promise<PaymentRow | undefined> {
    const [row] = await run<Row>(...statement)
    return row && toPaymentRow(row)
  }

  return {
    find: (key: PaymentKey) => findRow(key, `select ${columns} from payment where ${one}`),

    /** Inserts a payment, or replaces an `open` row whose claim has ended. Returns false when another row exists. */
    async claim(payment: NewPayment, claim: string, seconds: number): Promise<boolean> {
      const { requestHash, payload, validBefore } = payment
      const rows = await run(
        payment,
        `insert into payment (chain_id, asset, payer, nonce, request_hash, payload, valid_before, claim, claimed_until)
         values ($1, $2, $3, $4, decode($5, 'hex'), $6, $7::numeric, $8, ${inSeconds('$9')})
         on conflict (chain_id, asset, payer, nonce) do update set request_hash = excluded.request_hash,
           payload = excluded.payload, valid_before = excluded.valid_before, claim = excluded.claim,
           claimed_until = excluded.claimed_until, created_at = excluded.created_at
           where payment.state = 'open' and payment.claimed_until <= clock_timestamp()
         returning pk`,
        [requestHash, payload, validBefore.toString(), claim, seconds],
      )
      return rows.length > 0
    },

    /** Deletes an `open` row of this claim. */
    async dropOpen(key: PaymentKey, claim: string): Promise<void> {
      await run(key, `delete from payment where ${one} and state = 'open' and claim = $5`, [claim])
    },

    /** open → settling, while the claim is held. */
    async settling(
      key: PaymentKey,
      claim: string,
      { proof, fromBlock, seconds }: { readonly proof: string; readonly fromBlock: bigint; readonly seconds: number },
    ): Promise<boolean> {
      const rows = await run(
        key,
        `update payment set state = 'settling', proof = $6, from_block = $7, claimed_until = ${inSeconds('$8')}, looked_at = clock_timestamp()
         where ${one} and state = 'open' and claim = $5 returning pk`,
        [claim, proof, fromBlock, seconds],
      )
      return rows.length > 0
    },

    /** Claims a `settling` or `done` row that has no claim. */
    lease: (key: PaymentKey, claim: string, seconds: number) =>
      findRow(
        key,
        `update payment set claim = $5, claimed_until = ${inSeconds('$6')}
         where ${one} and state in ('settling', 'done') and ${unclaimed} returning ${columns}`,
        [claim, seconds],
      ),

    async releaseClaim(key: PaymentKey, claim: string): Promise<void> {
      await run(key, `update payment set claim = null where ${one} and claim = $5`, [claim])
    },

    /** Records the newest transaction that was sent for a payment. */
    async sent(key: PaymentKey, transaction: Hex): Promise<void> {
      await run(key, `update payment set tx_hash = $5 where ${one} and state = 'settling'`, [hexToBytes(transaction)])
    },

    /** settling → done. The first answer stays; it is returned. */
    async done(
      key: PaymentKey,
      { transaction, answer }: { readonly transaction: Hex; readonly answer: string },
    ): Promise<string> {
      const [row] = await run<{ answer: string }>(
        key,
        `update payment set state = 'done', answer = coalesce(answer, $6), claim = null,
           tx_hash = case when state = 'done' then tx_hash else $5 end, settled_at = coalesce(settled_at, clock_timestamp())
         where ${one} and state in ('settling', 'done') returning answer`,
        [hexToBytes(transaction), answer],
      )
      if (row === undefined) throw new Error('The ledger has no row for a paid payment.')
      return row.answer
    },

    /** settling → rejected. */
    async reject(key: PaymentKey, reason: string): Promise<void> {
      await run(
        key,
        `update payment set state = 'dead', reason = $5, claim = null, settled_at = clock_timestamp() where ${one} and state = 'settling'`,
        [reason],
      )
    },

    /** Deletes a `settling` row of this claim for which nothing was paid and nothing is pending. */
    async dropSettling(key: PaymentKey, claim: string): Promise<void> {
      await run(key, `delete from payment where ${one} and state = 'settling' and claim = $5`, [claim])
    },

    /** Returns unclaimed rows to check: all `settling`, and those `done` within `recheckSeconds`; least recently checked first. */
    async unfinished(limit: number, recheckSeconds: number): Promise<PaymentKey[]> {
      const rows = await database.query<Pick<Row, 'payer' | 'nonce'>>(
        `update payment set looked_at = clock_timestamp() where pk in (
           select pk from payment where chain_id = $1 and asset = $2 and ${unclaimed} and
             (state = 'settling' or (state = 'done' and settled_at > clock_timestamp() - make_interval(secs => $4::float8)))
           order by looked_at limit $3)
         returning payer, nonce`,
        [chainId, hexToBytes(asset), limit, recheckSeconds],
      )
      return rows.map(({ payer, nonce }) => ({ payer: bytesToHex(payer), nonce: bytesToHex(nonce) }))
    },

    /** Deletes at most 10,000 rows that ended more than `days` ago, and `open` rows that a crash left. After that the nonce on chain refuses a replay. */
    async prune(days: number): Promise<number> {
      if (!(days >= 1)) throw new RangeError('Payments are kept for at least one day.')
      const rows = await database.query(
        `delete from payment where pk in (select pk from payment where
           state in ('open', 'done', 'dead') and
           coalesce(settled_at, claimed_until) < clock_timestamp() - make_interval(secs => $1::float8 * 86400) limit 10000)
         returning pk`,
        [days],
      )
      return rows.length
    },

    /** Runs `work` while no other process does so for this address. The embedded database has only one process. */
    locked: async <T>(address: Hex, work: () => Promise<T>): Promise<T> => {
      if (database.dialect === 'pglite') return work()
      const number = createHash('sha256').update(address.toLowerCase()).digest().readInt32BE(0)
      return database.transaction(async (sql) => {
        await sql.query(lockStatement(accountLock(number)))
        return work()
      })
    },
  }
}

type Row = Omit<PaymentRow, 'payer' | 'nonce' | 'transaction'> & {
  readonly payer: Uint8Array
  readonly nonce: Uint8Array
  readonly transaction: Uint8Array | null
}

function toPaymentRow({ payer, nonce, transaction, ...row }: Row): PaymentRow {
  return {
    ...row,
    payer: bytesToHex(payer),
    nonce: bytesToHex(nonce),
    transaction: transaction && bytesToHex(transaction),
  }
}

export function formatPayload(payment: Payment): string {
  return JSON.stringify(payment, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
}

export function parsePayload(payload: string): Payment {
  const { value, validAfter, validBefore, ...rest } = JSON.parse(payload) as Record<keyof Payment, Hex>
  return { ...rest, value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) }
}
