/**
 * Request quotas that all processes of a deployment share (spec §8). A store counts. Requests of one event-loop turn, and those that
 * arrive during a call, go out as one call. While the store does not answer, each process counts on its own copy.
 */
import type { Breaker } from '../../lib/async/circuit-breaker.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { traced, withSpan } from '../../lib/async/span.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { createRateLimiter, type LocalLimiter, type Quota, type RateLimiter } from './limiter.ts'

/** `count` requests in the window `key`, which begins with the first of them. The keys of one call are distinct. */
export type WindowRequest = {
  readonly key: string
  readonly limit: number
  readonly windowMs: number
  readonly count: number
}
/** `used` after `granted` of the requests were allowed; the window ends in `remainingMs` by the store's own clock. */
export type WindowUse = { readonly used: number; readonly granted: number; readonly remainingMs: number }

/**
 * Never grants more than `limit` in a window, whichever processes ask. Each `count` is a multiple of `size`, and so is what is granted.
 * Results are in the order of the requests.
 */
export type LimitStore = {
  readonly consume: (requests: readonly WindowRequest[], size: number) => Promise<readonly WindowUse[]>
}

export type SharedLimits = ReturnType<typeof createSharedLimits>

/** `scope` distinguishes the quotas of one client in the store; `name` appears in its headers. */
type SharedQuota = {
  readonly scope: string
  readonly limit: number
  readonly windowSeconds: number
  readonly name?: string
}
/** `local` counts the requests that this process counted alone; `up` is false from a failed call to the next success. */
export type LimitStats = {
  readonly calls: number
  readonly failures: number
  readonly local: number
  readonly up: boolean
}

/** Windows of one call, so that neither a call nor the script that counts grows without bound. */
const maxWindowsPerCall = 500
/** Windows that may wait for a call. More of them mean that the store is too slow: the process counts alone. */
const maxWaiting = 10_000

type Waiting = {
  readonly client: string
  readonly scope: string
  readonly limit: number
  readonly windowMs: number
  readonly local: LocalLimiter
  /** Requests of each waiter, which gets all of them or none. */
  readonly size: number
  readonly waiters: ((quota: Quota) => void)[]
}

type SharedLimitsOptions = {
  readonly store: LimitStore
  readonly breaker: Breaker
  readonly keyOf: (scope: string, client: string) => string
  readonly deadlineMs: number
  readonly log: Log
  readonly now?: () => number
}

/** `keyOf` names a window in the store without naming the client. `deadlineMs` is for one call. `now` is in milliseconds. */
export function createSharedLimits({ store, breaker, keyOf, deadlineMs, log, now = Date.now }: SharedLimitsOptions) {
  const waiting = new Map<string, Waiting>()
  const counts = { calls: 0, failures: 0, local: 0, up: true }
  let busy = false

  function request(of: Omit<Waiting, 'waiters'>): Quota | Promise<Quota> {
    const { client, scope, size } = of
    const name = `${size} ${scope} ${client}`
    let entry = waiting.get(name)
    if (entry === undefined) {
      if (breaker.state() === 'open' || waiting.size >= maxWaiting) return takeAlone(of)
      entry = { ...of, waiters: [] }
      waiting.set(name, entry)
    }
    const { waiters } = entry
    if (!busy) {
      busy = true
      withSpan(undefined, () => setImmediate(sendAll)) // a call is for many requests
    }
    return traced({ name: 'quota' }, () => new Promise((resolve) => void waiters.push(resolve)))
  }

  function takeAlone({ client, local, size }: Omit<Waiting, 'waiters'>): Quota {
    counts.local += size
    return local.take(client, size)
  }

  function sendAll(): void {
    const entries = takeFirst(waiting, maxWindowsPerCall)
    if (entries.length === 0) busy = false
    else void send(entries).then(sendAll)
  }

  /** Never rejects: this process answers the waiters when the store does not. */
  async function send(entries: readonly Waiting[]): Promise<void> {
    const sentAt = now()
    const uses = breaker.admit() ? await consume(entries) : null
    for (const [at, entry] of entries.entries()) {
      const { client, local, size, waiters } = entry
      const use = uses?.[at]
      if (use === undefined) for (const settle of waiters) settle(takeAlone(entry))
      else {
        // The call took time: measured from its beginning, a window never ends later here than in the store.
        const quotaAt = local.adopt(client, { ...use, endsAt: sentAt + use.remainingMs })
        for (const [index, settle] of waiters.entries()) settle(quotaAt((index + 1) * size - 1))
      }
    }
  }

  async function consume(entries: readonly Waiting[]): Promise<readonly WindowUse[] | null> {
    counts.calls += 1
    try {
      const requests = entries.map(({ scope, client, limit, windowMs, size, waiters }) => {
        return { key: keyOf(scope, client), limit, windowMs, count: waiters.length * size }
      })
      const uses = await withDeadline(store.consume(requests, entries[0]?.size ?? 1), deadlineMs)
      if (uses.length !== requests.length) throw new Error('The limit store returned a wrong number of windows.')
      breaker.answered()
      if (!counts.up) log.info('limits are shared again')
      counts.up = true
      return uses
    } catch (error) {
      breaker.fault()
      counts.failures += 1
      if (counts.up) log.warn('limits are counted by this process alone', { reason: reasonOf(error) })
      counts.up = false
      return null
    }
  }

  return {
    limiter: ({ scope, limit, windowSeconds, name }: SharedQuota): RateLimiter => {
      const local = createRateLimiter({ limit, windowSeconds, now, ...(name !== undefined && { name }) })
      const windowMs = windowSeconds * 1000
      // A used-up window stays used up until it ends, so that the store need not be asked.
      return {
        take: (client, size = 1) =>
          local.exhausted(client, size) ?? request({ client, scope, limit, windowMs, local, size }),
        exhausted: local.exhausted,
      }
    },
    stats: (): LimitStats => counts,
  }
}

/** Removes at most `most` entries, oldest first, with the size of the oldest one. Returns them; their windows are distinct. */
function takeFirst(table: Map<string, Waiting>, most: number): Waiting[] {
  const found: Waiting[] = []
  for (const [name, value] of table) {
    if (value.size !== (found[0] ?? value).size) continue
    table.delete(name)
    if (found.push(value) === most) break
  }
  return found
}
