/** Which API keys still count (spec §5): what stays open longer than a request asks again and again. */
import type { Sql } from './database.ts'

/** Of these ids those that were not revoked. */
export const keysInForce =
  (sql: Sql) =>
  async (ids: readonly string[]): Promise<string[]> => {
    const rows = await sql.query<{ id: string }>('select id from api_key where id = any($1) and revoked_at is null', [
      ids,
    ])
    return rows.map(({ id }) => id)
  }
