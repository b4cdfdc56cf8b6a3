/** API keys of GraphQL (spec §5): `ts_live_` and 256 random bits, of which only the SHA-256 is stored. */
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Sql } from '../db/database.ts'
import type { RateLimiter } from '../http/rate-limit/limiter.ts'
import { singleFlight } from '../lib/async/single-flight.ts'
import { constantTimeEqual } from '../lib/bytes.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { type Brands, type Scope, verbsOf } from './access/rights.ts'

/** `brands` are those whose products it reads and changes; null stands for all products. */
export type ApiKey = Readonly<{ id: string; name: string; scopes: readonly Scope[]; brands: Brands }>
type StoredApiKey = ApiKey & { readonly hash: Uint8Array }
type NewApiKey = Pick<StoredApiKey, 'hash' | 'name' | 'scopes'> & Partial<Pick<ApiKey, 'brands'>>
/** Times are those of the database, as text. */
export type ListedApiKey = ApiKey & Readonly<{ createdAt: string; lastUsedAt: string | null; revokedAt: string | null }>

/** `wrong` covers revoked keys; `busy` means that the client has tried too many unknown keys. */
type Authenticated =
  | { readonly ok: true; readonly key: ApiKey }
  | { readonly ok: false; readonly because: 'missing' | 'wrong' | 'busy' }

/** `authorization` is the value of the header or connection parameter; `client` identifies the quota of wrong keys. */
export type Authenticate = (authorization: string | undefined, client: string) => Promise<Authenticated>

const knownMs = 1_000
const touchMs = 60_000

/** Authenticates by the store, which is asked at most once a second per key: a revocation takes effect within a second. */
export function createAuthenticate({
  keys,
  attempts,
  log,
  now = () => performance.now(), // monotonic: a wall clock that is set back would extend the life of entries
}: {
  readonly keys: Pick<ApiKeyStore, 'find' | 'touch'>
  /** Left out: no limit. A key that is known consumes nothing. */
  readonly attempts?: RateLimiter | undefined
  readonly log: Log
  readonly now?: () => number
}): Authenticate {
  const known = new LRUCache<string, { readonly key: ApiKey; readonly askedAt: number }>({ max: 10_000 })
  const touched = new LRUCache<string, number>({ max: 10_000 })

  const lookUp = singleFlight(
    async (name: string, hash: Uint8Array): Promise<ApiKey | null> => {
      const askedAt = now()
      const row = await keys.find(hash)
      if (row === undefined || !constantTimeEqual(row.hash, hash)) {
        known.delete(name)
        return null
      }
      const { hash: _hash, ...key } = row
      known.set(name, { key, askedAt })
      return key
    },
    (name) => name,
  )

  function touch({ id }: ApiKey): void {
    const at = now()
    if (at - (touched.get(id) ?? -Infinity) < touchMs) return
    touched.set(id, at)
    keys.touch(id).catch((error: unknown) => log.warn('use of a key not noted', { key: id, reason: reasonOf(error) }))
  }

  return async (authorization, client) => {
    if (authorization === undefined || authorization === '') return { ok: false, because: 'missing' }
    const [, text] = /^Bearer +(ts_live_[A-Za-z0-9_-]{43})$/i.exec(authorization) ?? []
    if (text === undefined) return { ok: false, because: 'wrong' }
    const hash = apiKeyHash(text)
    const name = Buffer.from(hash).toString('base64')
    const kept = known.get(name)
    const isFresh = kept !== undefined && now() - kept.askedAt < knownMs
    if (kept === undefined && (await attempts?.take(client))?.allowed === false) return { ok: false, because: 'busy' }
    const key = isFresh ? kept.key : await lookUp(name, hash)
    if (key === null) return { ok: false, because: 'wrong' }
    touch(key)
    return { ok: true, key }
  }
}

/** Makes a key: the text, which is shown once, and the hash that is stored. */
export function newApiKey(): { readonly text: string; readonly hash: Uint8Array } {
  const text = `ts_live_${randomBytes(32).toString('base64url')}`
  return { text, hash: apiKeyHash(text) }
}

function apiKeyHash(text: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(text).digest())
}

export type ApiKeyStore = ReturnType<typeof apiKeyStore>

export function apiKeyStore(sql: Sql) {
  return {
    /** Stores a new key by its hash and returns its id. */
    async create({ hash, name, scopes, brands = null }: NewApiKey): Promise<string> {
      const id = newId()
      // A version without brands knows the aliases only: it must not take them from a key that is narrower than it can see.
      const granted = brands === null ? scopes : verbsOf(scopes)
      const values = [id, hash, name, granted, brands]
      await sql.query('insert into api_key (id, hash, name, scopes, brands) values ($1, $2, $3, $4, $5)', values)
      return id
    },
    /** Returns all keys, revoked ones too, the oldest first, without their hashes. */
    async list(): Promise<ListedApiKey[]> {
      return sql.query<ListedApiKey>(
        `select id, name, scopes, brands, ${utc('created_at')} as "createdAt", ${utc('last_used_at')} as "lastUsedAt",
           ${utc('revoked_at')} as "revokedAt"
         from api_key order by created_at, id`,
      )
    },
    /** Revokes a key for ever. Returns false when no active key has this id. */
    async revoke(id: string): Promise<boolean> {
      const revoked = await sql.query(
        'update api_key set revoked_at = clock_timestamp() where id = $1 and revoked_at is null returning id',
        [id],
      )
      return revoked.length > 0
    },
    /** Finds the active key with this hash. */
    async find(hash: Uint8Array): Promise<StoredApiKey | undefined> {
      const text = 'select id, name, scopes, brands, hash from api_key where hash = $1 and revoked_at is null'
      return (await sql.query<StoredApiKey>(text, [hash]))[0]
    },
    /** Returns those of the ids whose keys are active. */
    async active(ids: readonly string[]): Promise<string[]> {
      const text = 'select id from api_key where id = any($1) and revoked_at is null'
      return (await sql.query<{ id: string }>(text, [ids])).map(({ id }) => id)
    },
    /** Records that a key was used now. */
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
