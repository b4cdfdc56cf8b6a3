/** Settings of the request limits: where they are counted, and how many requests a client has in a window. */
import { z } from 'zod'
import { choice, isRange, list, optional, redisUrl, whole } from './parsers.ts'
import { secret, setting } from './setting.ts'

const quota = (fallback: number) => whole(0, 1_000_000_000, fallback)

export const limitSettings = z.object({
  redisUrl: secret('REDIS_URL', optional(redisUrl)).describe(
    'Redis 6 or newer, or Valkey: counts the limits of all processes together.',
  ),
  store: setting('RATE_LIMIT_STORE', choice('auto', 'process', 'postgres', 'redis')).describe(
    'Place where the limits are counted: each process alone, or PostgreSQL or Redis for all of them. auto: Redis with REDIS_URL, else PostgreSQL with DATABASE_URL.',
  ),
  storeTimeoutMs: setting('RATE_LIMIT_STORE_TIMEOUT_MS', whole(10, 10_000, 100)).describe(
    'Milliseconds that PostgreSQL or Redis may take to count; then the process counts alone.',
  ),
  asset: setting('RATE_LIMIT_ASSET', quota(60)).describe(
    'Keyless reads a client IP may make in a window; 0: no limit.',
  ),
  tap: setting('RATE_LIMIT_TAP', quota(30)).describe('Tap requests a client IP may make in a window; 0: no limit.'),
  forgedTaps: setting('RATE_LIMIT_FORGED_TAPS', quota(20)).describe(
    'Failed cryptograms of a client IP, or of an API key, in a window; then likely batches alone are tried, without slow derivations. Others at this address are not locked out. 0: no limit.',
  ),
  gateway: setting('RATE_LIMIT_GATEWAY', quota(60)).describe(
    'Unpaid gateway requests a client IP may make in a window; rejected payments have as many again. 0: no limit.',
  ),
  graphql: setting('RATE_LIMIT_GRAPHQL', quota(600)).describe(
    'GraphQL requests an API key may make in a window; 0: no limit.',
  ),
  mcp: setting('RATE_LIMIT_MCP', quota(20)).describe(
    'Tool calls by MCP, and requests by A2A, that a client IP may make in a window; 0: no limit.',
  ),
  windowSeconds: setting('RATE_LIMIT_WINDOW_SECONDS', whole(1, 86_400, 60)).describe(
    'Length of a window of every limit.',
  ),
  trustedProxies: setting('TRUSTED_PROXIES', list('IP addresses or CIDR ranges', isRange)).describe(
    'Proxies whose X-Forwarded-For names the client.',
  ),
})
