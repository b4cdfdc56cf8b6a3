/**
 * What comes before a tap is looked at (spec §4.4, §4.5, §8): the budget, the method, the limit, prefetches. None of them uses a tap up.
 * The pages do the same in page-routes.ts, in words for people.
 */
import type { Context } from 'hono'
import type { RateLimiter } from '../http/rate-limit.ts'
import { budgetHeaders, failure, methodRefused } from '../http/respond.ts'
import { headersOf, limited, type Edge, type Env } from './edge.ts'
import { isPrefetch, prefetchRefused } from './present-tap.ts'

export type TapDoor =
  | { readonly isOpen: false; readonly refusal: Response }
  | {
      readonly isOpen: true
      /** Those of the route, with the budget: every later answer has them too. */
      readonly headers: Readonly<Record<string, string>>
      /** A request header by its lower-case name. */
      readonly header: (name: string) => string | undefined
    }

export const tapMethods = 'GET, OPTIONS'

/** `routeHeaders`: headers of every answer of the route. */
export async function tapDoor(
  c: Context<Env>,
  edge: Edge,
  {
    limiter,
    routeHeaders,
  }: { readonly limiter: RateLimiter | undefined; readonly routeHeaders: Readonly<Record<string, string>> },
): Promise<TapDoor> {
  const budget = await edge.take(c, limiter)
  const headers = { ...routeHeaders, ...budgetHeaders(budget) }
  const closed = (refusal: Response) => ({ isOpen: false, refusal }) as const
  if (c.req.method !== 'GET') return closed(methodRefused(tapMethods, headers)) // HEAD must not consume a tap
  if (budget?.allowed === false) return closed(limited(budget, headers))
  const header = headersOf(c)
  if (isPrefetch(header)) return closed(failure(503, { error: prefetchRefused }, { ...headers, 'Retry-After': '1' }))
  return { isOpen: true, headers, header }
}
