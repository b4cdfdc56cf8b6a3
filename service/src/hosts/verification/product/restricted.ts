/**
 * GET {base_url}/api/restricted/{hash}: the document of an access tier as it was hashed, for recomputation: keccak256 of these bytes. Only a
 * key of the tier gets it; to any other caller every hash is unknown. A key with brands reads elements in passports only, because a hash
 * names no brand.
 */
import type { Hex } from '@touchstone/verdict'
import type { Hono } from 'hono'
import type { RestrictedStore } from '../../../passport/public/restricted-store.ts'
import { fileHeaders } from '../routes/metadata.ts'
import { readRoute, type Env, type RequestHelpers, type RouteSite } from '../request.ts'
import { callerOf, type KeyAccess } from './access.ts'
import { faultResult, result } from './result.ts'

export type RestrictedRoutes = RouteSite & {
  readonly restrictedDetails?: Pick<RestrictedStore, 'get'> | undefined
  readonly keyAccess?: KeyAccess | undefined
}

const prefix = '/api/restricted/'

export function restrictedRoutes(
  app: Hono<Env>,
  helpers: RequestHelpers,
  { restrictedDetails, keyAccess, limiter }: RestrictedRoutes,
): void {
  const own = { Vary: 'Authorization' }
  readRoute(app, helpers, { prefix, limiter, headers: own, reject: faultResult }, async (c, headers) => {
    const caller = await callerOf(c, helpers, keyAccess)
    if (!caller.ok) return caller.response(headers)
    if (!caller.isKeyed) return result('noKey', { ...headers, 'WWW-Authenticate': 'Bearer' })
    if (caller.access === undefined) return result('noTier', headers)
    const hash = c.req.path.slice(prefix.length)
    if (!/^0x[0-9a-f]{64}$/.test(hash)) return result('badHash', headers)
    const { tiers, brands } = caller.access
    const found = brands === null ? await restrictedDetails?.get(hash as Hex, tiers) : null
    if (found === null || found === undefined) return result('noDocument', headers)
    return new Response(found.body, { headers: { ...headers, ...fileHeaders, 'Cache-Control': 'private, no-store' } })
  })
}
