/** API keys of GraphQL and product passports (spec §5): `ts_live_` and 256 random bits, of which only the SHA-256 is stored. */
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type Actor, appendAudit, auditText, localActor } from '../db/audit.ts'
import type { Database, Sql } from '../db/database.ts'
import { createTrust } from '../http/client-ip.ts'
import type { RateLimiter } from '../http/rate-limit/limiter.ts'
import { createAgeClock } from '../lib/async/age-clock.ts'
import { singleFlight } from '../lib/async/single-flight.ts'
import { constantTimeEqual } from '../lib/bytes.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { type Brands, type Scope, verbsOf } from './rights.ts'

/** `brands` are those whose products it reads and changes; null stands for all products. */
export type ApiKey = Readonly<{ id: string; name: string; scopes: readonly Scope[]; brands: Brands }>
/** `networks` are the addresses and CIDR ranges that may use it; null stands for all. */
type StoredApiKey = ApiKey & Readonly<{ hash: Uint8Array; networks: readonly string[] | null }>
/** `expiresAt` is in unix milliseconds. */
type NewApiKey = Pick<StoredApiKey, 'hash' | 'name' | 'scopes'> &
  Partial<Pick<StoredApiKey, 'brands' | 'networks'> & Readonly<{ expiresAt: number | null }>>
/** Times are those of the database, as text. */
export type ListedApiKey = Omit<StoredApiKey, 'hash'> &
  Readonly<{ createdAt: string; expiresAt: string | null; lastUsedAt: string | null; revokedAt: string | null }>

/**
 * `wrong` covers revoked and expired keys, `elsewhere` those that may not be used from this address. `busy` means that the client has tried
 * too many unknown keys.
 */
type Authenticated =
  | { readonly ok: true; readonly key: ApiKey }
  | { readonly ok: false; readonly because: 'missing' | 'wrong' | 'elsewhere' | 'busy' }

/** `authorization` is the value of the header or connection parameter; `client` identifies the quota of wrong keys. */
export type AuthenticateKey = (
  authorization: string | undefined,
  client: string,
  address: string,
) => Promise<Authenticated>

const knownMs = 1_000
const touchMs = 60_000
/** Unknown keys of one client that are looked up at one time. Requests with the same key share one look-up. */
const mostLookUps = 100
/** A client that has tried too many unknown keys has one looked up in so many ms. Another program behind its address may send a right one. */
const busyMs = 100

/** Authenticates by the store, which is asked at most once a second per key. A revocation takes effect within a second. */
export function createKeyAuthentication({
  keys,
  attempts,
  log,
  now = createAgeClock(),
}: {
  readonly keys: Pick<ApiKeyStore, 'find' | 'touch'>
  /** Left out: no limit. A right key consumes nothing. */
  readonly attempts?: RateLimiter | undefined
  readonly log: Log
  readonly now?: () => number
}): AuthenticateKey {
  const known = new LRUCache<string, KnownKey>({ max: 10_000 })
  const touched = new LRUCache<string, number>({ max: 10_000 })
  /** The number of look-ups of unknown keys that are under way, by client. */
  const underway = new Map<string, number>()
  /** The moment of the last look-up for each client that has tried too many unknown keys. */
  const lookedUp = new LRUCache<string, number>({ max: 10_000 })

  const lookUp = singleFlight(
    async (name: string, hash: Uint8Array, client: string): Promise<KnownKey | 'wrong' | 'busy'> => {
      if (known.has(name)) return find(name, hash)
      const before = underway.get(client) ?? 0
      if (before >= mostLookUps) return 'busy'
      if (attempts?.exhausted(client) !== undefined) {
        if (now() - (lookedUp.get(client) ?? -Infinity) < busyMs) return 'busy'
        lookedUp.set(client, now())
      }
      underway.set(client, before + 1)
      try {
        const found = await find(name, hash)
        return found === 'wrong' && (await attempts?.take(client))?.allowed === false ? 'busy' : found
      } finally {
        const left = (underway.get(client) ?? 1) - 1
        if (left > 0) underway.set(client, left)
        else underway.delete(client)
      }
    },
    (name) => name,
  )

  async function find(name: string, hash: Uint8Array): Promise<KnownKey | 'wrong'> {
    const askedAt = now()
    const row = await keys.find(hash)
    if (row === undefined || !constantTimeEqual(row.hash, hash)) {
      known.delete(name)
      return 'wrong'
    }
    const { hash: _hash, networks, ...key } = row
    const found = { key, isWithin: networks === null ? () => true : createTrust(networks), askedAt }
    known.set(name, found)
    return found
  }

  function touch({ id }: ApiKey): void {
    const at = now()
    if (at - (touched.get(id) ?? -Infinity) < touchMs) return
    touched.set(id, at)
    keys.touch(id).catch((error: unknown) => log.warn('use of a key not noted', { key: id, reason: reasonOf(error) }))
  }

  return async (authorization, client, address) => {
    if (authorization === undefined || authorization === '') return { ok: false, because: 'missing' }
    const [, text] = /^Bearer +(ts_live_[A-Za-z0-9_-]{43})$/i.exec(authorization) ?? []
    if (text === undefined) return { ok: false, because: 'wrong' }
    const hash = apiKeyHash(text)
    const name = Buffer.from(hash).toString('base64')
    const kept = known.get(name)
    const began = now()
    const isFresh = ({ askedAt }: KnownKey) => askedAt >= began || now() - askedAt < knownMs
    let found = kept !== undefined && isFresh(kept) ? kept : await lookUp(name, hash, client)
    // A look-up of another request may have begun before a revocation.
    if (typeof found !== 'string' && !isFresh(found)) found = await lookUp(name, hash, client)
    if (typeof found === 'string') return { ok: false, because: found }
    if (!found.isWithin(address)) return { ok: false, because: 'elsewhere' }
    touch(found.key)
    return { ok: true, key: found.key }
  }
}

