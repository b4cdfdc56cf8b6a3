/** The published history of attestation keys (spec §4.8): rows are added and change their status, none is ever removed. */
import { attestationKeyId, checksumAddress, type Hex, type PublishedKey } from '@touchstone/verdict'
import { bytesToHex, hexToBytes } from 'viem'
import type { Sql } from '../../db/database.ts'

type KeyStatus = PublishedKey['status']
/** A key as it is stored: address in lower case, times in unix seconds. */
type StoredKey = Omit<PublishedKey, 'keyId'>

export type KeyHistoryStore = ReturnType<typeof attestationKeyStore>
export type KeyHistory = Awaited<ReturnType<typeof openKeyHistory>>

/** Stores the history in the database. */
export function attestationKeyStore(sql: Sql) {
  return {
    /** Returns all keys, oldest first. */
    async list(): Promise<StoredKey[]> {
      const rows = await sql.query<Row>('select * from attestation_key order by valid_from, address')
      return rows.map(({ address, valid_from, valid_until, status }) => ({
        address: bytesToHex(address),
        validFrom: Number(valid_from),
        validUntil: valid_until === null ? null : Number(valid_until),
        status,
      }))
    },
    /** Returns false and changes nothing when the key exists already. */
    async add({ address, validFrom, status }: Omit<StoredKey, 'validUntil'>): Promise<boolean> {
      return (await sql.query(addStatement, [hexToBytes(address), validFrom, status])).length > 0
    },
    /** Returns false and changes nothing when the key has none of the statuses `from`. */
    async change(
      address: Hex,
      { from, to, validUntil }: { from: readonly KeyStatus[]; to: KeyStatus; validUntil: number | null },
    ): Promise<boolean> {
      return (await sql.query(changeStatement, [hexToBytes(address), [...from], to, validUntil])).length > 0
    },
  }
}

type Row = { address: Uint8Array; valid_from: bigint; valid_until: bigint | null; status: KeyStatus }

const addStatement =
  'insert into attestation_key (address, valid_from, status) values ($1, $2, $3) on conflict do nothing returning status'
const changeStatement =
  'update attestation_key set status = $3, valid_until = $4 where address = $1 and status = any($2::text[]) returning status'

/** A copy in memory is refreshed when it is older. */
const freshMs = 30_000

/** Keeps the history in memory as the database has it. `now` is in milliseconds. */
export async function openKeyHistory({ store, now }: { readonly store: KeyHistoryStore; readonly now: () => number }) {
  let rows: readonly PublishedKey[] = []
  let readAt = 0
  let lastStarted = 0
  let lastApplied = 0
  let reading: Promise<void> | null = null

  async function read(): Promise<void> {
    const turn = (lastStarted += 1)
    const found = await store.list()
    if (turn < lastApplied) return // a read that began later, after a change, is applied already
    lastApplied = turn
    rows = found.map(({ address, validFrom, validUntil, status }) => ({
      address: checksumAddress(address),
      keyId: attestationKeyId(address),
      validFrom,
      validUntil,
      status,
    }))
    readAt = now()
  }

  await read()
  return {
    read,
    /** Returns the copy in memory, oldest key first, and refreshes an old copy for the next call. */
    rows: (): readonly PublishedKey[] => {
      if (now() - readAt >= freshMs && reading === null) {
        // A failing database is reported where payments are written.
        reading = read()
          .catch(() => {})
          .finally(() => void (reading = null))
      }
      return rows
    },
    /** Reads the database first. */
    async find(keyId: string): Promise<PublishedKey | null> {
      await read()
      return rows.find((row) => row.keyId === keyId) ?? null
    },
    async add(address: Hex, { validFrom, status }: Pick<StoredKey, 'validFrom' | 'status'>): Promise<boolean> {
      const added = await store.add({ address: address.toLowerCase() as Hex, validFrom, status })
      await read()
      return added
    },
    async change(
      address: Hex,
      from: readonly KeyStatus[],
      { status, validUntil }: Pick<StoredKey, 'validUntil' | 'status'>,
    ): Promise<boolean> {
      const changed = await store.change(address.toLowerCase() as Hex, { from, to: status, validUntil })
      await read()
      return changed
    },
  }
}
