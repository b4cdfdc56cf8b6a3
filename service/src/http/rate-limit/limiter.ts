/**
 * Request quotas of clients (spec §8): fixed windows, counted in this process without timers.
 * The table is bounded: when it is full, the oldest window is dropped. Quotas shared by processes are in shared-limiter.ts.
 */

/** The state of a client's quota after a request. `resetSeconds` until the window ends, rounded up. A rejected request consumes nothing. */
export type Quota = {
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
  readonly allowed: boolean
  readonly policy: Policy
}
/** The limit as the header fields write it: `"default"` and `"default";q=60;w=60`. */
type Policy = { readonly name: string; readonly text: string }

export type RateLimiter = {
  /**
   * Consumes `count` requests, one by default, or none where they do not all fit. The result may be a promise where other processes count
   * too; it never rejects.
   */
  readonly take: (client: string, count?: number) => Quota | Promise<Quota>
  /** Returns the quota of a client whose window in this process has no room for `count` requests; else undefined. Consumes nothing. */
  readonly exhausted: (client: string, count?: number) => Quota | undefined
}

/** Counts in this process, so that every result is synchronous. */
export type LocalLimiter = Pick<RateLimiter, 'exhausted'> & {
  readonly take: (client: string, count?: number) => Quota
  /** Adopts what all processes together counted, and returns the quota of each consumed request by its index. */
  readonly adopt: (client: string, counted: Counted) => (index: number) => Quota
}
/** `used` after `granted` requests were allowed, until `endsAt` of the limiter's own clock. */
type Counted = { readonly used: number; readonly granted: number; readonly endsAt: number }

type Window = { endsAt: number; used: number }

type LimiterSettings = {
  readonly limit: number
  readonly windowSeconds?: number
  readonly name?: string
  readonly maxClients?: number
  readonly now?: () => number
}

/** Allows `limit` requests a client per `windowSeconds`. `name` distinguishes quotas in the headers. `now` is in milliseconds. */
export function createRateLimiter(settings: LimiterSettings): LocalLimiter {
  const { limit, windowSeconds = 60, name = 'default', maxClients = 100_000, now = Date.now } = settings
  const windows = new Map<string, Window>() // in the order in which the windows began
  const length = windowSeconds * 1000
  const policy: Policy = { name: `"${name}"`, text: `"${name}";q=${limit};w=${windowSeconds}` }

  /** Returns the client's current window, or begins one. */
  function windowOf(client: string, at: number): Window {
    const current = windows.get(client)
    if (current !== undefined && !isOver(current, at)) return current
    windows.delete(client)
    if (windows.size >= maxClients) windows.delete(windows.keys().next().value ?? '')
    const window = { endsAt: at + length, used: 0 }
    windows.set(client, window)
    return window
  }

  /** A clock that is set back would stretch a window: no window is longer than its length. */
  function isOver({ endsAt }: Window, at: number): boolean {
    return endsAt <= at || endsAt > at + length
  }

  function toQuota({ endsAt }: Window, at: number, remaining: number, allowed: boolean): Quota {
    return { limit, remaining, resetSeconds: Math.max(1, Math.ceil((endsAt - at) / 1000)), allowed, policy }
  }

  return {
    take(client, count = 1) {
      const at = now()
      const window = windowOf(client, at)
      const allowed = window.used + count <= limit
      if (allowed) window.used += count
      return toQuota(window, at, limit - window.used, allowed)
    },
    exhausted(client, count = 1) {
      const window = windows.get(client)
      if (window === undefined || window.used + count <= limit) return undefined
      const at = now()
      return isOver(window, at) ? undefined : toQuota(window, at, limit - window.used, false)
    },
    adopt(client, { used, granted, endsAt }) {
      const at = now()
      const window = windowOf(client, at)
      // Requests that were allowed while the store was unreachable are not granted once more.
      const alone = window.used + granted
      if (alone <= used) window.endsAt = endsAt
      window.used = Math.min(Math.max(alone, used), limit)
      const { used: after } = window
      return (index) =>
        toQuota(window, at, Math.max(0, limit - after + Math.max(0, granted - index - 1)), index < granted)
    },
  }
}
