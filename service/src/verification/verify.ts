/**
 * GET {base_url}/api/verify: a tap and the item's twin (spec §2.7, §4.4). Clients branch on `verified`, never on the status.
 */
import type { Hono } from 'hono'
import type { RateLimiter } from '../http/rate-limit.ts'
import { budgetHeaders, failure, methodRefused, openToAll, preflight } from '../http/respond.ts'
import { limited, rawQuery, type Edge, type Env } from './edge.ts'
import {
  isPrefetch,
  prefetchRefused,
  tapCookies,
  tapFailure,
  tapHeaders,
  tapParameters,
  tapTokens,
  type Presented,
  type PresentTap,
} from './present-tap.ts'

export type VerifyRoutes = {
  readonly presentTap: PresentTap
  /** The registry's address, EIP-55 checksummed. */
  readonly contract: string
  readonly tapLimiter?: RateLimiter | undefined
}

export function verifyRoutes(app: Hono<Env>, edge: Edge, { presentTap, contract, tapLimiter }: VerifyRoutes): void {
  app.options('/api/verify', () => preflight('GET, OPTIONS'))
  app.all('/api/verify', async (c) => {
    const budget = edge.take(c, tapLimiter)
    const headers = { ...tapHeaders, ...budgetHeaders(budget) }
    if (c.req.method !== 'GET') return methodRefused('GET, OPTIONS', headers) // HEAD must not consume a tap
    if (budget?.allowed === false) return limited(budget, headers)
    const header = (name: string) => c.req.header(name)
    if (isPrefetch(header)) return failure(503, { error: prefetchRefused }, { ...headers, 'Retry-After': '1' })
    try {
      const presented = await presentTap({ ...tapParameters(rawQuery(c)), ...tapTokens(header) })
      return verifyResponse(presented, contract, headers)
    } catch (error) {
      const { status, error: text } = tapFailure(edge.faultOf(error))
      return failure(status, { error: text }, headers)
    }
  })
}

/** What the caller should do is said in `error`; why a chip is counterfeit is not said at all. */
function verifyResponse(
  presented: Presented,
  contract: string,
  headers: Readonly<Record<string, string>>,
): Response {
  const response = answerTo(presented, contract, headers)
  for (const cookie of tapCookies(presented)) response.headers.append('Set-Cookie', cookie)
  return response
}

function answerTo(presented: Presented, contract: string, headers: Readonly<Record<string, string>>): Response {
  switch (presented.kind) {
    case 'malformed':
      return failure(400, { error: presented.error }, headers)
    case 'not_configured':
      return failure(503, { error: 'This verifier holds no tag keys yet.' }, headers)
    case 'counterfeit':
      return answer({ verified: false, reason: 'counterfeit' }, headers)
    case 'replayed':
      return answer({ verified: false, reason: 'replayed' }, headers)
    case 'challenge':
      return answer(
        { verified: false, reason: 'tap_again', challenge: presented.token, seconds: presented.seconds },
        headers,
      )
    case 'unbound': {
      const { tag, block } = presented
      return answer(
        {
          verified: false,
          bound: false,
          uid: tag.uid,
          tapCounter: tag.tapCounter,
          reason: 'unbound',
          chain: chainOf(contract, block),
        },
        headers,
      )
    }
    case 'resolved': {
      const { tag, block, verdict, timestamp, metadataHash } = presented
      const asset = {
        tokenId: verdict.token_id,
        stateCode: verdict.state_code,
        lifecycleState: verdict.state,
        flagged: verdict.flagged,
        timestamp,
        ownerCommitment: verdict.owner_commitment,
        ...(verdict.untrusted && { untrusted: verdict.untrusted }),
      }
      const { uid, tapCounter } = tag
      return answer(
        { verified: true, bound: true, uid, tapCounter, asset, metadataHash, chain: chainOf(contract, block) },
        headers,
      )
    }
  }
}

function chainOf(contract: string, { number, hash }: { readonly number: bigint; readonly hash: string }) {
  return { id: 84532, name: 'Base Sepolia', contract, blockNumber: Number(number), blockHash: hash }
}

function answer(body: object, headers: Readonly<Record<string, string>>): Response {
  return new Response(JSON.stringify(body), {
    headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff', ...openToAll, ...headers },
  })
}
