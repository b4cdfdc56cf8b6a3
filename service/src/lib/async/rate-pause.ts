/** Pauses of requests to another side that limits their rate (HTTP 429, `Retry-After`: RFC 9110 §10.2.3). */

/** Pauses that the other side did not ask for double from the first one up to the longest. */
const firstMs = 50
const longestMs = 3_200
/** The level of the longest pause. A higher one would only take more answers to come down from. */
const mostLevel = 1 + Math.log2(longestMs / firstMs)
/** A pause that the other side asks for counts up to this length: a wrong one must not last. */
const mostAskedMs = 30_000
/** Limits in a row after which the other side counts as one that answers nothing. */
const stuckAfter = 5

/** Creates the pause of all requests to one other side. `now` is in monotonic milliseconds. */
export function createRatePause(now: () => number, random: () => number = Math.random) {
  let until = -Infinity
  let level = 0
  let inARow = 0

  const leftMs = (): number => Math.max(0, until - now())

  return {
    /** Returns the milliseconds until a request may be sent. */
    leftMs,
    /**
     * Notes an answer that limits the rate, with the pause that it asks for. Requests that were under way together meet one limit, so that the pause
     * does not grow with their number. Up to a half is added by chance, because many clients may wait for the same moment.
     */
    limited(askedMs = 0): void {
      if (leftMs() === 0) {
        inARow += 1
        level = Math.min(level + 1, mostLevel)
      }
      const ownMs = firstMs * 2 ** (level - 1)
      const pauseMs = Math.max(ownMs, askedMs)
      until = Math.max(until, now() + pauseMs * (1 + random() / 2))
    },
    /**
     * Notes an answer within the limit: the next pause is much shorter. Where each pause lets one of several requests pass, the pauses must not
     * stay as long as they are.
     */
    passed(): void {
      inARow = 0
      level = Math.floor(level / 2)
    },
    /** Returns whether the limit has left nothing for several pauses in a row. */
    isStuck: (): boolean => inARow >= stuckAfter,
  }
}

/**
 * Parses `Retry-After`: seconds, or a date of HTTP. Returns milliseconds, 30,000 at most; `undefined` for anything else. `now` is in unix
 * milliseconds.
 */
export function parseRetryAfter(value: unknown, now: number): number | undefined {
  if (typeof value !== 'string') return undefined
  if (/^\d{1,9}$/.test(value)) return Math.min(mostAskedMs, Number(value) * 1_000)
  const at = /^[A-Z][a-z]{2,8}, .{5,24} GMT$/.test(value) ? Date.parse(value) : NaN
  return Number.isNaN(at) ? undefined : Math.min(mostAskedMs, Math.max(0, at - now))
}
