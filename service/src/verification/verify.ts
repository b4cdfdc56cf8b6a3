/**
 * GET {base_url}/api/verify: a tap and the item's twin (spec §2.7, §4.4). Clients branch on `verified`, never on the status.
 */
import { failure, openToAll } from '../http/respond.ts'
import { prefetchRefused, tapCookies, tapHeaders, type Presented } from './present-tap.ts'

/** What the caller should do is said in `error`; why a chip is counterfeit is not said at all. */
export function verifyResponse(
  presented: Presented,
  contract: string,
  headers: Readonly<Record<string, string>>,
): Response {
  const response = answerTo(presented, contract, headers)
  for (const cookie of tapCookies(presented)) response.headers.append('Set-Cookie', cookie)
  return response
}

function answerTo(presented: Presented, contract: string, headers: Readonly<Record<string, string>>): Response {
  const all = { ...tapHeaders, ...headers }
  switch (presented.kind) {
    case 'malformed':
      return failure(400, { error: presented.error }, all)
    case 'not_configured':
      return failure(503, { error: 'This verifier holds no tag keys yet.' }, all)
    case 'counterfeit':
      return answer({ verified: false, reason: 'counterfeit' }, all)
    case 'replayed':
      return answer({ verified: false, reason: 'replayed' }, all)
    case 'challenge':
      return answer(
        { verified: false, reason: 'tap_again', challenge: presented.token, seconds: presented.seconds },
        all,
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
        all,
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
        all,
      )
    }
  }
}

/** The answer to a prefetch: nothing was consumed. */
export function verifyPrefetch(headers: Readonly<Record<string, string>>): Response {
  return failure(503, { error: prefetchRefused }, { ...tapHeaders, 'Retry-After': '1', ...headers })
}

function chainOf(contract: string, { number, hash }: { readonly number: bigint; readonly hash: string }) {
  return { id: 84532, name: 'Base Sepolia', contract, blockNumber: Number(number), blockHash: hash }
}

function answer(body: object, headers: Readonly<Record<string, string>>): Response {
  return new Response(JSON.stringify(body), {
    headers: { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff', ...openToAll, ...headers },
  })
}
