/**
 * Writes to the chain, kept under the caller's idempotency key (spec §4.9): which transaction was signed for which request,
 * and what became of it. Nonces are given out under the signer's row lock, also among several processes.
 */
import type { Hex } from '@touchstone/verdict'
import type { Database } from './database.ts'

type OperationStatus = 'PENDING' | 'CONFIRMED' | 'FAILED'
export type SignedTransaction = Readonly<{ txHash: Hex; raw: Hex }>

/** `outcome` is JSON of the writer's own, present once settled. `ageMs` is the time since the newest signature. */
export type Operation = SignedTransaction &
  Readonly<{
    key: string
    requestHash: Hex
    kind: string
    signer: Hex
    nonce: bigint
    status: OperationStatus
    outcome: string | null
    ageMs: number
  }>

export type NewOperation = Readonly<{ key: string; requestHash: Hex; kind: string; signer: Hex; fromNonce: bigint }>

const columns = `idempotency_key, request_hash, kind, signer, nonce, tx_hash, raw, status, outcome,
  (extract(epoch from now() - signed_at) * 1000)::float8 as age_ms`
const rowLimit = 1_000

export function operationStore(database: Pick<Database, 'query' | 'transaction'>) {
  return {
    async find(key: string): Promise<Operation | undefined> {
      const [row] = await database.query<Row>(`select ${columns} from operation where idempotency_key = $1`, [key])
      return row && operationOf(row)
    },

    /**
     * Signs and stores a new operation: `sign` gets the first nonce from `fromNonce` on that no stored operation has.
     * Where the key is known by then, nothing is stored and `added` is false.
     */
    append: (request: NewOperation, sign: (nonce: bigint) => Promise<SignedTransaction>) =>
      database.transaction(async (sql): Promise<{ operation: Operation; added: boolean }> => {
        const { key, requestHash, kind, fromNonce } = request
        const signer = bytesOf(request.signer)
        await sql.query('insert into signer (address) values ($1) on conflict do nothing', [signer])
        await sql.query('select 1 from signer where address = $1 for update', [signer])
        const used = await sql.query<{ nonce: bigint }>(
          'select nonce from operation where signer = $1 and nonce >= $2 order by nonce',
          [signer, fromNonce],
        )
        const nonce = firstFree(used, fromNonce)
        const { txHash, raw } = await sign(nonce)
        const values = [key, bytesOf(requestHash), kind, signer, nonce, bytesOf(txHash), bytesOf(raw)]
        const [added] = await sql.query<Row>(
          `insert into operation (idempotency_key, request_hash, kind, signer, nonce, tx_hash, raw)
           values ($1, $2, $3, $4, $5, $6, $7) on conflict (idempotency_key) do nothing returning ${columns}`,
          values,
        )
        if (added !== undefined) return { operation: operationOf(added), added: true }
        const [known] = await sql.query<Row>(`select ${columns} from operation where idempotency_key = $1`, [key])
        if (known === undefined) throw new Error('An operation vanished while it was read.')
        return { operation: operationOf(known), added: false }
      }),

    /** Puts a transaction with the same nonce in the place of `txHash`; false when the operation is settled or was replaced meanwhile. */
    replace: (txHash: Hex, { txHash: newHash, raw }: SignedTransaction) =>
      database.transaction(async (sql): Promise<boolean> => {
        const [row] = await sql.query<{ pk: bigint }>(
          `update operation set tx_hash = $2, raw = $3, signed_at = now() where tx_hash = $1 and status = 'PENDING' returning pk`,
          [bytesOf(txHash), bytesOf(newHash), bytesOf(raw)],
        )
        if (row === undefined) return false
        await sql.query('insert into replaced_transaction (tx_hash, operation_pk) values ($1, $2)', [
          bytesOf(txHash),
          row.pk,
        ])
        return true
      }),

    /** Every transaction that was ever signed for the operation, the newest first. */
    async hashes({ key, txHash }: Pick<Operation, 'key' | 'txHash'>): Promise<Hex[]> {
      const rows = await database.query<{ tx_hash: Uint8Array }>(
        'select r.tx_hash from replaced_transaction r join operation o on o.pk = r.operation_pk where o.idempotency_key = $1',
        [key],
      )
      return [txHash, ...rows.map((row) => hexOf(row.tx_hash))]
    },

    /** PENDING becomes `status`, once; a settled operation stays as it is. */
    async settle(key: string, status: 'CONFIRMED' | 'FAILED', outcome: string): Promise<void> {
      await database.query(
        `update operation set status = $2, outcome = $3, settled_at = now() where idempotency_key = $1 and status = 'PENDING'`,
        [key, status, outcome],
      )
    },

    /** Makes what the chain has lost (a reorg, a restored chain) PENDING again: operations from `fromNonce` on, settled at least `settledMs` ago. */
    async reopen(signer: Hex, fromNonce: bigint, settledMs = 0): Promise<void> {
      await database.query(
        `update operation set status = 'PENDING', outcome = null, settled_at = null
         where signer = $1 and nonce >= $2 and status <> 'PENDING' and settled_at <= now() - $3 * interval '1 millisecond'`,
        [bytesOf(signer), fromNonce, settledMs],
      )
    },

    /** PENDING operations of a signer from `fromNonce` on, in the order of their nonces, at most 1000. */
    async pending(signer: Hex, fromNonce = 0n): Promise<Operation[]> {
      const rows = await database.query<Row>(
        `select ${columns} from operation where signer = $1 and nonce >= $2 and status = 'PENDING' order by nonce limit ${rowLimit}`,
        [bytesOf(signer), fromNonce],
      )
      return rows.map(operationOf)
    },
  }
}

export type OperationStore = ReturnType<typeof operationStore>

type Row = {
  idempotency_key: string
  request_hash: Uint8Array
  kind: string
  signer: Uint8Array
  nonce: bigint
  tx_hash: Uint8Array
  raw: Uint8Array
  status: OperationStatus
  outcome: string | null
  age_ms: number
}

function operationOf(row: Row): Operation {
  return {
    key: row.idempotency_key,
    requestHash: hexOf(row.request_hash),
    kind: row.kind,
    signer: hexOf(row.signer),
    nonce: row.nonce,
    txHash: hexOf(row.tx_hash),
    raw: hexOf(row.raw),
    status: row.status,
    outcome: row.outcome,
    ageMs: row.age_ms,
  }
}

function firstFree(used: readonly { nonce: bigint }[], from: bigint): bigint {
  let free = from
  for (const { nonce } of used) if (nonce === free) free += 1n
  return free
}

function bytesOf(hex: Hex): Uint8Array {
  return new Uint8Array(Buffer.from(hex.slice(2), 'hex'))
}

function hexOf(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes).toString('hex')}`
}
