/** Who counts the request budgets of this process (spec §8): the process itself, or PostgreSQL or Redis for all processes together. */
import { createHmac, createSecretKey } from 'node:crypto'
import { createBreaker } from './chain/breaker.ts'
import { ConfigError, type Config } from './config.ts'
import { reasonOf } from './errors.ts'
import { createRateLimiter, type RateLimiter } from './http/rate-limit.ts'
import { createSharedLimits, type LimitStats, type LimitStore } from './http/shared-limit.ts'
import type { Log } from './log.ts'
import { openDatabase } from './store/database.ts'
import { openRedisWindows } from './store/rate-windows-redis.ts'
import { rateWindowStore } from './store/rate-windows.ts'

export type Limits = AsyncDisposable & {
  /** None when the limit is switched off. `scope` is the name of the budget among all; clients are told `name`. */
  readonly limiterOf: (limit: number, options: LimiterOptions) => RateLimiter | undefined
  /** Undefined where each process counts for itself. */
  readonly stats: () => LimitStats | undefined
}
type LimiterOptions = {
  readonly scope: 'asset' | 'tap' | 'agents' | 'gateway' | 'graphql' | 'wrong-keys'
  readonly windowSeconds?: number
  readonly name?: string
}

/** How long the start waits for Redis: without it the first requests would be counted alone. */
const startMs = 1_000

export async function openLimits(config: Config, log: Log): Promise<Limits> {
  const { limits } = config
  if (limits.store === 'process') {
    return {
      limiterOf: (limit, { windowSeconds = limits.windowSeconds, name }) =>
        limit === 0 ? undefined : createRateLimiter({ limit, windowSeconds, ...(name !== undefined && { name }) }),
      stats: () => undefined,
      [Symbol.asyncDispose]: async () => {},
    }
  }
  await using opened = new AsyncDisposableStack()
  const store = limits.store === 'redis' ? await openRedis(config, opened) : await openPostgres(config, log, opened)
  const shared = createSharedLimits({
    store,
    breaker: createBreaker({ faults: 3, openMs: 1_000, now: () => performance.now() }),
    keyOf: windowKeys(config),
    deadlineMs: limits.storeTimeoutMs,
    log,
  })
  const rest = opened.move()
  return {
    limiterOf: (limit, { windowSeconds = limits.windowSeconds, ...options }) =>
      limit === 0 ? undefined : shared.limiter({ limit, windowSeconds, ...options }),
    stats: shared.stats,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

async function openRedis({ limits }: Config, opened: AsyncDisposableStack): Promise<LimitStore> {
  const windows = opened.adopt(openRedisWindows(limits.redisUrl ?? ''), (it) => it.close())
  await windows.ready(startMs)
  return windows
}

const sweepMs = 60_000
const sweepRows = 1_000

/** On a connection of its own: limits must not wait behind the statements of others. */
async function openPostgres({ store, limits }: Config, log: Log, opened: AsyncDisposableStack): Promise<LimitStore> {
  const statementTimeoutMs = Math.max(1_000, limits.storeTimeoutMs)
  const opening = openDatabase({ url: store.databaseUrl ?? '', poolSize: 1, statementTimeoutMs })
  const database = opened.adopt(
    await opening.catch((cause: unknown) => {
      throw new ConfigError('PostgreSQL has no connection for the limits under DATABASE_URL.', { cause })
    }),
    (it) => it.close(),
  )
  const windows = rateWindowStore(database)
  async function sweep(): Promise<void> {
    for (let steps = 0; steps < 100 && (await windows.sweep(sweepRows)) === sweepRows; steps += 1);
  }
  const sweepNow = () =>
    void sweep().catch((error: unknown) => log.warn('limits not swept', { reason: reasonOf(error) }))
  opened.adopt(setInterval(sweepNow, sweepMs).unref(), clearInterval)
  return windows
}

/**
 * Windows are named by a keyed hash, so that neither addresses nor ids of keys stand in the store. The key must be the same in all
 * processes: it comes from a secret that they share anyway. Without one, only who has the store's contents and tries all addresses finds them.
 */
function windowKeys({ tap, chain }: Config): (scope: string, client: string) => string {
  const secret = tap.pepper ?? tap.kek ?? Buffer.from(chain.contract ?? '')
  const key = createSecretKey(createHmac('sha256', secret).update('touchstone rate limits').digest())
  const known = new Map<string, string>()
  return (scope, client) => {
    const window = `${scope} ${client}`
    const found = known.get(window)
    if (found !== undefined) return found
    const made = `${scope}:${createHmac('sha256', key).update(window).digest('base64url').slice(0, 22)}`
    if (known.size >= mostKnown) known.delete(known.keys().next().value ?? '')
    known.set(window, made)
    return made
  }
}

/** Hashes that are kept, because a client that comes once comes again: a hash costs as much as the rest of a draw. */
const mostKnown = 20_000