/** `askedAt` is the moment when its look-up began. */
type KnownKey = Readonly<{ key: ApiKey; isWithin: (address: string) => boolean; askedAt: number }>

/** Makes a key: the text, which is shown once, and the hash that is stored. */
export function newApiKey(): { readonly text: string; readonly hash: Uint8Array } {
  const text = `ts_live_${randomBytes(32).toString('base64url')}`
  return { text, hash: apiKeyHash(text) }
}

function apiKeyHash(text: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(text).digest())
}

export type ApiKeyStore = ReturnType<typeof apiKeyStore>

export function apiKeyStore(sql: Pick<Database, 'query' | 'transaction'>) {
  return {
    /** Stores a new key by its hash and returns its id. */
    async create({ hash, name, scopes, brands = null, networks = null, expiresAt = null }: NewApiKey): Promise<string> {
      const id = randomId(8)
      // A version without these limits has the aliases only. It must not take them from a key that is narrower than it can see.
      const isLimited = brands !== null || networks !== null || expiresAt !== null
      const granted = isLimited ? verbsOf(scopes) : scopes
      const expiry = expiresAt === null ? null : new Date(expiresAt).toISOString()
      const after = { name, scopes: granted, brands, networks, expiresAt: expiry }
      await sql.transaction(async (tx) => {
        await tx.query(insertStatement, [id, hash, name, granted, brands, networks, expiry])
        await appendAudit(tx, auditText(localActor(), { act: 'key.create', subject: id, outcome: 'DONE', after }))
      })
      return id
    },
    /** Returns all keys, revoked ones too, the oldest first, without their hashes. */
    list: () =>
      sql.query<ListedApiKey>(
        `select id, name, scopes, brands, networks, ${utc('expires_at')} as "expiresAt", ${utc('created_at')} as "createdAt", ${utc('last_used_at')} as "lastUsedAt",
           ${utc('revoked_at')} as "revokedAt"
         from api_key order by created_at, id`,
      ),
    /** Revokes a key for ever. Returns false when no active key has this id. */
    revoke: (id: string): Promise<boolean> => sql.transaction((tx) => revokeApiKey(tx, id, localActor())),
    /** Finds the active key with this hash. */
    async find(hash: Uint8Array): Promise<StoredApiKey | undefined> {
      const text = `select id, name, scopes, brands, networks, hash from api_key where hash = $1 and ${isActive}`
      return (await sql.query<StoredApiKey>(text, [hash]))[0]
    },
    /** Returns those of the ids whose keys are active. */
    async active(ids: readonly string[]): Promise<string[]> {
      const text = `select id from api_key where id = any($1) and ${isActive}`
      return (await sql.query<{ id: string }>(text, [ids])).map(({ id }) => id)
    },
    /** Records that a key was used now. */
    async touch(id: string): Promise<void> {
      await sql.query('update api_key set last_used_at = clock_timestamp() where id = $1', [id])
    },
  }
}

/** Returns random lower-case letters and digits, for ids that are read aloud and typed. 8 of them have 41 bits. */
export function randomId(length: number): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
  return Array.from({ length }, () => letters[randomInt(letters.length)]).join('')
}

/** Revokes a key for ever, in a transaction of the caller. Returns false when no active key has this id. */
export async function revokeApiKey(tx: Sql, id: string, by: Actor): Promise<boolean> {
  const [revoked] = await tx.query<{ name: string; scopes: string[] }>(
    'update api_key set revoked_at = clock_timestamp() where id = $1 and revoked_at is null returning name, scopes',
    [id],
  )
  if (revoked === undefined) return false
  await appendAudit(tx, auditText(by, { act: 'key.revoke', subject: id, outcome: 'DONE', before: revoked }))
  return true
}

const isActive = 'revoked_at is null and (expires_at > statement_timestamp()) is not false'

const insertStatement = `insert into api_key (id, hash, name, scopes, brands, networks, expires_at)
  values ($1, $2, $3, $4, $5, $6, $7::text::timestamptz)`

const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`
