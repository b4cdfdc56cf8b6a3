/** The ledger of payments (spec §4.8) in the database: every change is one statement that names the state it starts from. */
import { createHash } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import type { Database } from './database.ts'

type Key = Readonly<{ payer: Hex; nonce: Hex }>
type State = 'open' | 'settling' | 'done' | 'dead'
type Payment = Key &
  Readonly<{
    state: State
    requestHash: string
    payload: string
    claimed: boolean
    proof: string | null
    fromBlock: bigint | null
    transaction: Hex | null
    reason: string | null
    answer: string | null
  }>

const columns = `payer, nonce, state, encode(request_hash, 'hex') as request_hash, payload, proof, from_block, tx_hash, reason, answer,
  (claim is not null and claimed_until > clock_timestamp()) as claimed`
const one = 'chain_id = $1 and asset = $2 and payer = $3 and nonce = $4'
const until = (seconds: string) => `clock_timestamp() + make_interval(secs => ${seconds}::float8)`
const unclaimed = '(claim is null or claimed_until <= clock_timestamp())'

/** The payments in one token; `asset` is its address. */
export function paymentStore(
  database: Pick<Database, 'query' | 'transaction' | 'dialect'>,
  { chainId, asset }: { readonly chainId: number; readonly asset: Hex },
) {
  const keyOf = ({ payer, nonce }: Key) => [chainId, bytesOf(asset), bytesOf(payer), bytesOf(nonce)]
  const run = async <R>(text: string, key: Key, ...values: readonly unknown[]) =>
    database.query<R>(text, [...keyOf(key), ...values])

  return {
    async find(key: Key): Promise<Payment | undefined> {
      const [row] = await run<Row>(`select ${columns} from payment where ${one}`, key)
      return row && paymentOf(row)
    },

    async claim(
      payment: Key & Readonly<{ requestHash: string; payload: string; validBefore: bigint }>,
      claim: string,
      seconds: number,
    ): Promise<boolean> {
      const { requestHash, payload, validBefore } = payment
      const rows = await run(
        `insert into payment (chain_id, asset, payer, nonce, request_hash, payload, valid_before, claim, claimed_until)
         values ($1, $2, $3, $4, decode($5, 'hex'), $6, $7::numeric, $8, ${until('$9')})
         on conflict (chain_id, asset, payer, nonce) do update set request_hash = excluded.request_hash,
           payload = excluded.payload, valid_before = excluded.valid_before, claim = excluded.claim,
           claimed_until = excluded.claimed_until, created_at = excluded.created_at
           where payment.state = 'open' and payment.claimed_until <= clock_timestamp()
         returning pk`,
        payment,
        requestHash,
        payload,
        validBefore.toString(),
        claim,
        seconds,
      )
      return rows.length > 0
    },

    async release(key: Key, claim: string): Promise<void> {
      await run(`delete from payment where ${one} and state = 'open' and claim = $5`, key, claim)
    },

    async settling(
      key: Key,
      claim: string,
      { proof, fromBlock, seconds }: Readonly<{ proof: string; fromBlock: bigint; seconds: number }>,
    ): Promise<boolean> {
      const rows = await run(
        `update payment set state = 'settling', proof = $6, from_block = $7, claimed_until = ${until('$8')}, looked_at = clock_timestamp()
         where ${one} and state = 'open' and claim = $5 returning pk`,
        key,
        claim,
        proof,
        fromBlock,
        seconds,
      )
      return rows.length > 0
    },

    async lease(key: Key, claim: string, seconds: number): Promise<Payment | undefined> {
      const [row] = await run<Row>(
        `update payment set claim = $5, claimed_until = ${until('$6')}
         where ${one} and state in ('settling', 'done') and ${unclaimed} returning ${columns}`,
        key,
        claim,
        seconds,
      )
      return row && paymentOf(row)
    },

    async free(key: Key, claim: string): Promise<void> {
      await run(`update payment set claim = null where ${one} and claim = $5`, key, claim)
    },

    async sent(key: Key, transaction: Hex): Promise<void> {
      await run(`update payment set tx_hash = $5 where ${one} and state = 'settling'`, key, bytesOf(transaction))
    },

    async done(key: Key, { transaction, answer }: Readonly<{ transaction: Hex; answer: string }>): Promise<string> {
      const [row] = await run<{ answer: string }>(
        `update payment set state = 'done', answer = coalesce(answer, $6), claim = null,
           tx_hash = case when state = 'done' then tx_hash else $5 end, settled_at = coalesce(settled_at, clock_timestamp())
         where ${one} and state in ('settling', 'done') returning answer`,
        key,
        bytesOf(transaction),
        answer,
      )
      if (row === undefined) throw new Error('A paid row vanished.')
      return row.answer
    },

    async dead(key: Key, reason: string): Promise<void> {
      await run(
        `update payment set state = 'dead', reason = $5, claim = null, settled_at = clock_timestamp() where ${one} and state = 'settling'`,
        key,
        reason,
      )
    },

    async drop(key: Key, claim: string): Promise<void> {
      await run(`delete from payment where ${one} and state = 'settling' and claim = $5`, key, claim)
    },

    async unfinished(limit: number, recheckSeconds: number): Promise<Key[]> {
      const rows = await database.query<Pick<Row, 'payer' | 'nonce'>>(
        `update payment set looked_at = clock_timestamp() where pk in (
           select pk from payment where chain_id = $1 and asset = $2 and ${unclaimed} and
             (state = 'settling' or (state = 'done' and settled_at > clock_timestamp() - make_interval(secs => $4::float8)))
           order by looked_at limit $3)
         returning payer, nonce`,
        [chainId, bytesOf(asset), limit, recheckSeconds],
      )
      return rows.map(({ payer, nonce }) => ({ payer: hexOf(payer), nonce: hexOf(nonce) }))
    },

    /** Done and dead rows settled more than `days` ago, and `open` ones that a crash left; at most 10,000 a call. */
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

    /** Runs `work` while no other process does so for this address. The embedded database has one process anyway. */
    async locked<T>(address: Hex, work: () => Promise<T>): Promise<T> {
      if (database.dialect === 'pglite') return work()
      const number = createHash('sha256').update(address.toLowerCase()).digest().readInt32BE(0)
      return database.transaction(async (sql) => {
        await sql.query('select pg_advisory_xact_lock(84532003, $1)', [number])
        return work()
      })
    },
  }
}

type Row = {
  payer: Uint8Array
  nonce: Uint8Array
  state: State
  request_hash: string
  payload: string
  claimed: boolean
  proof: string | null
  from_block: bigint | null
  tx_hash: Uint8Array | null
  reason: string | null
  answer: string | null
}

function paymentOf(row: Row): Payment {
  const { state, payload, claimed, proof, reason, answer } = row
  return {
    payer: hexOf(row.payer),
    nonce: hexOf(row.nonce),
    requestHash: row.request_hash,
    fromBlock: row.from_block,
    transaction: row.tx_hash && hexOf(row.tx_hash),
    state,
    payload,
    claimed,
    proof,
    reason,
    answer,
  }
}

function bytesOf(hex: Hex): Uint8Array {
  return new Uint8Array(Buffer.from(hex.slice(2), 'hex'))
}

function hexOf(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes).toString('hex')}`
}
