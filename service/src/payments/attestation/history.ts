/** The published history of attestation keys (spec §4.8): rows are added and change their status, none is ever removed. */
import { attestationKeyId, checksumAddress, type Hex, type PublishedKey } from '@touchstone/verdict'
import { bytesToHex, hexToBytes } from 'viem/utils'
import type { Sql } from '../../db/database.ts'
import { createRefresh } from '../../lib/async/single-flight.ts'

type KeyStatus = PublishedKey['status']

export type KeyHistory = Awaited<ReturnType<typeof openKeyHistory>>

type Row = { address: Uint8Array; valid_from: bigint; valid_until: bigint | null; status: KeyStatus }

const addStatement =
  'insert into attestation_key (address, valid_from, status) values ($1, $2, $3) on conflict do nothing returning status'
const changeStatement =
  'update attestation_key set status = $3, valid_until = $4 where address = $1 and status = any($2::text[]) returning status'

/** Published keys, and a sale, take a copy in memory whose reading began at most so long ago, in milliseconds. */
const freshMs = 30_000
const saleMs = 2_000

/** Keeps the history in memory as the database has it. `ticks` are monotonic milliseconds; the times of a key are in unix seconds. */
export async function openKeyHistory(sql: Sql, ticks: () => number) {
  let rows: readonly PublishedKey[] = []
  /** The moment when the reading of the copy began. */
  let readAt = 0
  let lastStarted = 0
  let lastApplied = 0
  const refresh = createRefresh(read, () => readAt, ticks)

  async function read(): Promise<void> {
    const turn = (lastStarted += 1)
    const began = ticks()
    const found = await sql.query<Row>('select * from attestation_key order by valid_from, address')
    if (turn < lastApplied) return // a read that began later, after a change, is applied already
    lastApplied = turn
    rows = found.map(({ address: bytes, valid_from, valid_until, status }) => ({
      address: checksumAddress(bytesToHex(bytes)),
      keyId: attestationKeyId(bytesToHex(bytes)),
      validFrom: Number(valid_from),
      validUntil: valid_until === null ? null : Number(valid_until),
      status,
    }))
    readAt = began
  }

  /** Returns whether the statement changed the key. */
  async function write(statement: string, address: Hex, values: readonly unknown[]): Promise<boolean> {
    const changed = await sql.query(statement, [hexToBytes(address), ...values])
    await read()
    return changed.length > 0
  }

  await read()
  return {
    read,
    /** Returns the copy in memory, oldest key first, and refreshes an old copy for the next call. */
    rows: (): readonly PublishedKey[] => {
      // A failing database is reported where payments are written.
      refresh(freshMs).catch(() => {})
      return rows
    },
    /** Returns every key, oldest first. It reads the database first where the copy is older than 30 seconds. */
    published: async (): Promise<readonly PublishedKey[]> => {
      await refresh(freshMs)
      return rows
    },
    /** Reads the database first where the copy is older than two seconds. */
    refresh: (): Promise<void> => refresh(saleMs),
    /** Reads the database first. */
    async find(keyId: string): Promise<PublishedKey | null> {
      await read()
      return rows.find((row) => row.keyId === keyId) ?? null
    },
    /** Returns false and changes nothing when the key exists already. */
    add: (address: Hex, { validFrom, status }: Pick<PublishedKey, 'validFrom' | 'status'>): Promise<boolean> =>
      write(addStatement, address, [validFrom, status]),
    /** Returns false and changes nothing when the key has none of the statuses `from`. */
    change: (
      address: Hex,
      from: readonly KeyStatus[],
      { status, validUntil }: Pick<PublishedKey, 'validUntil' | 'status'>,
    ): Promise<boolean> => write(changeStatement, address, [[...from], status, validUntil]),
  }
}
