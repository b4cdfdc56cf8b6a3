/** Request quotas of this process (spec §8), counted by the process itself, or by PostgreSQL or Redis for all processes together. */
import { createHmac, createSecretKey } from 'node:crypto'
import { createBreaker } from '../lib/async/circuit-breaker.ts'
import { ConfigError, type Config } from './config/config.ts'
import { reasonOf } from '../lib/errors.ts'
import { createRateLimiter, type RateLimiter } from '../http/rate-limit/limiter.ts'
import { createSharedLimits, type LimitStore, type SharedLimits } from '../http/rate-limit/shared-limiter.ts'
import type { Log } from '../lib/log.ts'
import { memoize } from '../lib/memoize.ts'
import { openDatabase } from '../db/database.ts'
import { rateWindowStore } from '../http/rate-limit/postgres.ts'

export type Limits = Awaited<ReturnType<typeof openLimits>>
type LimiterOptions = {
  readonly scope: 'asset' | 'tap' | 'forged-taps' | 'agents' | 'gateway' | 'refused-payments' | 'graphql' | 'wrong-keys'
  readonly windowSeconds?: number
  readonly name?: string
}

/** Time that the start waits for Redis; otherwise the first requests would be counted by this process alone. */
const startMs = 1_000

export async function openLimits(config: Config, log: Log) {
  const { limits } = config
  await using opened = new AsyncDisposableStack()
  const shared = limits.store === 'process' ? undefined : await openSharedLimits(config, log, opened)
  const rest = opened.move()
  return {
    /** Returns undefined when the limit is switched off. `scope` names the quota in the store; `name` is shown to clients. */
    limiterOf: (
      limit: number,
      { windowSeconds = limits.windowSeconds, scope, ...name }: LimiterOptions,
    ): RateLimiter | undefined => {
      if (limit === 0) return undefined
      const quota = { limit, windowSeconds, ...name }
      return shared === undefined ? createRateLimiter(quota) : shared.limiter({ scope, ...quota })
    },
    /** Returns undefined where each process counts for itself. */
    stats: () => shared?.stats(),
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

async function openSharedLimits(config: Config, log: Log, opened: AsyncDisposableStack): Promise<SharedLimits> {
  return createSharedLimits({
    store: await (config.limits.store === 'redis' ? openRedis(config, opened) : openPostgres(config, log, opened)),
    breaker: createBreaker({ faults: 3, openMs: 1_000, now: () => performance.now() }),
    keyOf: windowKeys(config),
    deadlineMs: config.limits.storeTimeoutMs,
    log,
  })
}

async function openRedis({ limits }: Config, opened: AsyncDisposableStack): Promise<LimitStore> {
  const { openRedisWindows } = await import('../http/rate-limit/redis.ts') // a service without Redis begins sooner
  const windows = opened.adopt(openRedisWindows(limits.redisUrl ?? ''), (it) => it.close())
  await windows.ready(startMs)
  return windows
}

const pruneMs = 60_000
const pruneRows = 1_000

/** Opens a connection of its own, so that limits do not wait behind other statements. */
async function openPostgres({ store, limits }: Config, log: Log, opened: AsyncDisposableStack): Promise<LimitStore> {
  const statementTimeoutMs = Math.max(1_000, limits.storeTimeoutMs)
  const opening = openDatabase({ url: store.databaseUrl ?? '', poolSize: 1, statementTimeoutMs })
  const database = opened.use(
    await opening.catch((cause: unknown) => {
      throw new ConfigError('PostgreSQL has no connection for the limits under DATABASE_URL.', { cause })
    }),
  )
  const windows = rateWindowStore(database)
  async function pruneAll(): Promise<void> {
    for (let steps = 0; steps < 100 && (await windows.prune(pruneRows)) === pruneRows; steps += 1);
  }
  const prune = () =>
    void pruneAll().catch((error: unknown) => log.warn('limits not pruned', { reason: reasonOf(error) }))
  opened.adopt(setInterval(prune, pruneMs).unref(), clearInterval)
  return windows
}

/**
 * Names windows by a keyed hash, so that neither addresses nor ids of keys stand in the store. All processes must use the same key: it is
 * derived from a secret that they share. Where none is set, the contract's address stands in, and the names can be found by trying addresses.
 */
function windowKeys({ tap, chain }: Config): (scope: string, client: string) => string {
  const secret = tap.pepper ?? tap.kek ?? Buffer.from(chain.contract ?? '')
  const key = createSecretKey(createHmac('sha256', secret).update('touchstone rate limits').digest())
  // A hash costs as much as the rest of a count, and a client that came once comes again.
  const nameOf = memoize(
    (window: string) => createHmac('sha256', key).update(window).digest('base64url').slice(0, 22),
    { max: 20_000 },
  )
  return (scope, client) => `${scope}:${nameOf(`${scope} ${client}`)}`
}
