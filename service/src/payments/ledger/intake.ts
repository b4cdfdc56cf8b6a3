/** Statements about payments that a buyer presents. One is looked for, and taken in with its proof before it is executed. */
import { randomUUID } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { bytes, numbers, texts } from '../../db/columns.ts'
import { channelIdOf } from '../channels/channel.ts'
import { paymentName, withHexColumns, type PaymentKey } from '../key.ts'
import type { Payment } from '../x402/payment.ts'
import {
  formatPayload,
  nameOfRow,
  ofKey,
  ofToken,
  sharedStatement,
  type PaymentRow,
  type PaymentTable,
  type StoredPayment,
} from './table.ts'

/** A payment to look for, with its request and the buyer's name for it where these are known. */
type Sought = PaymentKey & { readonly requestHash?: string; readonly identifier?: string | undefined }

export type FoundRow = PaymentRow & { readonly isOther: boolean } // `isOther`: found by payer and request alone

/** Returns the name under which a payment is bound to the one whose proof has answered it. No buyer's identifier has a colon. */
export const nameOfAnswered = (nonce: Hex): string => `${answeredPrefix}${nonce.slice(2)}`
const answeredPrefix = 'nonce:'

/** Returns a name that counts one renewal of a proof among the names of its payment. */
export const nameOfRenewal = (): string => `renewal:${randomUUID()}`

/** `fromBlock` is the head from before the payment was taken in; a deposit is for no token. */
export type NewPayment = PaymentKey & {
  readonly tokenId: bigint | null
  readonly requestHash: string
  readonly payment: Payment
  readonly proof: string
  readonly fromBlock: bigint
  /** The buyer's name for this purchase. */
  readonly identifier?: string | undefined
}

/** Clients that make a new identifier for each try have this many tries of one purchase. Others would fill the table. */
const maxIdentifiers = 10
/** SQL for a condition: another version claimed the payment, and left it. */
const isLeft = `p.state = 'open' and p.claimed_until <= statement_timestamp()`
/** SQL that binds identifiers to new payments, and a condition for payments that have none or got theirs. Its lock order is that of the ids. */
const named = `with given as (select * from unnest($3::bytea[], $4::bytea[], $13::text[]) g(payer, nonce, id) where id is not null),
  named as (insert into payment_identifier (chain_id, asset, payer, id, nonce)
    select distinct on (g.payer, g.id) $1::bigint, $2::bytea, g.payer, g.id, g.nonce from given g
    where not exists (select from payment p where ${ofToken} and p.payer = g.payer and p.nonce = g.nonce and (${isLeft}) is not true)
    order by g.payer, g.id on conflict do nothing returning payer, nonce)`
const isNamed = `where (payer, nonce) not in (select payer, nonce from given) or (payer, nonce) in (select payer, nonce from named)`

