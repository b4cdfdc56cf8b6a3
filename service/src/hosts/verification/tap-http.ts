/**
 * The HTTP side of a tap, for routes of programs and pages (spec §4.4, §4.5, §7). It has prefetches, cookies, headers, statuses and error
 * texts.
 */
import type { ServiceError } from '../../lib/errors.ts'
import { UnresolvedTap, type TapOutcome } from '../../tap/resolve-tap.ts'
import type { BindToken } from '../../tap/tap-tokens.ts'
import type { TapRequest } from '../../tap/verify-tap.ts'

/**
 * Returns whether a request is a prefetch or comes from a robot that previews links in messages. Fetch has `Sec-Purpose`; Safari sends
 * `X-Purpose`. Neither must consume a tap.
 */
export function isPrefetch(header: (name: string) => string | undefined): boolean {
  const isEarly = purposeHeaders.some((name) => /\bprefetch\b|\bpreview\b/i.test(header(name) ?? ''))
  return isEarly || previewRobots.test(header('user-agent')?.slice(0, 1_000) ?? '')
}

const purposeHeaders = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

/** Robots by the names in their User-Agent. iMessage names itself as those of Facebook and X. People in their apps have others. */
const previewRobots =
  /WhatsApp\/|Slackbot|Slack-ImgProxy|Twitterbot|facebookexternalhit|Facebot|meta-external(?:agent|fetcher)\/|Snap URL Preview|Bluesky Cardyb|Discordbot|TelegramBot|LinkedInBot|SkypeUriPreview|Mastodon\/|Iframely|Embedly|redditbot|Pinterestbot|Googlebot|Google-PageRenderer|bingbot|BingPreview|Applebot/i

/** Reads the bind tokens and that of TAP_CHALLENGE from the cookies. An app sends the challenge in `X-Tap-Challenge`. */
export function getTapTokens(
  header: (name: string) => string | undefined,
): Pick<TapRequest, 'bindTokens' | 'challengeToken'> {
  const cookies = header('cookie') ?? ''
  return {
    bindTokens: [...cookies.matchAll(bindCookie)].map(([, token = '']) => token),
    challengeToken: header('x-tap-challenge')?.slice(0, 200) ?? challengeCookie.exec(cookies)?.[1],
  }
}

const bindCookie = /(?:^|;\s*)__Host-tap-[\w-]{12}=([\w-]{43})(?=;|$)/g
const challengeCookieName = '__Host-tap-challenge'
const challengeCookie = new RegExp(`(?:^|;\\s*)${challengeCookieName}=([\\w.-]{1,200})(?=;|$)`)

/**
 * Formats the cookies of a response. `__Host-` ties them to this host and TLS. Each tap has a cookie of its own, named by its token, so that
 * a browser that taps another item keeps the first.
 */
export function tapCookies(answer: TapOutcome): string[] {
  if (answer.kind !== 'challenge') return 'tag' in answer ? bindCookies(answer.tag) : []
  return [
    ...bindCookies(answer),
    `${challengeCookieName}=${answer.token}; Max-Age=${answer.seconds}; ${cookieAttributes}`,
  ]
}

/** Formats the cookies of an answer to a fault. Under TAP_BIND the tap is lost without them, because it counts also when the chain cannot be read. */
export function tapCookiesOfFault(fault: unknown): string[] {
  return fault instanceof UnresolvedTap ? bindCookies(fault.tag) : []
}

function bindCookies({ bindToken }: { readonly bindToken?: BindToken }): string[] {
  if (bindToken === undefined) return []
  const { token, seconds } = bindToken
  return [`__Host-tap-${token.slice(0, 12)}=${token}; Max-Age=${seconds}; ${cookieAttributes}`]
}

const cookieAttributes = 'Path=/; Secure; HttpOnly; SameSite=Lax'

/** Headers that keep a tap out of caches and its URL out of the Referer. */
export const tapHeaders = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' } as const

export type TapFailure = { readonly status: number; readonly error: string }

/** Error text of a tap route, with status 503, while the verifier lacks keys of a batch. */
export const notConfigured = 'This verifier lacks tag keys, so that this tap cannot be checked.'

/** Error text of a tap route for a prefetch, with status 503 and Retry-After. */
export const prefetchRefused = 'A tap is not verified in advance. Open the link itself.'

/** Returns status and text for a tap that cannot be judged now, because searches are limited. */
export function busyFailure({ status }: Extract<TapOutcome, { kind: 'busy' }>): TapFailure {
  return {
    status,
    error:
      status === 429
        ? 'Many links from this network did not verify, so that this one is not looked for now. Send it again later.'
        : 'Many forged links are arriving, so that this one is not looked for now. Send it again.',
  }
}

/** Returns status and text for a failure of a tap route (spec §7). */
export function tapFailure(error: ServiceError): TapFailure {
  if (error.code === 'CHAIN_UNAVAILABLE')
    return { status: 502, error: 'The chip was read, but the chain could not be. Try the same link again.' }
  return { status: error.status, error: error.message }
}
