/**
 * A tap from its query parameters to the item's twin (spec §4.4–§4.6): cryptogram, replay, then the chain. Every tap route asks here.
 * A tap is consumed before the chain is read, so that the retry after a 502 is the same tap; it is announced once, when first resolved.
 */
import type { Hex, Verdict } from '@touchstone/verdict'
import type { Verdicts } from '../asset/verdicts.ts'
import type { ServiceError } from '../errors.ts'
import { bindCookieName } from '../tap/presence.ts'
import type { TappedTag, TapRequest, TapResult } from '../tap/verify-tap.ts'

/** `uid` is 14 upper-case hex digits; `timestamp` is the record's, in unix seconds. */
export type Presented =
  | Exclude<TapResult, TappedTag>
  | { readonly kind: 'unbound'; readonly tag: TappedTag; readonly block: Block }
  | {
      readonly kind: 'resolved'
      readonly tag: TappedTag
      readonly block: Block
      readonly verdict: Verdict
      readonly timestamp: number
      readonly metadataHash: Hex | null
    }

/** `timestamp` is in unix seconds. */
type Block = { readonly number: bigint; readonly hash: Hex; readonly timestamp: bigint }

export type PresentTap = (request: TapRequest) => Promise<Presented>

/** It throws CHAIN_UNAVAILABLE after a genuine tap, INTERNAL when the ledger does not answer. */
export function createPresentTap({
  verifyTap,
  verdicts,
  announce,
  onRefused,
}: {
  readonly verifyTap: (request: TapRequest) => Promise<TapResult>
  readonly verdicts: Pick<Verdicts, 'byTag'>
  /** Tells those who listen that a bound item was tapped; called for every resolved answer, announces each tap once. */
  readonly announce: (tag: TappedTag, verdict: Verdict) => Promise<void>
  /** Why a tap did not count: for the log, never for the caller. */
  readonly onRefused: (kind: string, reason: string | undefined) => void
}): PresentTap {
  return async (request) => {
    const tag = await verifyTap(request)
    if (tag.kind !== 'tapped') {
      onRefused(tag.kind, tag.kind === 'counterfeit' ? tag.reason : undefined)
      return tag
    }
    const { block, twin } = await verdicts.byTag(tag.tagHash)
    if (twin === null) return { kind: 'unbound', tag, block }
    await announce(tag, twin.verdict)
    return { kind: 'resolved', tag, block, ...twin }
  }
}

/** A request that a browser or a link preview makes before anyone asked for it: it must not consume a tap (Fetch, `Sec-Purpose`). */
export function isPrefetch(header: (name: string) => string | undefined): boolean {
  return ['sec-purpose', 'purpose', 'x-moz'].some((name) => /\bprefetch\b|\bpreview\b/i.test(header(name) ?? ''))
}

/** What a tap route says while the verifier holds no keys, with status 503. */
export const notConfigured = 'This verifier holds no tag keys yet.'

/** What a tap route says to a prefetch, with status 503 and Retry-After. */
export const prefetchRefused = 'A tap is not verified in advance. Open the link itself.'

/** The form of nearly every request; anything else is parsed as a query. */
const asChipsWriteIt = /^picc=([0-9a-fA-F]{32})&cmac=([0-9a-fA-F]{16})$/

/** Every value of a query parameter of the raw query, so that a repeated one is seen. */
export function tapParameters(query: string): Pick<TapRequest, 'picc' | 'cmac'> {
  const [, picc, cmac] = asChipsWriteIt.exec(query) ?? []
  if (picc !== undefined && cmac !== undefined) return { picc, cmac }
  const values = new URLSearchParams(query.slice(0, 4_000))
  return { picc: values.getAll('picc'), cmac: values.getAll('cmac') }
}

/** What the client holds under TAP_BIND and TAP_CHALLENGE: cookies of a browser; an app may send the challenge as a header. */
export function tapTokens(
  header: (name: string) => string | undefined,
): Pick<TapRequest, 'bindToken' | 'challengeToken'> {
  const cookies = header('cookie')?.slice(0, 4_000)
  const valueOf = (pattern: RegExp) => (cookies === undefined ? undefined : pattern.exec(cookies)?.[1])
  return {
    bindToken: valueOf(bindCookie),
    challengeToken: valueOf(challengeCookie) ?? header('x-tap-challenge')?.slice(0, 200),
  }
}

const challengeCookieName = '__Host-tap-challenge'
const [bindCookie, challengeCookie] = [bindCookieName, challengeCookieName].map(
  (name) => new RegExp(`(?:^|;\\s*)${name}=([\\w.-]{1,200})(?:;|$)`),
) as [RegExp, RegExp]

/** The cookies of an answer; `__Host-` ties them to this host and TLS. They end with the browser. */
export function tapCookies(presented: Presented): string[] {
  const bind =
    presented.kind === 'challenge' ? presented.bindToken : 'tag' in presented ? presented.tag.bindToken : undefined
  const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax'
  return [
    ...(bind === undefined ? [] : [`${bindCookieName}=${bind}; ${attributes}`]),
    ...(presented.kind === 'challenge'
      ? [`${challengeCookieName}=${presented.token}; Max-Age=${presented.seconds}; ${attributes}`]
      : []),
  ]
}

/** Nothing of a tap is stored, and its address goes nowhere. */
export const tapHeaders = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' } as const

/** The failures of a tap route by code, as spec §7 words them. */
export function tapFailure(error: ServiceError): { readonly status: number; readonly error: string } {
  if (error.code === 'CHAIN_UNAVAILABLE')
    return { status: 502, error: 'The chip was read, but the chain could not be. Try the same link again.' }
  return { status: error.status, error: error.message }
}
