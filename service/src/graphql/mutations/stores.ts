/**
 * The stores of mutations (spec §4.9): registrations, which are stored before their mint is sent, and the messages of transfers.
 * A registration gets its token from the index. One whose mint cannot come any more makes room for another.
 */
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, hexToBytes } from 'viem/utils'
import { isRecent } from '../../db/columns.ts'
import type { Database, Sql } from '../../db/database.ts'

/**
 * `key` is the API key's id and the caller's key. The key of the mint's operation is `register:` and this one. A serial may stand alone.
 */
export type Registration = Readonly<{
  key: string
  requestHash: Hex
  tagId: string
  serial: string | null
  gtin: string | null
  metadataHash: Hex
}>

/** `known`: the same request under the same key was registered before. */
export type RegistrationOutcome = 'added' | 'known' | 'key_taken' | 'tag_taken' | 'item_taken'

export function registrationStore(database: Pick<Database, 'query' | 'transaction'>) {
  async function insert(registration: Registration): Promise<boolean> {
    const { key, requestHash, tagId, serial, gtin, metadataHash } = registration
    const values = [key, hexToBytes(requestHash), tagId, serial, gtin, hexToBytes(metadataHash)]
    return (await database.query(insertStatement, values)).length > 0
  }

  /** Deletes those of some registrations whose mint cannot come any more; returns their number. */
  function deleteSome(statement: string, keys: readonly string[]): Promise<number> {
    return database.transaction(async (sql) => {
      // A statement does not see what was committed after it began, such as the mint for which it waited.
      await sql.query(lockStatement, [keys])
      return (await sql.query(statement, [keys])).length
    })
  }

  return {
    async has(key: string): Promise<boolean> {
      return (await database.query('select 1 from registration where idempotency_key = $1', [key])).length > 0
    },

    /** Stores a registration, unless its key, tag name or item belongs to another one. A rejected one changes nothing. */
    async add(registration: Registration): Promise<RegistrationOutcome> {
      if (await insert(registration)) return 'added'
      const { key, tagId, gtin, serial, requestHash } = registration
      const blocking = await database.query<Blocking>(blockingStatement, [key, tagId, gtin, serial])
      const same = blocking.find((row) => row.idempotency_key === key)
      if (same !== undefined) return bytesToHex(same.request_hash) === requestHash ? 'known' : 'key_taken'
      const others = blocking.map((row) => row.idempotency_key)
      const freed = await deleteSome(freeStatement, others)
      if (freed === others.length && (await insert(registration))) return 'added'
      return blocking.some((row) => row.tag_id === tagId) ? 'tag_taken' : 'item_taken'
    },

    /** Removes a registration after its mint was rejected. One whose mint was signed, and may still come, stays. */
    remove: async (key: string): Promise<boolean> => (await deleteSome(removeStatement, [key])) > 0,

    /** Returns whether a registration is still there, and keeps it until the transaction of `sql` ends. */
    keep: async (sql: Sql, key: string): Promise<boolean> => (await sql.query(lockStatement, [[key]])).length > 0,
  }
}

export type RegistrationStore = ReturnType<typeof registrationStore>

type Blocking = { idempotency_key: string; request_hash: Uint8Array; tag_id: string }

const insertStatement = `insert into registration (idempotency_key, request_hash, tag_id, serial, gtin, metadata_hash)
  values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning 1`

const blockingStatement = `select idempotency_key, request_hash, tag_id from registration
  where idempotency_key = $1 or tag_id = $2 or (gtin = $3 and serial = $4)`

const lockStatement =
  'select 1 from registration where idempotency_key = any($1::text[]) order by idempotency_key for update'

const mint = `from operation o where o.idempotency_key = 'register:' || r.idempotency_key`

/** Frees a registration whose mint failed, or was never signed within ten minutes because of a crash; signing takes seconds. */
const freeStatement = `delete from registration r
  where r.idempotency_key = any($1::text[]) and r.token_id is null and (
    exists (select ${mint} and o.status = 'FAILED')
    or (not ${isRecent('r.created_at', "interval '10 minutes'")} and not exists (select ${mint})))
  returning 1`

const removeStatement = `delete from registration r
  where r.idempotency_key = any($1::text[]) and r.token_id is null and not exists (select ${mint} and o.status <> 'FAILED')
  returning 1`

type OfferedMessage = Readonly<{ hash: Hex; body: string; offer: Readonly<{ id: string; from: Hex; to: Hex }> }>

/**
 * Stores the message of an offer, at most 8,000 bytes, by the keccak256 of its UTF-8, and whose it is. The chain holds the hash only.
 * Storing it again changes nothing, also where it was erased.
 */
export function putTransferMessage(
  database: Pick<Database, 'transaction'>,
  { hash, body, offer: { id, from, to } }: OfferedMessage,
): Promise<void> {
  return database.transaction(async (sql) => {
    // An erasure of this text may be under way. The next statement sees what it has marked.
    await sql.query('select from transfer_message where hash = $1 for update', [hexToBytes(hash)])
    const erased = 'select from erased_message where transfer_id = $1 and hash = $2'
    if ((await sql.query(erased, [id, hexToBytes(hash)])).length > 0) return
    await sql.query(partiesStatement, [hexToBytes(hash), id, hexToBytes(from), hexToBytes(to)])
    await sql.query(textStatement, [hexToBytes(hash), body])
  })
}

/** Locks a known text until the offer is committed: an erasure, which deletes texts without an offer, waits. */
const textStatement = `insert into transfer_message (hash, body) values ($1, $2)
  on conflict (hash) do update set body = excluded.body`

const partiesStatement = `insert into offered_message (hash, transfer_id, from_addr, to_addr) values ($1, $2, $3, $4)
  on conflict do nothing`
