/**
 * Whose request it is (spec §5): a key is looked up by its SHA-256 at most once a second, so that a revocation counts within a second
 * and a busy key costs nothing.
 */
import { timingSafeEqual } from 'node:crypto'
import { reasonOf } from '../errors.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import type { Log } from '../log.ts'
import { apiKeyHash, type ApiKey, type ApiKeyStore } from '../store/api-keys.ts'
import { createRecent } from './recent.ts'

/** `wrong` is also a revoked key; `busy` a client that tries too many keys. */
type Authenticated =
  | { readonly ok: true; readonly key: ApiKey }
  | { readonly ok: false; readonly because: 'missing' | 'wrong' | 'busy' }

/** `authorization` is the header's or connection parameter's value, `client` whose budget of wrong keys it draws on. */
export type Authenticate = (authorization: string | undefined, client: string) => Promise<Authenticated>

const knownMs = 1_000
const touchMs = 60_000

type Known = { readonly key: ApiKey; readonly askedAt: number }

export function createAuthenticate({
  keys,
  attempts,
  log,
  now = () => performance.now(), // a wall clock that is set back would make things last longer
}: {
  readonly keys: Pick<ApiKeyStore, 'find' | 'touch'>
  /** Left out: no limit. A key that was right before draws nothing. */
  readonly attempts?: RateLimiter | undefined
  readonly log: Log
  readonly now?: () => number
}): Authenticate {
  const known = createRecent<string, Known>(10_000)
  const touched = createRecent<string, number>(10_000)
  const flights = new Map<string, Promise<ApiKey | null>>()

  async function look(name: string, hash: Uint8Array): Promise<ApiKey | null> {
    const askedAt = now()
    const row = await keys.find(hash)
    if (row === undefined || !timingSafeEqual(row.hash, hash)) {
      known.delete(name)
      return null
    }
    const key = { id: row.id, name: row.name, scopes: row.scopes }
    known.set(name, { key, askedAt })
    return key
  }

  function touch({ id }: ApiKey): void {
    const at = now()
    const last = touched.get(id)
    if (last !== undefined && at - last < touchMs) return
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
    const flight = isFresh ? kept.key : (flights.get(name) ?? look(name, hash).finally(() => flights.delete(name)))
    if (flight instanceof Promise) flights.set(name, flight)
    const key = await flight
    if (key === null) return { ok: false, because: 'wrong' }
    touch(key)
    return { ok: true, key }
  }
}
