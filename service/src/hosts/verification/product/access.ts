/**
 * Access to the tiers of product passports (EN 18239) by an API key: `passport:interest` and `passport:authority`, which covers both. A key
 * without these scopes reads what the public reads. A key that is not valid is rejected before anything is looked up.
 */
import type { Context } from 'hono'
import { verbsOf } from '../../../access/rights.ts'
import type { AuthenticateKey } from '../../../access/api-keys.ts'
import type { ClientAddress } from '../../../http/client-ip.ts'
import type { Tier } from '../../../domain/product-details.ts'
import { headerReader, type Env, type Headers, type RequestHelpers } from '../request.ts'
import type { TierAccess } from './records.ts'
import { result } from './result.ts'

export type KeyAccess = {
  readonly authenticate: AuthenticateKey
  readonly clientAddress: ClientAddress
}

/** `access` is undefined for the public; `isKeyed` is set for every request with a key. */
export type Caller =
  | { readonly ok: true; readonly isKeyed: boolean; readonly access: TierAccess | undefined }
  | { readonly ok: false; readonly response: (headers: Headers) => Response }

/** Returns the reader of a request. Where the host has no API keys, everyone is the public. */
export async function callerOf(c: Context<Env>, helpers: RequestHelpers, keys: KeyAccess | undefined): Promise<Caller> {
  const header = headerReader(c)
  const authorization = header('authorization')
  if (keys === undefined || authorization === undefined || authorization === '')
    return { ok: true, isKeyed: false, access: undefined }
  const address = keys.clientAddress(c.env?.incoming?.socket.remoteAddress, header('x-forwarded-for'))
  const found = await keys.authenticate(authorization, helpers.clientOf(c), address)
  if (!found.ok) {
    const [reason, own] = rejections[found.because]
    return { ok: false, response: (headers) => result(reason, { ...headers, ...own }) }
  }
  const { scopes, brands } = found.key
  const tiers = tiersOf(verbsOf(scopes))
  return { ok: true, isKeyed: true, access: tiers.length === 0 ? undefined : { tiers, brands } }
}

function tiersOf(verbs: readonly string[]): readonly Tier[] {
  if (verbs.includes('passport:authority')) return ['interest', 'authority']
  return verbs.includes('passport:interest') ? ['interest'] : []
}

const wrongKey = ['badKey', { 'WWW-Authenticate': 'Bearer error="invalid_token"' }] as const // RFC 6750 §3
const rejections = {
  missing: wrongKey,
  wrong: wrongKey,
  elsewhere: ['keyElsewhere', {}],
  busy: ['tooManyKeys', { 'Retry-After': '60' }],
} as const
