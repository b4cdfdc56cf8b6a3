/**
 * Writes to the chain, kept under the caller's idempotency key (spec §4.9): which transaction was signed for which request, and its
 * outcome. Nonces are assigned under the signer's row lock, also among several processes.
 */
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, hexToBytes, isRecent } from '../../db/columns.ts'
import { type Actor, appendAudit, type AuditBody, auditText, localActor } from '../../db/audit.ts'
import type { Database, Sql } from '../../db/database.ts'
import { parseJsonObject } from '../../lib/json.ts'

export type SignedTransaction = Readonly<{ txHash: Hex; raw: Hex }>

/**
 * `outcome` is the writer's JSON, present once settled. A PENDING operation has one only if it was settled before (`keptOutcome`). `ageMs` is
 * the time between the newest signature and now. A signature from the future was made before the clock of the database was set back.
 */
export type Operation = SignedTransaction &
  Readonly<{
    key: string
    requestHash: Hex
    signer: Hex
    nonce: bigint
    status: 'PENDING' | 'CONFIRMED' | 'FAILED'
    outcome: string | null
    ageMs: number
  }>

/**
 * Returns whether an operation may be stored, in the transaction that stores it. What it locks stays locked until the operation can be
 * read.
 */
export type Guard = (sql: Sql) => Promise<boolean>

/** `subject` is the token, where the request names one; `by` left out is the user of this process. */
type NewOperation = Readonly<{
  key: string
  requestHash: Hex
  kind: string
  signer: Hex
  fromNonce: bigint
  subject?: string
  by?: Actor
  guard?: Guard | undefined
}>

export type OperationStore = ReturnType<typeof operationStore>

export function operationStore(database: Pick<Database, 'query' | 'transaction'>) {
  const read = async (text: string, values: readonly unknown[]): Promise<Operation[]> =>
    (await database.query<Row>(text, values)).map(parseRow)

  return {
    find: async (key: string): Promise<Operation | undefined> => (await read(findStatement, [key]))[0],

    /**
     * Signs and stores a new operation: `sign` gets the first nonce from `fromNonce` on that no stored operation has. When the key is
     * already stored, nothing is added and `added` is false. Returns `null`, and signs nothing, where the guard returns false.
     */
    append: (request: NewOperation, sign: (nonce: bigint) => Promise<SignedTransaction>) =>
      database.transaction(async (sql): Promise<{ operation: Operation; added: boolean } | null> => {
        const { key, requestHash, kind, fromNonce, guard } = request
        const signer = hexToBytes(request.signer)
        await sql.query('insert into signer (address) values ($1) on conflict do nothing', [signer])
        await sql.query('select 1 from signer where address = $1 for update', [signer])
        if (guard !== undefined && !(await guard(sql))) return null
        const used = await sql.query<{ nonce: bigint }>(
          'select nonce from operation where signer = $1 and nonce >= $2 order by nonce',
          [signer, fromNonce],
        )
        const nonce = firstFree(used, fromNonce)
        const { txHash, raw } = await sign(nonce)
        const values = [key, hexToBytes(requestHash), kind, signer, nonce, hexToBytes(txHash), hexToBytes(raw)]
        const [added] = await sql.query<Row>(
          `insert into operation (idempotency_key, request_hash, kind, signer, nonce, tx_hash, raw)
           values ($1, $2, $3, $4, $5, $6, $7) on conflict (idempotency_key) do nothing returning ${columns}`,
          values,
        )
        if (added !== undefined) {
          const act = { act: kind, subject: request.subject ?? '', outcome: 'SIGNED', txHash } as const
          const text = auditText(request.by ?? localActor(), act)
          await sql.query('update operation set audit_seq = append_audit($2) where idempotency_key = $1', [key, text])
          return { operation: parseRow(added), added: true }
        }
        const [known] = await sql.query<Row>(findStatement, [key])
        if (known === undefined) throw new Error('An operation vanished while it was read.')
        return { operation: parseRow(known), added: false }
      }),

    /** Notes in the audit trail that a request was repeated: nothing was done but what the first one did. */
    async replayed(key: string, by: Actor): Promise<void> {
      const [first] = await database.query<{
        kind: string
        seq: bigint | null
        body: string | null
        tx_hash: Uint8Array
      }>(
        `select o.kind, o.audit_seq as seq, e.body, o.tx_hash from operation o left join audit_entry e on e.seq = o.audit_seq
         where o.idempotency_key = $1`,
        [key],
      )
      if (first === undefined) return
      const { who: firstActor = null, subject = '' } = (parseJsonObject(first.body ?? '') ?? {}) as Partial<AuditBody>
      const act = { act: first.kind, subject, outcome: 'REPLAYED', txHash: bytesToHex(first.tx_hash) } as const
      const of = {
        ...(first.seq !== null && { of: String(first.seq) }),
        ...(firstActor !== null && { first: firstActor }),
      }
      await appendAudit(database, auditText(by, { ...act, ...of }))
    },

    /** Replaces the transaction `txHash` by one with the same nonce; false when the operation was settled or replaced meanwhile. */
    async replace(txHash: Hex, { txHash: newHash, raw }: SignedTransaction): Promise<boolean> {
      const values = [txHash, newHash, raw].map(hexToBytes)
      return (await database.query(replaceStatement, values)).length > 0
    },

    /**
     * Returns every transaction that was ever signed for the operation, the current one first. All are read from the store, because
     * another process may have replaced the one that the caller has.
     */
    async hashes(key: string): Promise<Hex[]> {
      const rows = await database.query<{ tx_hash: Uint8Array }>(
        `select tx_hash, 0 as place from operation where idempotency_key = $1 union all
         select r.tx_hash, 1 from replaced_transaction r join operation o on o.pk = r.operation_pk where o.idempotency_key = $1
         order by place`,
        [key],
      )
      return rows.map((row) => bytesToHex(row.tx_hash))
    },

    /** Settles a PENDING operation; a settled one stays as it is. */
    async settle(key: string, status: 'CONFIRMED' | 'FAILED', outcome: string): Promise<void> {
      await database.query(settleStatement, [key, status, outcome])
    },

    /** Reopens an operation that is settled with this outcome, and keeps the outcome as `kept`. */
    async reopen(key: string, outcome: string, kept: string): Promise<void> {
      await database.query(
        `update operation set status = 'PENDING', outcome = $3, settled_at = null
         where idempotency_key = $1 and outcome = $2 and status <> 'PENDING'`,
        [key, outcome, kept],
      )
    },

    /** Returns operations of a signer from `fromNonce` on, the lowest nonces first. Each was settled at least `settledMs` ago. */
    settledFrom: (signer: Hex, fromNonce: bigint, settledMs: number, limit: number): Promise<Operation[]> =>
      read(
        `select ${columns} from operation where signer = $1 and nonce >= $2 and status <> 'PENDING'
           and not ${isRecent('settled_at', "$3 * interval '1 millisecond'")} order by nonce limit $4`,
        [hexToBytes(signer), fromNonce, settledMs, limit],
      ),

    /** Returns the operations of a signer that were settled within a time, among the 500 with the highest nonces. */
    settledWithin: (signer: Hex, milliseconds: number): Promise<Operation[]> =>
      read(
        `select ${columns} from (select * from operation where signer = $1 order by nonce desc limit 500) newest
         where status <> 'PENDING' and settled_at > now() - $2::float8 * interval '1 millisecond'`,
        [hexToBytes(signer), milliseconds],
      ),

    /** Returns the accounts that have PENDING operations, also those whose key is configured no more. */
    async openSigners(): Promise<Hex[]> {
      const rows = await database.query<{ address: Uint8Array }>(
        `select address from signer s where exists (select from operation o where o.signer = s.address and o.status = 'PENDING')`,
      )
      return rows.map(({ address }) => bytesToHex(address))
    },

    /** Returns at most 1000 PENDING operations of a signer from `fromNonce` on, in the order of their nonces. */
    pending: (signer: Hex, fromNonce = 0n): Promise<Operation[]> =>
      read(
        `select ${columns} from operation where signer = $1 and nonce >= $2 and status = 'PENDING' order by nonce limit 1000`,
        [hexToBytes(signer), fromNonce],
      ),

    /** Returns at most 1000 PENDING operations of a signer below a nonce, the highest nonce first. */
    pendingBelow: (signer: Hex, nonce: bigint): Promise<Operation[]> =>
      read(
        `select ${columns} from operation where signer = $1 and nonce < $2 and status = 'PENDING' order by nonce desc limit 1000`,
        [hexToBytes(signer), nonce],
      ),
  }
}

