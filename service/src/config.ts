/**
 * The only reader of the environment: its texts, by the table of `settings.ts`, to one frozen object with a slice for each part.
 */
import { settings } from './settings.ts'
import type { Hex } from '@touchstone/verdict'
import type { Role } from './settings/hosts.ts'
import type { Setting } from './settings/kinds.ts'

type Settings = typeof settings
export type SettingName = keyof Settings
type Values = { readonly [Name in SettingName]: Settings[Name] extends Setting<infer T> ? T : never }

/** Each host's and part's slice; secret are those of `store`, `limits.redisUrl`, `chain.rpcUrls`, and the keys in `tap` and `operator`. */
export type Config = ReturnType<typeof readConfig>

/** A setting that cannot be used, in one sentence that names it. */
export class ConfigError extends Error {}

/** Reads the settings; a wrong one throws a ConfigError that names the variable and the text found (never a secret's). */
export function readConfig(env: Readonly<Record<string, string | undefined>>) {
  const value = <Name extends SettingName>(name: Name) => valueOf(name, env[name]) as Values[Name]
  const blockTag = value('CHAIN_BLOCK_TAG')
  const contractInterface = value('CHAIN_INTERFACE')
  if (value('PAYMENT_PRICE') > 100_000 && value('PAYMENT_HIGH_PRICE') === 'off')
    throw new ConfigError(
      'PAYMENT_PRICE is above 100000, which default buyers refuse; set PAYMENT_HIGH_PRICE=on if you mean it.',
    )
  const payTo = value('PAYMENT_PAY_TO')
  const roles = rolesOf(value('ONLY'), { isAsked: (env['ONLY'] ?? '') !== '', payTo })
  // The other hosts name the gateway only: a process without that role needs no key that moves money.
  if (roles.has('gateway') && value('FACILITATOR_URL') === null && value('FACILITATOR_KEY') === null)
    throw new ConfigError(
      'PAYMENT_PAY_TO needs somebody who settles: set FACILITATOR_KEY, or FACILITATOR_URL for a remote facilitator.',
    )
  if (value('ATTESTATION_KEYSTORE') !== null && value('ATTESTATION_KEYSTORE_PASSWORD_FILE') === null)
    throw new ConfigError('ATTESTATION_KEYSTORE needs ATTESTATION_KEYSTORE_PASSWORD_FILE, a file with its password.')
  if (value('WORKERS') > 1 && value('DATABASE_URL') === null)
    throw new ConfigError(
      'WORKERS above 1 needs PostgreSQL: set DATABASE_URL, because the embedded database belongs to one process.',
    )
  if (value('DATABASE_READ_URL') !== null && value('DATABASE_URL') === null)
    throw new ConfigError('DATABASE_READ_URL is a replica of DATABASE_URL: set that as well, or leave both empty.')
  return Object.freeze({
    workers: value('WORKERS'),
    dataDir: value('DATA_DIR'),
    roles,
    hosts: {
      bind: value('HOST'),
      verification: { port: value('VERIFICATION_PORT'), url: value('BASE_URL') },
      gateway: { port: value('GATEWAY_PORT'), url: value('GATEWAY_URL') },
      graphql: { port: value('GRAPHQL_PORT'), url: value('GRAPHQL_URL') },
    },
    metricsPort: value('METRICS_PORT'),
    store: {
      databaseUrl: value('DATABASE_URL'),
      readUrl: value('DATABASE_READ_URL'),
      migrate: value('MIGRATE') === 'on',
    },
    localChain: { port: value('LOCAL_CHAIN_PORT') },
    chain: {
      interface: contractInterface,
      rpcUrls: value('CHAIN_RPC_URLS'),
      contract: value('CHAIN_CONTRACT'),
      blockTag,
      trust: value('CHAIN_TRUST'),
      quorum: value('CHAIN_QUORUM'),
      codeHash: value('CHAIN_CODE_HASH') ?? undefined,
      recordsSlot: BigInt(value('CHAIN_RECORDS_SLOT')),
      startBlock: BigInt(value('CHAIN_START_BLOCK')),
      maxHeadAgeSeconds: value('CHAIN_MAX_HEAD_AGE_SECONDS') ?? { latest: 30, safe: 600, finalized: 3600 }[blockTag],
      cache: value('CHAIN_CACHE') ?? (contractInterface === 'registry' ? 'events' : 'head'),
      cacheEntries: value('CHAIN_CACHE_ENTRIES'),
    },
    index: { pollMs: value('INDEX_POLL_MS'), confirmations: value('INDEX_CONFIRMATIONS') },
    tap: {
      kek: value('TAG_KEK'),
      pepper: value('TAG_PEPPER'),
      commitment: value('TAG_COMMITMENT'),
      windowSeconds: value('TAP_WINDOW_SECONDS'),
      bind: value('TAP_BIND') === 'cookie',
      challenge: value('TAP_CHALLENGE') === 'on',
    },
    passport: { signing: value('PASSPORT_SIGNING') === 'on', issuerName: value('ISSUER_NAME') },
    pages: { publicRpcUrl: value('PUBLIC_RPC_URL'), explorerUrl: value('EXPLORER_URL')?.replace(/\/$/, '') ?? null },
    operator: { key: value('OPERATOR_KEY'), attesterKey: value('ATTESTER_KEY') },
    graphql: { introspection: value('GRAPHQL_INTROSPECTION') === 'on' },
    gateway: {
      payTo,
      price: BigInt(value('PAYMENT_PRICE')),
      allowHighPrice: value('PAYMENT_HIGH_PRICE') === 'on',
      asset: {
        address: value('PAYMENT_ASSET'),
        name: value('PAYMENT_ASSET_NAME'),
        version: value('PAYMENT_ASSET_VERSION'),
      },
      v2Header: value('PAYMENT_V2_HEADER') === 'on',
      facilitatorUrl: value('FACILITATOR_URL'),
      facilitatorKey: value('FACILITATOR_KEY'),
      attestationKey: value('ATTESTATION_KEY'),
      keystore: value('ATTESTATION_KEYSTORE'),
      keystorePasswordFile: value('ATTESTATION_KEYSTORE_PASSWORD_FILE'),
      payerKey: value('PAYER_KEY'),
    },
    agents: {
      origins: value('MCP_ORIGINS'),
      id: value('AGENT_ID'),
      identity: value('AGENT_IDENTITY_REGISTRY'),
      reputation: value('AGENT_REPUTATION_REGISTRY'),
      reviewers: value('AGENT_REVIEWERS').map((text) => text.toLowerCase() as Hex),
      remoteFiles: value('AGENT_REMOTE_FILES') === 'on',
      securityContact: value('SECURITY_CONTACT'),
    },
    demo: value('DEMO') === 'on',
    limits: {
      store: limitStoreOf(value('RATE_LIMIT_STORE'), {
        REDIS_URL: value('REDIS_URL'),
        DATABASE_URL: value('DATABASE_URL'),
      }),
      redisUrl: value('REDIS_URL'),
      storeTimeoutMs: value('RATE_LIMIT_STORE_TIMEOUT_MS'),
      asset: value('RATE_LIMIT_ASSET'),
      tap: value('RATE_LIMIT_TAP'),
      gateway: value('RATE_LIMIT_GATEWAY'),
      graphql: value('RATE_LIMIT_GRAPHQL'),
      mcp: value('RATE_LIMIT_MCP'),
      windowSeconds: value('RATE_LIMIT_WINDOW_SECONDS'),
      trustedProxies: value('TRUSTED_PROXIES'),
    },
    proofBundle: value('PROOF_BUNDLE') === 'on',
    logLevel: value('LOG_LEVEL'),
  })
}

