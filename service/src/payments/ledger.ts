/**
 * The ledger of payments (spec §4.8): one row per (asset, payer, nonce). It binds a payment to one request and stores the proof before the
 * payment is executed. One authorization buys one proof for one request. Calls that come together share a statement.
 */
import type { Hex } from '@touchstone/verdict'
import { bytes, bytesToHex, earlierClock, hexToBytes, isRecent, numbers, texts } from '../db/columns.ts'
import type { Database } from '../db/database.ts'
import type { BlockId } from '../domain/chain.ts'
import { createBatcher } from '../lib/async/batch.ts'
import { channelIdOf } from './channels/channel.ts'
import type { PaymentScope } from './holder.ts'
import { paymentName, withHexColumns, type PaymentKey, type Stored } from './key.ts'
import type { Payment } from './x402/payment.ts'

/** settling: proof stored, a transfer may be pending. done: paid. rejected: proven never to pay. */
type PaymentState = 'settling' | 'done' | 'rejected'

/**
 * `payload` is the payment as JSON. `reason`: the error code of a rejected row, `removed` of a paid one that a reorganisation removed for good.
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

export type FoundRow = PaymentRow & { readonly isOther: boolean } // `isOther`: found by payer and request alone

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

/** A payment to look for, with its request and the buyer's name for it where these are known. */
type Sought = PaymentKey & { readonly requestHash?: string; readonly identifier?: string | undefined }

/** `age` in seconds since its oldest payment was settled. `hasRemoved`: a payment of it was removed for good. */
export type RecentBlock = BlockId & { readonly age: number; readonly hasRemoved: boolean }

type Paid = PaymentKey & { readonly transaction: Hex; readonly answer: string; readonly block: BlockId | null }

export type PaymentLedger = ReturnType<typeof createPaymentLedger>

const ours = 'p.chain_id = $1 and p.asset = $2'
const one = `${ours} and p.payer = $3 and p.nonce = $4`
const maxItems = 200
/** Clients that make a new identifier for each try have this many tries of one purchase. Others would fill the table. */
const maxIdentifiers = 10
/** SQL that binds identifiers to new payments, and a condition for payments that have none or got theirs. Its lock order is that of the ids. */
const named = `with given as (select * from unnest($3::bytea[], $4::bytea[], $13::text[]) g(payer, nonce, id) where id is not null),
  named as (insert into payment_identifier (chain_id, asset, payer, id, nonce)
    select distinct on (g.payer, g.id) $1::bigint, $2::bytea, g.payer, g.id, g.nonce from given g
    where not exists (select from payment p where ${ours} and p.payer = g.payer and p.nonce = g.nonce and p.state <> 'open')
    order by g.payer, g.id on conflict do nothing returning payer, nonce)`
const isNamed = `where (payer, nonce) not in (select payer, nonce from given) or (payer, nonce) in (select payer, nonce from named)`
/** SQL for the cost of a transaction in wei: its gas, and the data fee of a rollup. */
export const gasCost = `(s.gas_used * s.gas_price + s.l1_fee)`
/** SQL for the part of a transaction's cost, in wei, that each of its payments bears. */
export const gasShare = `div(${gasCost}, (select count(*) from payment m where m.settlement = s.pk))`

/** Rows of a kind that one pruning deletes. */
export const mostPruned = 10_000

