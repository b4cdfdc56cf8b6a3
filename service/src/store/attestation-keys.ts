/** The public history of the keys that sign attestations (spec §4.8): rows are added and change their status, none is ever removed. */
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, hexToBytes } from 'viem'
import type { Sql } from './database.ts'

type Status = 'next' | 'active' | 'retired' | 'revoked'
/** Times in unix seconds; `address` in lower case. */
type KeyRow = Readonly<{ address: Hex; validFrom: number; validUntil: number | null; status: Status }>

export function attestationKeyStore(sql: Sql) {
  return {
    /** Oldest first. */
    async list(): Promise<KeyRow[]> {
      const rows = await sql.query<StoredKey>('select * from attestation_key order by valid_from, address')
      return rows.map(({ address, valid_from, valid_until, status }) => ({
        address: bytesToHex(address),
        validFrom: Number(valid_from),
        validUntil: valid_until === null ? null : Number(valid_until),
        status,
      }))
    },
    /** False when the key is known already; then nothing changes. */
    async add({ address, validFrom, status }: Pick<KeyRow, 'address' | 'validFrom' | 'status'>): Promise<boolean> {
      return (await sql.query(addStatement, [hexToBytes(address), validFrom, status])).length > 0
    },
    /** False when the key has none of the statuses `from`; then nothing changes. */
    async change(
      address: Hex,
      { from, to, validUntil }: { from: readonly Status[]; to: Status; validUntil: number | null },
    ): Promise<boolean> {
      return (await sql.query(changeStatement, [hexToBytes(address), [...from], to, validUntil])).length > 0
    },
  }
}

type StoredKey = { address: Uint8Array; valid_from: bigint; valid_until: bigint | null; status: Status }

const addStatement =
  'insert into attestation_key (address, valid_from, status) values ($1, $2, $3) on conflict do nothing returning status'
const changeStatement =
  'update attestation_key set status = $3, valid_until = $4 where address = $1 and status = any($2::text[]) returning status'
