/**
 * The request budget of one client (spec §8): a fixed window, counted in process, without timers.
 * The table is bounded: when it is full the oldest window falls out, never the newest.
 * Budgets that several processes share are in shared-limit.ts; they keep a copy here, for the time when nobody else counts.
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

/** Draws one request. Where other processes count too the answer may come later; it never fails. */
export type RateLimiter = { readonly take: (client: string) => Budget | Promise<Budget> }

/** Counts in this process, so that every answer is there at once. */
export type LocalLimiter = {
  readonly take: (client: string) => Budget
  /** The answer to a client that has used up its window; undefined for any other. */
  readonly refusal: (client: string) => Budget | undefined
  /** Takes over what all processes together counted; the budget of each of the requests that were drawn, by its index. */
  readonly adopt: (client: string, counted: Counted) => (index: number) => Budget
}
/** `used` after `granted` requests were allowed, until `endsAt` of the limiter's own clock. */
type Counted = { readonly used: number; readonly granted: number; readonly endsAt: number }

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
}): LocalLimiter {
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

  /** A clock set back would stretch a window: no window is longer than its length. */
  function isOver({ endsAt }: Window, at: number): boolean {
    return endsAt <= at || endsAt > at + length
  }

  function budgetOf({ endsAt }: Window, at: number, remaining: number, allowed: boolean): Budget {
    return { limit, remaining, resetSeconds: Math.max(1, Math.ceil((endsAt - at) / 1000)), allowed, policy }
  }

  return {
    take(client) {
      const at = now()
      let window = windows.get(client)
      if (window === undefined || window.endsAt <= at || window.endsAt > at + length) window = begin(client, at)
      const allowed = window.used < limit
      if (allowed) window.used += 1
      const resetSeconds = Math.ceil((window.endsAt - at) / 1000)
      return { limit, remaining: limit - window.used, resetSeconds, allowed, policy }
    },
    refusal(client) {
      const window = windows.get(client)
      if (window === undefined || window.used < limit) return undefined
      const at = now()
      return isOver(window, at) ? undefined : budgetOf(window, at, 0, false)
    },
    adopt(client, { used, granted, endsAt }) {
      const at = now()
      let window = windows.get(client)
      if (window === undefined || isOver(window, at)) window = begin(client, at)
      // What was allowed while nobody else counted is not given once more.
      const alone = window.used + granted
      if (alone <= used) window.endsAt = endsAt
      window.used = Math.min(Math.max(alone, used), limit)
      const { used: after } = window
      return (index) =>
        budgetOf(window, at, Math.max(0, limit - after + Math.max(0, granted - index - 1)), index < granted)
    },
  }
}

/** Draws `count` requests, at least one, until one is refused: that budget, else the last. */
export function takeMany(limiter: RateLimiter, client: string, count: number): Budget | Promise<Budget> {
  const drawn: (Budget | Promise<Budget>)[] = []
  let isOver = false
  while (!isOver) {
    const one = limiter.take(client)
    const isRefused = !(one instanceof Promise) && !one.allowed
    isOver = drawn.push(one) >= count || isRefused
  }
  return drawn.some((one) => one instanceof Promise)
    ? Promise.all(drawn.map((one) => Promise.resolve(one))).then(outcomeOf)
    : outcomeOf(drawn as Budget[])
}

function outcomeOf(drawn: readonly Budget[]): Budget {
  return (drawn.find(({ allowed }) => !allowed) ?? drawn.at(-1)) as Budget
}
