/**
 * What every instance must agree on about tag batches (spec §4.4): epoch, settings and status, never a key. A status set here holds
 * on all instances from the next tap on, because the ledger reads it with every tap.
 */
import type { Sql } from './database.ts'

export type StoredBatchStatus = 'active' | 'retired' | 'revoked'

export type StoredBatch = Readonly<{
  id: string
  epoch: number
  status: StoredBatchStatus
  settings: unknown
  createdAt: string
}>

export function batchStore(sql: Sql) {
  return {
    /** Adds a batch, or refreshes its settings; false when the id is known with another epoch. The status stays as it is. */
    putBatch: async (batch: {
      id: string
      epoch: number
      status?: StoredBatchStatus
      settings: unknown
    }): Promise<boolean> => {
      const values = [batch.id, batch.epoch, batch.status ?? 'active', JSON.stringify(batch.settings)]
      return (await sql.query(putStatement, values)).length > 0
    },
    /** False when no batch has the id. */
    setBatchStatus: async (id: string, status: StoredBatchStatus): Promise<boolean> =>
      (await sql.query(statusStatement, [id, status])).length > 0,
    batches: async (): Promise<StoredBatch[]> => {
      const rows = await sql.query<BatchColumns>(listStatement)
      return rows.map(({ id, epoch, status, settings, created_at }) => ({
        id,
        epoch,
        status,
        settings: JSON.parse(settings) as unknown,
        createdAt: created_at,
      }))
    },
  }
}

type BatchColumns = { id: string; epoch: number; status: StoredBatchStatus; settings: string; created_at: string }

const putStatement = `
INSERT INTO tag_batch AS b (id, epoch, status, settings) VALUES ($1, $2, $3, $4::jsonb)
ON CONFLICT (id) DO UPDATE SET settings = EXCLUDED.settings WHERE b.epoch = EXCLUDED.epoch RETURNING id`

const statusStatement = `
UPDATE tag_batch SET status = $2, status_at = CASE WHEN status = $2 THEN status_at ELSE clock_timestamp() END
WHERE id = $1 RETURNING id`

const listStatement =
  'SELECT id, epoch, status, settings::text AS settings, created_at FROM tag_batch ORDER BY created_at, id LIMIT 10000'
