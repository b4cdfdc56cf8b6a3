/**
 * GET {base_url}/api/verify: a tap and the asset of the tapped item (spec §2.7, §4.4). Clients branch on `verified`, never on the status.
 */
import type { Hex } from '@touchstone/verdict'
import type { Context, Hono } from 'hono'
import { chainId, chainTitle } from '../../../domain/chain.ts'
import { prefersPage } from '../../../http/accept.ts'
import { uncachedJson } from '../../../http/responses.ts'
import type { TapOutcome } from '../../../tap/resolve-tap.ts'
import { toTapPage } from '../pages/routes.ts'
import { headerReader, sendJson, type Env, type Headers, type RequestHelpers } from '../request.ts'
import { tapRoute, type TapRouteOptions } from '../tap-guard.ts'
import { busyFailure, notConfigured, tapCookies, type TapFailure } from '../tap-http.ts'

/** `contract` is the registry's address, EIP-55 checksummed. */
export type VerifyRoutes = TapRouteOptions & { readonly contract: string }

export function verifyRoutes(app: Hono<Env>, helpers: RequestHelpers, site: VerifyRoutes): void {
  tapRoute(
    app,
    helpers,
    { ...site, path: '/api/verify', instead: toPage },
    async ({ c, headers, resolve }) => {
      const outcome = await resolve()
      if (outcome.kind === 'malformed') return tapErrorResponse({ status: 400, error: outcome.error }, headers)
      if (outcome.kind === 'not_configured') return tapErrorResponse({ status: 503, error: notConfigured }, headers)
      if (outcome.kind === 'busy')
        return tapErrorResponse(busyFailure(outcome), { ...headers, 'Retry-After': String(outcome.seconds) })
      const cookies = tapCookies(outcome)
      const body = formatOutcome(outcome, site.contract)
      return sendJson(c, body, cookies.length === 0 ? headers : { ...headers, 'Set-Cookie': cookies })
    },
    tapErrorResponse,
  )
}

/** A browser gets a page: links of chips that were written with this path open it too. Nothing is consumed here. */
function toPage(c: Context<Env>): Response | undefined {
  if (c.req.method !== 'GET' || !prefersPage(headerReader(c)('accept') ?? null)) return undefined
  return toTapPage(c, 303, { Vary: 'Accept' })
}

/**
 * A tap that could not be judged is not verified either, so that clients branch on `verified` alone. A 429 judged none: it has one body,
 * whether the requests are used up or the searches.
 */
function tapErrorResponse({ status, error }: TapFailure, headers: Headers): Response {
  return uncachedJson(status, status === 429 ? { error } : { verified: false, error }, headers)
}

/** The request succeeded whatever the outcome of the tap, so the status is 200. A counterfeit has no detail. */
function formatOutcome(
  outcome: Exclude<TapOutcome, { kind: 'malformed' | 'not_configured' | 'busy' }>,
  contract: string,
): object {
  switch (outcome.kind) {
    case 'counterfeit':
    case 'replayed':
      return { verified: false, reason: outcome.kind }
    case 'challenge':
      return { verified: false, reason: 'tap_again', challenge: outcome.token, seconds: outcome.seconds }
    case 'unbound': {
      const { tag, block } = outcome
      const { uid, tapCounter } = tag
      return { verified: false, bound: false, uid, tapCounter, reason: 'unbound', chain: formatChain(contract, block) }
    }
    case 'resolved': {
      const { tag, block, verdict, timestamp, metadataHash } = outcome
      const { uid, tapCounter } = tag
      const asset = {
        tokenId: verdict.token_id,
        stateCode: verdict.state_code,
        lifecycleState: verdict.state,
        flagged: verdict.flagged,
        timestamp,
        ownerCommitment: verdict.owner_commitment,
        ...(verdict.untrusted && { untrusted: verdict.untrusted }),
      }
      return { verified: true, bound: true, uid, tapCounter, asset, metadataHash, chain: formatChain(contract, block) }
    }
  }
}

function formatChain(contract: string, { number, hash }: { readonly number: bigint; readonly hash: Hex }) {
  return { id: chainId, name: chainTitle, contract, blockNumber: Number(number), blockHash: hash } as const
}
