/**
 * API keys of GraphQL (spec §5): `ts_live_` and 256 random bits, of which only the SHA-256 is kept. A revoked key stays listed.
 */
import { createHash, randomBytes, randomInt } from 'node:crypto'
import type { Sql } from './database.ts'

export const scopes = ['read', 'write'] as const
export type Scope = (typeof scopes)[number]

/** Who asks. */
export type ApiKey = Readonly<{ id: string; name: string; scopes: readonly Scope[] }>
/** Times are those of the database, as text. */
export type ListedApiKey = ApiKey & Readonly<{ createdAt: string; lastUsedAt: string | null; revokedAt: string | null }>

/** A new key, to be shown once, and what is kept of it. */
export function newApiKey(): { readonly text: string; readonly hash: Uint8Array } {
  const text = `ts_live_${randomBytes(32).toString('base64url')}`
  return { text, hash: apiKeyHash(text) }
}

export function apiKeyHash(text: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(text).digest())
}

export type ApiKeyStore = ReturnType<typeof apiKeyStore>

export function apiKeyStore(sql: Sql) {
  return {
    /** Keeps a new key by its hash and gives its id. */
    async create(key: { readonly hash: Uint8Array; readonly name: string; readonly scopes: readonly Scope[] }) {
      const id = newId()
      await sql.query('insert into api_key (id, hash, name, scopes) values ($1, $2, $3, $4)', [
        id,
        key.hash,
        key.name,
        [...key.scopes],
      ])
      return id
    },
    /** All keys, the oldest first; never a hash. */
    async list(): Promise<ListedApiKey[]> {
      return sql.query<ListedApiKey>(
        `select id, name, scopes, ${utc('created_at')} as "createdAt", ${utc('last_used_at')} as "lastUsedAt",
           ${utc('revoked_at')} as "revokedAt"
         from api_key order by created_at, id`,
      )
    },
    /** Ends a key for ever; false when there is none with this id that is in force. */
    async revoke(id: string): Promise<boolean> {
      const ended = await sql.query(
        'update api_key set revoked_at = clock_timestamp() where id = $1 and revoked_at is null returning id',
        [id],
      )
      return ended.length > 0
    },
    /** The key in force with this hash. */
    async find(hash: Uint8Array): Promise<(ApiKey & { readonly hash: Uint8Array }) | undefined> {
      const [row] = await sql.query<ApiKey & { readonly hash: Uint8Array }>(
        'select id, name, scopes, hash from api_key where hash = $1 and revoked_at is null',
        [hash],
      )
      return row
    },
    /** Notes that a key was used now. */
    async touch(id: string): Promise<void> {
      await sql.query('update api_key set last_used_at = clock_timestamp() where id = $1', [id])
    },
  }
}

function newId(): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
  return Array.from({ length: 8 }, () => letters[randomInt(letters.length)]).join('')
}

const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`