/** Keeps the payments in one token, whose address is `asset`. */
export function createPaymentLedger(database: Pick<Database, 'query'>, { chainId, asset, holder }: PaymentScope) {
  const run = <R>(text: string, values: readonly unknown[] = []) =>
    database.query<R>(text, [chainId, hexToBytes(asset), ...values])
  const runOne = <R>({ payer, nonce }: PaymentKey, text: string, values: readonly unknown[] = []) =>
    run<R>(text, [hexToBytes(payer), hexToBytes(nonce), ...values])
  /** Versions that know `claim` only see a claim of half a minute on the rows of this one. */
  const claimed = `holder = ${holder.number}, claim = gen_random_uuid(), claimed_until = clock_timestamp() + interval '30 s'`
  /** The process that settled the payment still runs, and has not sent the proof yet. */
  const isBeingSent = `(p.state = 'done' and p.holder is not null and ${holder.isAlive.replaceAll('holder', 'p.holder')})`
  const columns = `p.payer, p.nonce, case p.state when 'dead' then 'rejected' else p.state end as state,
    encode(p.request_hash, 'hex') as "requestHash", p.payload, p.proof, p.from_block as "fromBlock", p.tx_hash as transaction,
    p.settlement, p.reason, p.answer, p.channel, p.undelivered and not ${isBeingSent} as undelivered,
    coalesce(p.settled_at > statement_timestamp() - interval '1 hour', false) as "isRecent"`
  /** SQL that finds payments by the buyer's name for them. */
  const byIdentifier = `union all select ${columns}, k.n, 2 from k join payment_identifier i on i.chain_id = $1 and i.asset = $2
    and i.payer = k.payer and i.id = k.identifier join payment p on ${ours} and p.payer = i.payer and p.nonce = i.nonce where p.state <> 'open'`
  /** A row of this process is free ten seconds after its write, unless it is in work. Its write had no answer then. */
  const isFree = `case when p.holder is null then (p.claim is null or p.claimed_until <= statement_timestamp())
    when p.holder = ${holder.number} then not ${isRecent("p.claimed_until - interval '30 s'", "interval '10 s'")} and p.payer || p.nonce <> all($6::bytea[])
    else not ${holder.isAlive.replaceAll('holder', 'p.holder')} end`

  const find = createBatcher<Sought, FoundRow | undefined>({
    maxItems,
    async run(keys) {
      const hasIdentifiers = keys.some(({ identifier }) => identifier !== undefined)
      const rows = await run<Row & Record<'n' | 'rank', number>>(
        `with k as (select payer, nonce, request_hash, identifier, n::int from unnest($3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
           with ordinality k(payer, nonce, request_hash, identifier, n))
         select distinct on (n) * from (
         select ${columns}, k.n, 1 as rank from k join payment p on ${ours} and p.payer = k.payer and p.nonce = k.nonce
           where p.state <> 'open'
         union all select ${columns}, k.n, 3 from k join payment p on ${ours} and p.payer = k.payer and p.request_hash = k.request_hash
           and p.undelivered and not ${isBeingSent} where p.nonce <> k.nonce and coalesce(p.settled_at, 'infinity') > statement_timestamp() - interval '1 hour'
         ${hasIdentifiers ? byIdentifier : ''}) found order by n, rank`,
        [
          bytes(keys.map(({ payer }) => payer)),
          bytes(keys.map(({ nonce }) => nonce)),
          bytes(keys.map(({ requestHash = '' }) => `0x${requestHash}` as const)),
          texts(keys.map(({ identifier }) => identifier ?? null)),
        ],
      )
      const found = new Map(rows.map(({ n, rank, ...row }) => [n, { ...withHexColumns(row), isOther: rank === 3 }]))
      return keys.map((_, index) => found.get(index + 1))
    },
  })

  const insert = createBatcher<NewPayment, boolean>({
    maxItems,
    async run(given) {
      // A statement with one key twice fails for all. A payer can sign a transfer and a deposit under one nonce.
      const first = new Map(given.toReversed().map((payment) => [paymentName(payment), payment]))
      const payments = given.filter((payment) => first.get(paymentName(payment)) === payment)
      const hasIdentifiers = payments.some(({ identifier }) => identifier !== undefined)
      const rows = await run<Pick<Row, 'payer' | 'nonce'>>(
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
           where p.state = 'open' and p.claimed_until <= statement_timestamp()
         returning payer, nonce`,
        [
          bytes(payments.map(({ payer }) => payer)),
          bytes(payments.map(({ nonce }) => nonce)),
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
    },
  })

  const finish = createBatcher<Paid, string | undefined>({
    maxItems,
    async run(paid) {
      // A transfer is undelivered until its proof was sent; a mark from before stays. The second part reads rows as they were before the
      // statement: those that had an answer already.
      const rows = await run<Pick<Row, 'payer' | 'nonce'> & { answer: string }>(
        `with given as (select * from unnest($3::bytea[], $4::bytea[], $5::bytea[], $6::text[], $7::bigint[], $8::bytea[])
             g(payer, nonce, tx_hash, answer, block_number, block_hash)),
         finished as (update payment p set state = 'done', answer = g.answer, tx_hash = g.tx_hash, block_number = g.block_number,
             block_hash = g.block_hash, claim = null, reason = null, settled_at = clock_timestamp(),
             undelivered = p.undelivered or p.channel is null,
             holder = case when p.undelivered or p.channel is not null then null else ${holder.number} end
           from given g where ${ours} and p.payer = g.payer and p.nonce = g.nonce and p.state in ('settling', 'dead')
           returning p.payer, p.nonce, p.answer)
         select * from finished union all
         select p.payer, p.nonce, p.answer from given g join payment p on ${ours} and p.payer = g.payer and p.nonce = g.nonce
         where p.state = 'done'`,
        [
          bytes(paid.map(({ payer }) => payer)),
          bytes(paid.map(({ nonce }) => nonce)),
          bytes(paid.map(({ transaction }) => transaction)),
          texts(paid.map(({ answer }) => answer)),
          numbers(paid.map(({ block }) => block?.number ?? null)),
          bytes(paid.map(({ block }) => block?.hash ?? null)),
        ],
      )
      const answers = new Map(rows.map((row) => [nameOfRow(row), row.answer]))
      return paid.map((key) => answers.get(paymentName(key)))
    },
  })

  const sent = createBatcher<PaymentKey, undefined>({
    maxItems,
    async run(keys) {
      await run(
        `update payment p set undelivered = false, holder = null from unnest($3::bytea[], $4::bytea[]) g(payer, nonce)
         where ${ours} and p.payer = g.payer and p.nonce = g.nonce and p.state = 'done' and p.holder = ${holder.number}`,
        [bytes(keys.map(({ payer }) => payer)), bytes(keys.map(({ nonce }) => nonce))],
      )
      return keys.map(() => undefined)
    },
  })

  return {
    /**
     * Returns the row of this payment, else that of the same payer and identifier, whatever its request. Else it returns one of the same
     * payer for the same request (SHA-256, hex) whose proof was not delivered within an hour.
     */
    find,

    /** Takes a payment in, with its proof, held by this process. Returns false when the ledger has a row for it, or for its identifier. */
    insert,

    /** Binds another identifier to a payment, at most ten to each. One that is bound already stays so. */
    async identify(key: PaymentKey, identifier: string): Promise<void> {
      await runOne(
        key,
        `insert into payment_identifier (chain_id, asset, payer, nonce, id)
         select p.chain_id, p.asset, p.payer, p.nonce, $5 from payment p where ${one} and (select count(*) from payment_identifier i
           where i.chain_id = $1 and i.asset = $2 and i.payer = $3 and i.nonce = $4) < ${maxIdentifiers} on conflict do nothing`,
        [identifier],
      )
    },

    /**
     * settling → done. The first answer stays; it is returned. `block`: null where it is not known. The proof counts as not delivered once
     * this process has ended, unless `delivered` follows.
     */
    async done(key: PaymentKey, paid: Omit<Paid, 'payer' | 'nonce'>): Promise<string> {
      const answer = await finish({ payer: key.payer, nonce: key.nonce, ...paid })
      if (answer === undefined) throw new Error('The ledger has no row for a paid payment.')
      return answer
    },

    /** Notes that the proof was sent which this process has stored by `done`, or by the sale of a voucher. Marks of `setUndelivered` stay. */
    delivered: async (key: PaymentKey): Promise<void> => sent({ payer: key.payer, nonce: key.nonce }),

    /** settling → rejected; its identifiers are free again. Returns the gas in wei that its transaction cost for nothing, 0 where none was mined. */
    async reject(key: PaymentKey, reason: string): Promise<bigint> {
      const [row] = await runOne<{ gas: string | null }>(
        key,
        `with rejected as (update payment p set state = 'dead', reason = $5, claim = null, holder = null, undelivered = false,
             settled_at = clock_timestamp() where ${one} and state = 'settling'
           returning (select ${gasShare}::text from settlement s where s.pk = p.settlement and s.state = 'mined') as gas),
         freed as (delete from payment_identifier p where ${one} and exists (select from rejected))
         select gas from rejected`,
        [reason],
      )
      return BigInt(row?.gas ?? 0)
    },

    /** Returns the seconds since the oldest payment came that is not settled, 0 where there is none. */
    async oldestPending(): Promise<number> {
      const [row] = await run<{ age: number | null }>(
        `select extract(epoch from clock_timestamp() - min(created_at))::float8 as age from payment p where ${ours} and state = 'settling'`,
      )
      return row?.age ?? 0
    },

    /** Stores the transaction that a remote facilitator names. One of our own has a row. */
    async setTransaction(key: PaymentKey, transaction: Hex): Promise<void> {
      const text = `update payment p set tx_hash = $5 where ${one} and state = 'settling' and settlement is null and tx_hash is null`
      await runOne(key, text, [hexToBytes(transaction)])
    },

    /** Returns all transactions known to have been sent for a payment. `isSigned`: this service signed one. `since`: when it came (unix). */
    async sentFor(key: PaymentKey): Promise<{ transactions: readonly Hex[]; isSigned: boolean; since: bigint }> {
      const [row] = await runOne<{ hashes: readonly Uint8Array[]; isSigned: boolean; since: bigint }>(
        key,
        `select array_remove(coalesce(s.hashes, '{}') || p.tx_hash, null) as hashes, s.pk is not null as "isSigned",
           extract(epoch from p.created_at)::bigint as since from payment p left join settlement s on s.pk = p.settlement where ${one}`,
      )
      const { hashes = [], isSigned = false, since = 0n } = row ?? {}
      return { transactions: hashes.map(bytesToHex), isSigned, since }
    },

    /** Deletes a row of this process that no transaction has settled or may still settle. `mined`: one has, and the row stays. */
    async drop(key: PaymentKey): Promise<'dropped' | 'mined' | undefined> {
      const [row] = await runOne<{ fate: 'dropped' | 'mined' }>(
        key,
        `with own as (select p.pk, s.state from payment p left join settlement s on s.pk = p.settlement
             where ${one} and p.state = 'settling' and p.holder = ${holder.number}),
         dropped as (delete from payment p using own where p.pk = own.pk and coalesce(own.state, 'lost') = 'lost'
             and p.state = 'settling' and p.holder = ${holder.number} returning p.pk)
         select 'dropped' as fate from dropped union all select 'mined' from own where state = 'mined'`,
      )
      return row?.fate
    },

    /** Notes whether the buyer's last answer was that the outcome is unknown; returns the newest transaction that was sent. */
    async setUndelivered(key: PaymentKey, undelivered: boolean): Promise<Hex | null> {
      const [row] = await runOne<{ hash: Uint8Array | null }>(
        key,
        `update payment p set undelivered = $5, holder = case when state = 'done' then null else holder end
         where ${one} and state <> 'dead' returning tx_hash as hash`,
        [undelivered],
      )
      return row?.hash ? bytesToHex(row.hash) : null
    },

    /** Replaces the answer of a payment whose proof was not delivered. Returns false where it was delivered, or has another answer by now. */
    async renew(key: PaymentKey, { from, to }: { readonly from: string; readonly to: string }): Promise<boolean> {
      const text = `update payment p set answer = $6 where ${one} and state = 'done' and undelivered and answer = $5 returning pk`
      return (await runOne(key, text, [from, to])).length > 0
    },

    /**
     * Takes over at most `limit` rows that no living process works on, or the one of `key`. This process works on those of `own`. The
     * buyer has no answer yet.
     */
    async adopt(limit: number, key?: PaymentKey, own: readonly PaymentKey[] = []): Promise<PaymentRow[]> {
      const rows = await run<Row>(
        `update payment p set ${claimed}, undelivered = true where pk in (select pk from payment p
           where ${ours} and state = 'settling' and ${isFree} and ($4::bytea is null or (p.payer = $4 and p.nonce = $5))
           order by pk limit $3 for update skip locked)
         returning ${columns}`,
        [
          limit,
          key ? hexToBytes(key.payer) : null,
          key ? hexToBytes(key.nonce) : null,
          bytes(own.map(({ payer, nonce }) => `${payer}${nonce.slice(2)}` as Hex)),
        ],
      )
      return rows.map(withHexColumns)
    },

    /** Gives a row of this process to whichever process adopts it first. The buyer has no answer yet. */
    async release(key: PaymentKey): Promise<void> {
      await runOne(
        key,
        `update payment p set holder = null, claim = null, undelivered = true
         where ${one} and state = 'settling' and holder = ${holder.number}`,
      )
    },

    /** Returns the blocks of payments that were settled within `seconds`, with the seconds since. */
    async recentBlocks(seconds: number): Promise<RecentBlock[]> {
      const rows = await run<Omit<RecentBlock, 'hash'> & { hash: Uint8Array }>(
        `select block_number as number, block_hash as hash, extract(epoch from clock_timestamp() - min(settled_at))::float8 as age,
           bool_or(reason is not null) as "hasRemoved" from payment p where settled_at > statement_timestamp() - make_interval(secs => $3::float8) and ${ours}
           and state = 'done' and block_hash is not null group by 1, 2`,
        [seconds],
      )
      return rows.map(({ hash, ...block }) => ({ ...block, hash: bytesToHex(hash) }))
    },

    /** Returns the payments that were settled in a block. */
    async settledIn({ hash }: BlockId): Promise<PaymentRow[]> {
      const rows = await run<Row>(
        `select ${columns} from payment p where ${ours} and state = 'done' and block_hash = $3
           and settled_at > statement_timestamp() - interval '1 day'`,
        [hexToBytes(hash)],
      )
      return rows.map(withHexColumns)
    },

    /** Marks a paid payment that a reorganisation has removed for good. Returns false where it is marked already. */
    async removed(key: PaymentKey): Promise<boolean> {
      const text = `update payment p set reason = 'removed' where ${one} and state = 'done' and reason is null returning pk`
      return (await runOne(key, text)).length > 0
    },

    /** Returns rejected payments whose transfer others may execute, or might a moment ago. Those that expire first come first. */
    async rejected(limit: number): Promise<PaymentRow[]> {
      const rows = await run<Row>(
        `select ${columns} from payment p where ${ours} and state = 'dead' and reason not in ('authorization_expired', 'nonce_already_used')
           and proof is not null and settled_at > statement_timestamp() - interval '2 hours'
           and valid_before > extract(epoch from statement_timestamp()) - 900 order by valid_before limit $3`,
        [limit],
      )
      return rows.map(withHexColumns)
    },

    /** Moves a paid payment to the block, and to the transaction, that a reorganisation has put its transfer into. */
    async moved(
      key: PaymentKey,
      { transaction, block }: Pick<Paid, 'transaction'> & { block: BlockId },
    ): Promise<void> {
      await runOne(
        key,
        `update payment p set tx_hash = $5, block_number = $6, block_hash = $7, reason = null, settlement = coalesce((select s.pk from settlement s
           where s.state = 'mined' and s.mined_at > statement_timestamp() - interval '1 hour' and s.chain_id = $1 and $5 = any(s.hashes)
           limit 1), p.settlement)
         where ${one} and p.state = 'done'`,
        [hexToBytes(transaction), block.number, hexToBytes(block.hash)],
      )
    },

    /**
     * Deletes old rows, at most `mostPruned` of each kind, and returns how many. They are paid ones and mined transactions after `paidDays`,
     * others that ended after `otherDays`. From then on the nonce on chain refuses a replay. `now` is in unix milliseconds.
     */
    async prune({ paidDays, otherDays }: Record<'paidDays' | 'otherDays', number>, now = Date.now()): Promise<number> {
      if (!(Math.min(paidDays, otherDays) >= 1)) throw new RangeError('Payments are kept for at least one day.')
      let deleted = 0
      for (const [table, state, time, days] of [
        ['payment', 'done', 'settled_at', paidDays],
        ['payment', 'dead', 'settled_at', otherDays],
        ['payment', 'open', 'claimed_until', otherDays],
        ['settlement', 'mined', 'mined_at', paidDays],
        ['settlement', 'lost', 'sent_at', otherDays],
      ] as const) {
        const rows = await database.query(
          `delete from ${table} where pk in (select pk from ${table} where state = '${state}'
             and ${time} < ${earlierClock('$2')} - make_interval(secs => $1::float8 * 86400) order by ${time} limit ${mostPruned}) returning pk`,
          [days, now / 1_000],
        )
        deleted += rows.length
      }
      return deleted
    },
  }
}

type Row = Stored<PaymentRow>

function nameOfRow({ payer, nonce }: Pick<Row, 'payer' | 'nonce'>): string {
  return paymentName({ payer: bytesToHex(payer), nonce: bytesToHex(nonce) })
}

type Amount = 'value' | 'validAfter' | 'validBefore'

/** Formats a payment as the ledger stores it. */
export function formatPayload(payment: Payment): string {
  return JSON.stringify(payment, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
}

export function parsePayload(payload: string): Payment {
  type Stored = Omit<Payment, Amount> & Record<Amount, string>
  const { value, validAfter, validBefore, ...rest } = JSON.parse(payload) as Stored
  return { ...rest, value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) }
}
