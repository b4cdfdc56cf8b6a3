/**
 * GET {base_url}/api/verify: a tap and the item's twin (spec §2.7, §4.4). Clients branch on `verified`, never on the status.
 */
import type { Hex } from '@touchstone/verdict'
import type { Hono } from 'hono'
import type { TapAnswer } from '../agents/schemas/rest.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { failure, preflight } from '../http/respond.ts'
import { rawQuery, written, type Edge, type Env } from './edge.ts'
import {
  notConfigured,
  tapCookies,
  tapFailure,
  tapHeaders,
  tapParameters,
  tapTokens,
  type Presented,
  type PresentTap,
} from './present-tap.ts'
import { tapDoor, tapMethods } from './tap-door.ts'

export type VerifyRoutes = {
  readonly presentTap: PresentTap
  /** The registry's address, EIP-55 checksummed. */
  readonly contract: string
  readonly tapLimiter?: RateLimiter | undefined
}

export function verifyRoutes(app: Hono<Env>, edge: Edge, { presentTap, contract, tapLimiter }: VerifyRoutes): void {
  app.options('/api/verify', () => preflight(tapMethods))
  app.all('/api/verify', async (c) => {
    const door = await tapDoor(c, edge, { limiter: tapLimiter, routeHeaders: tapHeaders })
    if (!door.isOpen) return door.refusal
    const { headers, header } = door
    try {
      const presented = await presentTap({ ...tapParameters(rawQuery(c)), ...tapTokens(header) })
      if (presented.kind === 'malformed') return failure(400, { error: presented.error }, headers)
      if (presented.kind === 'not_configured') return failure(503, { error: notConfigured }, headers)
      const cookies = tapCookies(presented)
      return written(
        c,
        bodyOf(presented, contract),
        cookies.length === 0 ? headers : { ...headers, 'Set-Cookie': cookies },
      )
    } catch (error) {
      const { status, error: text } = tapFailure(edge.faultOf(error, c))
      return failure(status, { error: text }, headers)
    }
  })
}

/** Why a chip is counterfeit is not said at all. Whatever became of the chip, the request succeeded: 200. */
function bodyOf(presented: Exclude<Presented, { kind: 'malformed' | 'not_configured' }>, contract: string): TapAnswer {
  switch (presented.kind) {
    case 'counterfeit':
    case 'replayed':
      return { verified: false, reason: presented.kind }
    case 'challenge':
      return { verified: false, reason: 'tap_again', challenge: presented.token, seconds: presented.seconds }
    case 'unbound': {
      const { tag, block } = presented
      const { uid, tapCounter } = tag
      return { verified: false, bound: false, uid, tapCounter, reason: 'unbound', chain: chainOf(contract, block) }
    }
    case 'resolved': {
      const { tag, block, verdict, timestamp, metadataHash } = presented
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
      return { verified: true, bound: true, uid, tapCounter, asset, metadataHash, chain: chainOf(contract, block) }
    }
  }
}

function chainOf(contract: string, { number, hash }: { readonly number: bigint; readonly hash: Hex }) {
  return { id: 84532, name: 'Base Sepolia', contract, blockNumber: Number(number), blockHash: hash } as const
}
