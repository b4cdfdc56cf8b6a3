/** Settings of the hosts: where they listen, what they are called, how much a client may ask (spec §1, §8). */
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import {
  choice,
  isRange,
  list,
  optional,
  originOf,
  redisUrl,
  secret,
  setting,
  url,
  whole,
  type Setting,
} from './kinds.ts'

/** What a process may do; a fleet is the same program with other roles. */
const roles = ['verification', 'gateway', 'graphql', 'indexer'] as const
export type Role = (typeof roles)[number]

export const hostSettings = {
  ONLY: setting<readonly Role[]>(
    '',
    `some of ${roles.join(', ')}, separated by commas`,
    rolesOf,
    'Roles of this process, as `touchstone serve --only` gives them; empty: all of them.',
  ),
  WORKERS: setting(
    '1',
    'auto or a whole number from 1 to 256',
    workersOf,
    'Processes that share the ports of `touchstone serve`; auto: one for each core. More than one needs DATABASE_URL.',
  ),
  DATA_DIR: setting(
    'data',
    'a folder',
    (text) => (text === '' ? null : resolve(text)),
    'Folder of everything that is kept: embedded chain, database, keys.',
  ),
  HOST: setting(
    '127.0.0.1',
    'an IP address',
    (text) => (isIP(text) === 0 ? null : text),
    'Address that the listeners bind; 0.0.0.0 or :: behind a proxy or in a container.',
  ),
  VERIFICATION_PORT: whole(0, 65_535, 8080, 'Port of the verification host; 0 chooses a free one.'),
  LOCAL_CHAIN_PORT: whole(
    0,
    65_535,
    8545,
    'Port of the embedded chain of `touchstone dev`, on 127.0.0.1; 0 chooses a free one.',
  ),
  GATEWAY_PORT: whole(0, 65_535, 8081, 'Port of the gateway; 0 chooses a free one.'),
  GRAPHQL_PORT: whole(0, 65_535, 8082, 'Port of the GraphQL host; 0 chooses a free one.'),
  METRICS_PORT: optional(
    whole(
      0,
      65_535,
      0,
      'Port of /metrics, for Prometheus, on HOST: keep it private. The second of several WORKERS has the next port, and so on. 0 chooses a free one; empty: none.',
    ),
  ),
  BASE_URL: publicUrl('verification host', 'https://verify.example.com'),
  GATEWAY_URL: publicUrl('gateway', 'https://pay.example.com'),
  GRAPHQL_URL: publicUrl('GraphQL host', 'https://graphql.example.com'),
  DATABASE_URL: secret(
    optional(url(['postgres', 'postgresql'], 'PostgreSQL 15 or newer; empty: the embedded database in DATA_DIR.')),
  ),
  DATABASE_READ_URL: secret(
    optional(
      url(
        ['postgres', 'postgresql'],
        'Replica of DATABASE_URL that GraphQL lists are read from while it is at most 5 s behind; empty: none.',
      ),
    ),
  ),
  MIGRATE: choice(
    ['on', 'off'],
    'off: a start never changes the schema of the database, and refuses one that is too old; run `touchstone migrate` before.',
  ),
  REDIS_URL: secret(optional(redisUrl('Redis 6 or newer, or Valkey: counts the limits of all processes together.'))),
  RATE_LIMIT_STORE: choice(
    ['auto', 'process', 'postgres', 'redis'],
    'Who counts the limits: each process alone, or PostgreSQL or Redis for all of them. auto: Redis with REDIS_URL, else PostgreSQL with DATABASE_URL.',
  ),
  RATE_LIMIT_STORE_TIMEOUT_MS: whole(
    10,
    10_000,
    100,
    'Milliseconds that PostgreSQL or Redis may take to count; then the process counts alone.',
  ),
  RATE_LIMIT_ASSET: whole(0, 1_000_000_000, 60, 'Keyless reads a client IP may make in a window; 0: no limit.'),
  RATE_LIMIT_TAP: whole(0, 1_000_000_000, 30, 'Tap requests a client IP may make in a window; 0: no limit.'),
  RATE_LIMIT_GATEWAY: whole(
    0,
    1_000_000_000,
    60,
    'Unpaid gateway requests a client IP may make in a window; 0: no limit.',
  ),
  RATE_LIMIT_GRAPHQL: whole(0, 1_000_000_000, 600, 'GraphQL requests an API key may make in a window; 0: no limit.'),
  RATE_LIMIT_WINDOW_SECONDS: whole(1, 86_400, 60, 'Length of a window of every limit.'),
  TRUSTED_PROXIES: list('IP addresses or CIDR ranges', isRange, 'Proxies whose X-Forwarded-For is believed.'),
  DEMO: choice(['off', 'on'], 'on lets demo tag batches, software tags and published keys in; never in production.'),
  LOG_LEVEL: choice(['info', 'debug', 'warn', 'error', 'silent'], 'Lowest level that is written.'),
} as const

function workersOf(text: string): number | null {
  if (text === 'auto') return availableParallelism()
  return /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= 256 ? Number(text) : null
}

function rolesOf(text: string): readonly Role[] | null {
  if (text.trim() === '') return roles
  const named = text.split(',').map((name) => name.trim())
  const known = roles.filter((role) => named.includes(role))
  return known.length === new Set(named).size ? known : null
}

function publicUrl(host: string, example: string): Setting<string | null> {
  return optional(
    setting(
      '',
      `an http or https URL without path, such as ${example}`,
      originOf,
      `Public URL of the ${host}, used in every link; empty: http://127.0.0.1 and its port.`,
    ),
  )
}
