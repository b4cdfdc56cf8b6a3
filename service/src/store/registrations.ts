/**
 * Registrations of products (spec §4.9 registerProduct): which tag name, item and metadata a mint stands for, kept before
 * the mint is sent. The index gives a registration its token. One whose mint will never come makes room for another.
 */
import type { Hex } from '@touchstone/verdict'
import type { Sql } from './database.ts'

/** `key` is the caller's; the mint's operation has it behind `register:`. `gtin` and `serial` as in `item`; a serial may stand alone. */
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

export function registrationStore(sql: Sql) {
  async function insert(registration: Registration): Promise<boolean> {
    const { key, requestHash, tagId, serial, gtin, metadataHash } = registration
    const values = [key, bytesOf(requestHash), tagId, serial, gtin, bytesOf(metadataHash)]
    return (await sql.query(insertStatement, values)).length > 0
  }

  return {
    /** Keeps a registration, unless its key, tag name or item belongs to another one. A refused registration changed nothing. */
    async add(registration: Registration): Promise<RegistrationOutcome> {
      if (await insert(registration)) return 'added'
      const { key, tagId, gtin, serial, requestHash } = registration
      const inTheWay = await sql.query<Blocking>(blockingStatement, [key, tagId, gtin, serial])
      const same = inTheWay.find((row) => row.idempotency_key === key)
      if (same !== undefined) return isSame(same.request_hash, requestHash) ? 'known' : 'key_taken'
      const others = inTheWay.map((row) => row.idempotency_key)
      const freed = await sql.query(freeStatement, [others])
      if (freed.length === others.length && (await insert(registration))) return 'added'
      return inTheWay.some((row) => row.tag_id === tagId) ? 'tag_taken' : 'item_taken'
    },

    /** Takes a registration back after its mint was refused; one whose mint was signed and may still come stays. */
    async remove(key: string): Promise<boolean> {
      return (await sql.query(removeStatement, [key])).length > 0
    },
  }
}

export type RegistrationStore = ReturnType<typeof registrationStore>

type Blocking = { idempotency_key: string; request_hash: Uint8Array; tag_id: string }

const insertStatement = `insert into registration (idempotency_key, request_hash, tag_id, serial, gtin, metadata_hash)
  values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning 1`

const blockingStatement = `select idempotency_key, request_hash, tag_id from registration
  where idempotency_key = $1 or tag_id = $2 or (gtin = $3 and serial = $4)`

const mint = `from operation o where o.idempotency_key = 'register:' || r.idempotency_key`

/** What a crash left behind between keeping the registration and signing its mint, which takes seconds; or a mint that failed. */
const freeStatement = `delete from registration r
  where r.idempotency_key = any($1::text[]) and r.token_id is null and (
    exists (select ${mint} and o.status = 'FAILED')
    or (r.created_at < clock_timestamp() - interval '10 minutes' and not exists (select ${mint})))
  returning 1`

const removeStatement = `delete from registration r
  where r.idempotency_key = $1 and r.token_id is null and not exists (select ${mint} and o.status <> 'FAILED')
  returning 1`

function bytesOf(hash: Hex): Uint8Array {
  return new Uint8Array(Buffer.from(hash.slice(2), 'hex'))
}

function isSame(stored: Uint8Array, hash: Hex): boolean {
  return Buffer.from(stored).equals(bytesOf(hash))
}