/** Without an address to pay there is nothing to sell: such a service has no gateway. */
function rolesOf(
  named: readonly Role[],
  { isAsked, payTo }: { readonly isAsked: boolean; readonly payTo: string | null },
): ReadonlySet<Role> {
  if (payTo !== null) return new Set(named)
  if (isAsked && named.includes('gateway'))
    throw new ConfigError('The role gateway needs PAYMENT_PAY_TO, the address that buyers pay.')
  return new Set(named.filter((role) => role !== 'gateway'))
}

/** Who counts the limits, when what it needs is there. */
function limitStoreOf(
  asked: Values['RATE_LIMIT_STORE'],
  urls: Readonly<Record<'REDIS_URL' | 'DATABASE_URL', string | null>>,
): Exclude<Values['RATE_LIMIT_STORE'], 'auto'> {
  if (asked === 'auto') return urls.REDIS_URL !== null ? 'redis' : urls.DATABASE_URL !== null ? 'postgres' : 'process'
  const needed = { redis: 'REDIS_URL', postgres: 'DATABASE_URL', process: null } as const
  const missing = needed[asked]
  if (missing !== null && urls[missing] === null)
    throw new ConfigError(`RATE_LIMIT_STORE=${asked} needs ${missing}, or set RATE_LIMIT_STORE=process.`)
  return asked
}

function valueOf(name: SettingName, found: string | undefined): unknown {
  const { fallback, read, want, secret: hidden } = settings[name] as Setting<unknown>
  const text = found ?? fallback
  const value = read(text)
  if (value === null && !(text === '' && want.endsWith('or empty'))) {
    throw new ConfigError(
      `${name} must be ${want}; found ${hidden === true ? 'something else' : JSON.stringify(text.slice(0, 100))}.`,
    )
  }
  return value
}
