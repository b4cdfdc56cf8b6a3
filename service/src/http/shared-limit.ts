/**
 * Request budgets that all processes of a deployment share (spec §8). A store counts; what is drawn in one turn of the event loop, and what
 * comes while a call is under way, goes out as one call. While the store does not answer, each process goes on with its own copy.
 */
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { createRateLimiter, type Budget, type LocalLimiter, type RateLimiter } from './rate-limit.ts'

/** `count` requests on the window `key`, which begins with the first of them. Every key of a call is another one. */
export type Draw = {
  readonly key: string
  readonly limit: number
  readonly windowMs: number
  readonly count: number
}
/** `used` after `granted` of the requests were allowed; the window ends in `remainingMs` by the store's own clock. */
export type Drawn = { readonly used: number; readonly granted: number; readonly remainingMs: number }

/** Counts exactly, whoever else draws: never more than `limit` in a window, and what is refused costs nothing. */
export type LimitStore = { readonly draw: (draws: readonly Draw[]) => Promise<readonly Drawn[]> }

export type SharedLimits = {
  /** `scope` tells the budgets of one client apart; `name` is what the client is told. */
  readonly limiter: (options: {
    readonly scope: string
    readonly limit: number
    readonly windowSeconds: number
    readonly name?: string
  }) => RateLimiter
  readonly stats: () => LimitStats
}
/** `local` are the requests that this process counted alone; `up` is false from a failed call to the next that succeeds. */
export type LimitStats = {
  readonly calls: number
  readonly failures: number
  readonly local: number
  readonly up: boolean
}

/** Whether the store is asked; it stays away for a while after failures. */
type Breaker = {
  readonly state: () => 'closed' | 'open' | 'ready'
  readonly admit: () => boolean
  readonly answered: () => void
  readonly fault: () => void
}

/** Windows of one call, so that neither a call nor the script that counts grows without bound. */
const mostInCall = 500
/** Windows that may wait for a call. More of them mean that the store is too slow: the process counts alone. */
const mostWaiting = 10_000

type Waiting = {
  readonly client: string
  readonly scope: string
  readonly limit: number
  readonly windowMs: number
  readonly local: LocalLimiter
  readonly waiters: ((budget: Budget) => void)[]
}

/** `keyOf` names a window in the store without naming the client. `deadlineMs` is for one call. `now` is in milliseconds. */
export function createSharedLimits({
  store,
  breaker,
  keyOf,
  deadlineMs,
  log,
  now = Date.now,
}: {
  readonly store: LimitStore
  readonly breaker: Breaker
  readonly keyOf: (scope: string, client: string) => string
  readonly deadlineMs: number
  readonly log: Log
  readonly now?: () => number
}): SharedLimits {
  const waiting = new Map<string, Waiting>()
  const counts = { calls: 0, failures: 0, local: 0, up: true }
  let busy = false

  function ask(of: Omit<Waiting, 'waiters'>): Budget | Promise<Budget> {
    const { client, scope, local } = of
    const name = `${scope} ${client}`
    let entry = waiting.get(name)
    if (entry === undefined) {
      if (breaker.state() === 'open' || waiting.size >= mostWaiting) return alone(local, client)
      entry = { ...of, waiters: [] }
      waiting.set(name, entry)
    }
    const { waiters } = entry
    if (!busy) {
      busy = true
      setImmediate(sendAll)
    }
    return new Promise((resolve) => void waiters.push(resolve))
  }

  function alone(local: LocalLimiter, client: string): Budget {
    counts.local += 1
    return local.take(client)
  }

  function sendAll(): void {
    const entries = firstOf(waiting, mostInCall)
    if (entries.length === 0) busy = false
    else void send(entries).then(sendAll)
  }

  /** Never rejects: who waits is answered by this process when the store does not. */
  async function send(entries: readonly Waiting[]): Promise<void> {
    const sentAt = now()
    const drawn = breaker.admit() ? await answerOf(entries) : null
    for (const [at, { client, local, waiters }] of entries.entries()) {
      const counted = drawn?.[at]
      if (counted === undefined) for (const settle of waiters) settle(alone(local, client))
      else {
        // The call took time: measured from its beginning, a window never ends later here than in the store.
        const budgetOf = local.adopt(client, { ...counted, endsAt: sentAt + counted.remainingMs })
        for (const [index, settle] of waiters.entries()) settle(budgetOf(index))
      }
    }
  }

  async function answerOf(entries: readonly Waiting[]): Promise<readonly Drawn[] | null> {
    counts.calls += 1
    try {
      const draws = entries.map(({ scope, client, limit, windowMs, waiters }) => {
        return { key: keyOf(scope, client), limit, windowMs, count: waiters.length }
      })
      const drawn = await inTime(store.draw(draws), deadlineMs)
      if (drawn.length !== draws.length) throw new Error('an answer of another length')
      breaker.answered()
      if (!counts.up) log.info('limits are shared again')
      counts.up = true
      return drawn
    } catch (error) {
      breaker.fault()
      counts.failures += 1
      if (counts.up) log.warn('limits are counted by this process alone', { reason: reasonOf(error) })
      counts.up = false
      return null
    }
  }

  return {
    limiter({ scope, limit, windowSeconds, name }) {
      const local = createRateLimiter({ limit, windowSeconds, now, ...(name !== undefined && { name }) })
      const windowMs = windowSeconds * 1000
      // Nobody gives a used-up window back, so that its end need not be asked for again.
      return { take: (client) => local.refusal(client) ?? ask({ client, scope, limit, windowMs, local }) }
    },
    stats: () => counts,
  }
}

function firstOf<T>(table: Map<string, T>, most: number): T[] {
  const found: T[] = []
  for (const [name, value] of table) {
    table.delete(name)
    if (found.push(value) === most) break
  }
  return found
}

async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    // An answer that already lies in the socket is read first: it was this process that was late.
    const giveUp = () => setImmediate(() => reject(new Error(`no answer within ${ms} ms`)))
    timer = setTimeout(giveUp, ms)
  })
  work.catch(() => {}) // it may fail after its deadline
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
