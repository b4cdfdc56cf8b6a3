/**
 * The request budget of one client (spec §8): a fixed window, counted in process, without timers.
 * The table is bounded: when it is full the oldest window falls out, never the newest.
 */

/** `resetSeconds` until the window ends, rounded up. A refused request costs nothing more. */
export type Budget = {
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
  readonly allowed: boolean
  readonly policy: Policy
}
/** The limit as the header fields name it: `"default"` and `"default";q=60;w=60`. */
type Policy = { readonly name: string; readonly text: string }
export type RateLimiter = { readonly take: (client: string) => Budget }

type Window = { endsAt: number; used: number }

/** At most `limit` requests a client per `windowSeconds`. `name` tells the client one budget from another. `now` is in milliseconds. */
export function createRateLimiter({
  limit,
  windowSeconds = 60,
  name = 'default',
  maxClients = 100_000,
  now = Date.now,
}: {
  readonly limit: number
  readonly windowSeconds?: number
  readonly name?: string
  readonly maxClients?: number
  readonly now?: () => number
}): RateLimiter {
  const windows = new Map<string, Window>() // in the order in which the windows began
  const length = windowSeconds * 1000
  const policy: Policy = { name: `"${name}"`, text: `"${name}";q=${limit};w=${windowSeconds}` }

  function begin(client: string, at: number): Window {
    windows.delete(client)
    if (windows.size >= maxClients) windows.delete(windows.keys().next().value ?? '')
    const window = { endsAt: at + length, used: 0 }
    windows.set(client, window)
    return window
  }

  return {
    take(client) {
      const at = now()
      let window = windows.get(client)
      // A clock set back would stretch a window: no window is longer than its length.
      if (window === undefined || window.endsAt <= at || window.endsAt > at + length) window = begin(client, at)
      const allowed = window.used < limit
      if (allowed) window.used += 1
      const resetSeconds = Math.ceil((window.endsAt - at) / 1000)
      return { limit, remaining: limit - window.used, resetSeconds, allowed, policy }
    },
  }
}
