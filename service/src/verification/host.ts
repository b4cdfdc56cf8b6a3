/**
 * The verification host {base_url}: its routes, its limits, and how its failures look (spec §4.1, §7, §8).
 */
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { Hono, type Context } from 'hono'
import type { RequestListener } from 'node:http'
import type { ProofBundles } from '../asset/proof-bundle.ts'
import type { Verdicts } from '../asset/verdicts.ts'
import { reasonOf, ServiceError } from '../errors.ts'
import type { ClientKey } from '../http/client-key.ts'
import type { Budget, RateLimiter } from '../http/rate-limit.ts'
import { budgetHeaders, failure, methodRefused, preflight } from '../http/respond.ts'
import type { Log } from '../log.ts'
import { isPrefetch, tapFailure, tapHeaders, tapParameters, tapTokens, type PresentTap } from './present-tap.ts'
import { verifyPrefetch, verifyResponse } from './verify.ts'
import { assetFailure, assetPrefix, assetResponse, parseAssetPath, proofResponse } from './asset.ts'
import { fastPath } from './fast-path.ts'

export type VerificationHost = {
  readonly verdicts: Verdicts
  /** Left out: the proof route does not exist (it is opt-in). */
  readonly proofs?: ProofBundles | undefined
  readonly presentTap: PresentTap
  /** The registry's address, EIP-55 checksummed. */
  readonly contract: string
  /** Left out: no limit. Keyless reads and taps have budgets of their own. */
  readonly limiter?: RateLimiter | undefined
  readonly tapLimiter?: RateLimiter | undefined
  readonly clientKey: ClientKey
  readonly log: Log
}

type Env = { Bindings: Partial<HttpBindings> }

/** The routes as a Hono app; `app.request()` asks it without a socket. */
export function verificationHost({
  verdicts,
  proofs,
  presentTap,
  contract,
  limiter,
  tapLimiter,
  clientKey,
  log,
}: VerificationHost): Hono<Env> {
  const app = new Hono<Env>({ getPath: rawPath, strict: true })
  const take = (c: Context<Env>, from = limiter) =>
    from?.take(clientKey(c.env?.incoming?.socket.remoteAddress, c.req.header('x-forwarded-for')))

  app.options(`${assetPrefix}*`, () => preflight('GET, HEAD, OPTIONS'))
  app.all(`${assetPrefix}*`, async (c) => {
    if (!c.req.path.startsWith(assetPrefix)) return nothingHere()
    const budget = take(c)
    if (!['GET', 'HEAD'].includes(c.req.method)) return methodRefused('GET, HEAD, OPTIONS', budgetHeaders(budget))
    try {
      return await answerAsset(c, budget)
    } catch (error) {
      return assetFailure(asFailure(error, log), budget)
    }
  })
  app.options('/api/verify', () => preflight('GET, OPTIONS'))
  app.all('/api/verify', async (c) => {
    const budget = take(c, tapLimiter)
    const headers = budgetHeaders(budget)
    if (c.req.method !== 'GET') return methodRefused('GET, OPTIONS', headers)
    if (budget?.allowed === false)
      return failure(429, { error: tooMany(budget) }, { ...headers, 'Retry-After': String(budget.resetSeconds) })
    if (isPrefetch((name) => c.req.header(name))) return verifyPrefetch(headers)
    try {
      const presented = await presentTap({ ...tapParameters(queryOf(c)), ...tapTokens((name) => c.req.header(name)) })
      return verifyResponse(presented, contract, headers)
    } catch (error) {
      const { status, error: text } = tapFailure(asFailure(error, log))
      return failure(status, { error: text }, { ...tapHeaders, ...headers })
    }
  })
  app.notFound(() => nothingHere())
  app.onError((error) => failure(500, { error: asFailure(error, log).message }))

  async function answerAsset(c: Context<Env>, budget: Budget | undefined): Promise<Response> {
    if (budget?.allowed === false) throw new ServiceError('RATE_LIMITED', tooMany(budget))
    const path = parseAssetPath(c.req.path)
    if (path.kind === 'invalid')
      throw new ServiceError(
        'INVALID_TOKEN_ID',
        'The token id must be a decimal integer from 0 to 2^256-1, in digits only, such as /api/asset/42.',
      )
    if (path.kind === 'verdict') return assetResponse(verdicts, path.tokenId, c.req.header('if-none-match'), budget)
    if (path.kind === 'proof' && proofs !== undefined) return proofResponse(proofs, path.tokenId, budget)
    return nothingHere(budgetHeaders(budget))
  }
  return app
}

function tooMany({ resetSeconds }: Budget): string {
  return `Too many requests. Send the next one in ${resetSeconds} s.`
}

/** The raw query, undecoded; logs never see it. */
function queryOf(c: Context<Env>): string {
  return (c.env?.incoming?.url ?? c.req.url).split('?').slice(1).join('?')
}

function nothingHere(headers?: Record<string, string>): Response {
  return failure(404, { error: 'There is nothing at this path. A verdict is at /api/asset/{tokenId}.' }, headers)
}

/** The host as a listener of `node:http`, with the fast path in front. */
export function verificationListener(host: VerificationHost): RequestListener {
  const app = verificationHost(host)
  const router = getRequestListener((request, env) => app.fetch(request, env), { overrideGlobalObjects: false })
  return fastPath(host, (request, response) => void router(request, response))
}

/** The path as it came over the wire: URL parsers remove dot segments and decode. */
function rawPath(request: Request, options?: { env?: Env['Bindings'] }): string {
  const target = options?.env?.incoming?.url ?? new URL(request.url).pathname
  return target.split('?', 1)[0] ?? '/'
}

/** Faults of the closed list pass; anything else is INTERNAL, its reason for the log only. */
function asFailure(error: unknown, log: Log): ServiceError {
  if (error instanceof ServiceError) {
    if (error.status >= 500) log.warn('request failed', { code: error.code, reason: reasonOf(error.cause) })
    return error
  }
  log.error('request failed', { code: 'INTERNAL', reason: reasonOf(error) })
  return new ServiceError('INTERNAL', 'The request failed unexpectedly. Try it again.', { cause: error })
}