/** Returns the SQL that appends an entry of the service to the audit trail. `changed` has the operation, where its row was changed. */
const appendEntry = (outcome: string, txHash: string) =>
  `select append_audit(json_build_object('who', 'service', 'act', c.kind,
    'subject', coalesce((select e.body::jsonb->>'subject' from audit_entry e where e.seq = c.audit_seq), ''),
    'outcome', ${outcome}, 'of', c.audit_seq::text, 'txHash', ${txHash})::text) from changed c`

/** The transaction of the entry is the one that was mined. The row may have a later one, which had replaced it. */
const settleStatement = `with changed as (
    update operation set status = $2, outcome = $3, settled_at = now() where idempotency_key = $1 and status = 'PENDING'
    returning kind, audit_seq)
  ${appendEntry('$2::text', "$3::text::json->>'txHash'")}`

const replaceStatement = `with changed as (
    update operation set tx_hash = $2, raw = $3, signed_at = now() where tx_hash = $1 and status = 'PENDING'
    returning pk, kind, audit_seq),
  replaced as (insert into replaced_transaction (tx_hash, operation_pk) select $1::bytea, pk from changed)
  ${appendEntry("'SIGNED'", "'0x' || encode($2::bytea, 'hex')")}`

const columns = `idempotency_key as key, request_hash, signer, nonce, tx_hash, raw, status, outcome,
  (abs(extract(epoch from now() - signed_at)) * 1000)::float8 as "ageMs"`
const findStatement = `select ${columns} from operation where idempotency_key = $1`

type Row = Pick<Operation, 'key' | 'nonce' | 'status' | 'outcome' | 'ageMs'> &
  Record<'request_hash' | 'signer' | 'tx_hash' | 'raw', Uint8Array>

function parseRow({ request_hash, signer, tx_hash, raw, ...row }: Row): Operation {
  return {
    ...row,
    requestHash: bytesToHex(request_hash),
    signer: bytesToHex(signer),
    txHash: bytesToHex(tx_hash),
    raw: bytesToHex(raw),
  }
}

function firstFree(used: readonly { nonce: bigint }[], from: bigint): bigint {
  let free = from
  for (const { nonce } of used) if (nonce === free) free += 1n
  return free
}