export function intakeStatements({ runOne, runMany, columns, isUndelivered, holder }: PaymentTable) {
  /** SQL that finds the payments of a payer for a request that brought no proof. `kind` is the condition of an index. */
  const ofRequest = (kind: string) => `union all select ${columns}, k.n, 3 from k
    join payment p on ${ofToken} and p.payer = k.payer and p.request_hash = k.request_hash and ${kind} and ${isUndelivered}
    where p.nonce <> k.nonce and coalesce(p.settled_at, 'infinity') > statement_timestamp() - interval '1 hour'`
  /** SQL that finds payments by the buyer's name for them, and the one whose proof has answered this payment. */
  const byName = `union all select ${columns}, k.n, 2 from k
    cross join lateral (values (k.identifier), (case when k.request_hash <> '' then '${answeredPrefix}' || encode(k.nonce, 'hex') end)) m(id)
    join payment_identifier i on i.chain_id = $1 and i.asset = $2 and i.payer = k.payer and i.id = m.id
    join payment p on ${ofToken} and p.payer = i.payer and p.nonce = i.nonce where p.state <> 'open'`

  return {
    /**
     * Returns the row of this payment, else that of the same payer and identifier, whatever its request. A proof that has answered this
     * payment counts as identified by it. Else it returns one of the same payer for the same request (SHA-256, hex) whose proof was not
     * delivered within an hour.
     */
    find: sharedStatement<Sought, FoundRow | undefined>(async (keys) => {
      const isPresented = keys.some(({ requestHash, identifier }) => (requestHash ?? identifier) !== undefined)
      const rows = await runMany<StoredPayment & Record<'n' | 'rank', number>>(
        keys,
        `with k as (select payer, nonce, request_hash, identifier, n::int from unnest($3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
           with ordinality k(payer, nonce, request_hash, identifier, n))
         select distinct on (n) * from (
         select ${columns}, k.n, 1 as rank from k join payment p on ${ofToken} and p.payer = k.payer and p.nonce = k.nonce
           where p.state <> 'open'
         ${ofRequest('p.undelivered')} ${ofRequest(`p.state = 'settling'`)}
         ${isPresented ? byName : ''}) found order by n, rank`,
        [
          bytes(keys.map(({ requestHash = '' }) => `0x${requestHash}` as const)),
          texts(keys.map(({ identifier }) => identifier ?? null)),
        ],
      )
      const found = new Map(rows.map(({ n, rank, ...row }) => [n, { ...withHexColumns(row), isOther: rank === 3 }]))
      return keys.map((_, index) => found.get(index + 1))
    }),

    /** Takes a payment in, with its proof, held by this process. Returns false when the ledger has a row for it, or for its identifier. */
    insert: sharedStatement<NewPayment, boolean>(async (given) => {
      // A statement with one key twice fails for all. A payer can sign a transfer and a deposit under one nonce.
      const first = new Map(given.toReversed().map((payment) => [paymentName(payment), payment]))
      const payments = given.filter((payment) => first.get(paymentName(payment)) === payment)
      const hasIdentifiers = payments.some(({ identifier }) => identifier !== undefined)
      const rows = await runMany<Pick<StoredPayment, 'payer' | 'nonce'>>(
        payments,
        `${hasIdentifiers ? named : ''}
         insert into payment as p (chain_id, asset, payer, nonce, request_hash, payload, valid_before, amount, proof, from_block, token_id,
           channel, kind, state, holder, claim, claimed_until)
         select $1, $2, n.*, case when n.channel is null then 'transfer' else 'deposit' end, 'settling', ${holder.number}, gen_random_uuid(), clock_timestamp() + interval '30 s'
         from unnest($3::bytea[], $4::bytea[], $5::bytea[], $6::text[], $7::numeric[], $8::numeric[], $9::text[], $10::bigint[],
           $11::numeric[], $12::bytea[])
           n(payer, nonce, request_hash, payload, valid_before, amount, proof, from_block, token_id, channel) ${hasIdentifiers ? isNamed : ''}
         on conflict (chain_id, asset, payer, nonce) do update set request_hash = excluded.request_hash, payload = excluded.payload,
           valid_before = excluded.valid_before, amount = excluded.amount, proof = excluded.proof, from_block = excluded.from_block,
           token_id = excluded.token_id, state = excluded.state, holder = excluded.holder, claim = excluded.claim, claimed_until = excluded.claimed_until
           where ${isLeft}
         returning payer, nonce`,
        [
          bytes(payments.map(({ requestHash }) => `0x${requestHash}` as const)),
          texts(payments.map(({ payment }) => formatPayload(payment))),
          numbers(payments.map(({ payment }) => payment.validBefore)),
          numbers(payments.map(({ payment }) => payment.value)),
          texts(payments.map(({ proof }) => proof)),
          numbers(payments.map(({ fromBlock }) => fromBlock)),
          numbers(payments.map(({ tokenId }) => tokenId)),
          bytes(payments.map(({ payment: { deposit } }) => (deposit ? channelIdOf(deposit.config) : null))),
          ...(hasIdentifiers ? [texts(payments.map(({ identifier }) => identifier ?? null))] : []),
        ],
      )
      const inserted = new Set(rows.map(nameOfRow))
      return given.map((payment) => payments.includes(payment) && inserted.has(paymentName(payment)))
    }),

    /** Binds more identifiers to a payment, at most ten to each. Returns false where none is new, because they are bound or too many. */
    async identify(key: PaymentKey, ...identifiers: readonly string[]): Promise<boolean> {
      const rows = await runOne(
        key,
        `insert into payment_identifier (chain_id, asset, payer, nonce, id)
         select p.chain_id, p.asset, p.payer, p.nonce, g.id from payment p cross join unnest($5::text[]) g(id) where ${ofKey} and (select count(*) from payment_identifier i
         where i.chain_id = $1 and i.asset = $2 and i.payer = $3 and i.nonce = $4) < ${maxIdentifiers} on conflict do nothing returning id`,
        [texts(identifiers)],
      )
      return rows.length > 0
    },
  }
}
