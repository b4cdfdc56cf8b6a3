/**
 * The guard of tap routes for programs (spec §4.4, §4.5, §8): quota, method, limit and prefetches come before a tap is consumed.
 * Pages have the same order in pages/routes.ts, with texts for people.
 */
import type { Context, Hono } from 'hono'
import { quotaHeaders, methodRefused, preflight } from '../../http/responses.ts'
import { resolveTapFor, type ForgeryLimiter, type ResolveTap, type TapOutcome } from '../../tap/resolve-tap.ts'
import type { TapRequest } from '../../tap/verify-tap.ts'
import { parseTapParameters } from '../../tap/parameters.ts'
import {
  headerReader,
  rateLimited,
  rawQuery,
  type Env,
  type Headers,
  type RequestHelpers,
  type RouteSite,
} from './request.ts'
import {
  getTapTokens,
  isPrefetch,
  prefetchRefused,
  tapCookies,
  tapCookiesOfFault,
  tapFailure,
  tapHeaders,
  type TapFailure,
} from './tap-http.ts'

export type TapRouteOptions = RouteSite & {
  readonly resolveTap: ResolveTap
  readonly forgeryLimiter?: ForgeryLimiter | undefined
}

type TapRoute = TapRouteOptions & {
  readonly path: string
  readonly headers?: Headers
  readonly methods?: string
  /** Returns an answer that consumes neither tap nor quota; undefined for all other requests. */
  readonly instead?: (c: Context<Env>) => Response | undefined
}

/** A request with a tap that is not consumed yet. */
export type TapVisit = {
  readonly c: Context<Env>
  /** Headers of the route, with the quota, for every response. */
  readonly headers: Headers
  /** Returns a request header by its lower-case name. */
  readonly header: (name: string) => string | undefined
  readonly parameters: Pick<TapRequest, 'picc' | 'cmac'>
  /** Consumes the tap, except for HEAD, which learns what a GET would. */
  readonly resolve: () => Promise<TapOutcome>
}

/** Adds a tap route at a path, or below it when it ends with a slash. `reject` words an exception of `answer`. */
export function tapRoute(
  app: Hono<Env>,
  helpers: RequestHelpers,
  { path, tapLimiter, headers: own, methods = 'GET, OPTIONS', instead, ...site }: TapRoute,
  answer: (visit: TapVisit) => Promise<Response>,
  reject: (failure: TapFailure, headers: Headers) => Response,
): void {
  const pattern = path.endsWith('/') ? `${path}*` : path
  app.options(pattern, () => preflight(methods))
  app.all(pattern, async (c) => {
    if (!c.req.path.startsWith(path)) return c.notFound() // the pattern also matches without the slash
    const other = instead?.(c)
    if (other !== undefined) return other
    const quota = await helpers.consume(c, tapLimiter)
    const headers = { ...tapHeaders, ...own, ...quotaHeaders(quota) }
    const isHead = c.req.method === 'HEAD'
    if (!methods.split(', ').includes(c.req.method)) return methodRefused(methods, headers)
    if (quota?.allowed === false) return rateLimited(quota, headers)
    const header = headerReader(c)
    if (isPrefetch(header)) return reject({ status: 503, error: prefetchRefused }, { ...headers, 'Retry-After': '1' })
    const parameters = parseTapParameters(rawQuery(c))
    let outcome: TapOutcome | undefined
    const resolve = async () => {
      const request = { ...parameters, ...getTapTokens(header), country: helpers.countryOf(c), consume: !isHead }
      return (outcome = await resolveTapFor(helpers.clientOf(c), site, request))
    }
    try {
      return await answer({ c, headers, header, parameters, resolve })
    } catch (error) {
      const response = reject(tapFailure(helpers.faultOf(error, c)), headers)
      const cookies = outcome === undefined ? tapCookiesOfFault(error) : tapCookies(outcome)
      for (const cookie of isHead ? [] : cookies) response.headers.append('Set-Cookie', cookie)
      return response
    }
  })
}
