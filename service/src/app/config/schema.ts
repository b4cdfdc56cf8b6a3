/**
 * Every setting of the service, once, as one nested schema. Its place in `Config`, the variable of the environment, how its text is parsed,
 * and what it means. `--help`, the handbook and `readConfig` follow this order.
 */
import { resolve } from 'node:path'
import { z } from 'zod'
import { approvalActs } from '../../access/rights.ts'
import { chainSettings } from './chain-settings.ts'
import { gatewaySettings } from './gateway-settings.ts'
import { limitSettings } from './limit-settings.ts'
import { pageSettings } from './page-settings.ts'
import { applePasswordSetting, appleSettings, googleSettings } from './pass-settings.ts'
import { keySource } from './key-source.ts'
import {
  address,
  addresses,
  anyOf,
  choice,
  file,
  hexBytes,
  ipAddress,
  databaseUrl,
  mapped,
  optional,
  origin,
  origins,
  pattern,
  processes,
  secretBytes,
  serverUrl,
  someOf,
  toggle,
  whole,
} from './parsers.ts'
import { mapSettings, secret, type Setting, setting } from './setting.ts'
import { traceSettings } from './trace-settings.ts'

/** Roles of a process. A fleet is the same program with different roles. */
const roles = ['verification', 'gateway', 'graphql', 'indexer'] as const
export type Role = (typeof roles)[number]

const port = (fallback: number) => whole(0, 65_535, fallback)
const privateKey = optional(hexBytes(32, 32))

export const configSchema = z.object({
  roles: setting('ONLY', someOf(roles)).describe(
    'Roles of this process, as `touchstone serve --only` gives them; empty: all of them.',
  ),
  workers: setting('WORKERS', processes).describe(
    'Processes that share the ports of `touchstone serve`; auto: one for each core. More than one needs DATABASE_URL.',
  ),
  dataDir: setting(
    'DATA_DIR',
    mapped(pattern(/^\S(?:.*\S)?$/, 'a folder, without spaces at its ends', 'data'), (text) => resolve(text)),
  ).describe('Folder of everything that is kept: embedded chain, database, keys.'),
  hosts: z.object({
    bind: setting('HOST', ipAddress('127.0.0.1')).describe(
      'Address that the listeners bind; 0.0.0.0 or :: behind a proxy or in a container.',
    ),
    verification: host('verification host', 'VERIFICATION_PORT', 8080, 'BASE_URL', 'https://verify.example.com'),
    gateway: host('gateway', 'GATEWAY_PORT', 8081, 'GATEWAY_URL', 'https://pay.example.com'),
    graphql: host('GraphQL host', 'GRAPHQL_PORT', 8082, 'GRAPHQL_URL', 'https://graphql.example.com'),
  }),
  localChain: z.object({
    port: setting('LOCAL_CHAIN_PORT', port(8545)).describe(
      'Port of the embedded chain of `touchstone dev`, on 127.0.0.1; 0 chooses a free one.',
    ),
  }),
  metricsPort: setting('METRICS_PORT', optional(port(0))).describe(
    'Port of /metrics, for Prometheus, on HOST: keep it private. The second of several WORKERS has the next port, and so on. 0 chooses a free one; empty: none.',
  ),
  traces: traceSettings,
  store: z.object({
    databaseUrl: secret('DATABASE_URL', optional(databaseUrl)).describe(
      'PostgreSQL 15 or newer, one host or a list `host1,host2` with target_session_attrs=read-write; empty: the embedded database in DATA_DIR.',
    ),
    directUrl: secret('DATABASE_DIRECT_URL', optional(databaseUrl)).describe(
      'The same database without a pooler, where DATABASE_URL is PgBouncer: notices, locks, migrations and backups go there. Empty: DATABASE_URL.',
    ),
    readUrl: secret('DATABASE_READ_URL', optional(serverUrl)).describe(
      'Replica of DATABASE_URL that GraphQL lists are read from while it is at most 5 s behind; empty: none.',
    ),
    waitSeconds: setting('DATABASE_WAIT_SECONDS', whole(0, 3_600, 30)).describe(
      'Longest wait of `touchstone serve` at its start for a PostgreSQL that does not answer, such as during its restart.',
    ),
    migrate: setting('MIGRATE', toggle('on')).describe(
      'off: a start never changes the schema of the database, and rejects one that is too old; run `touchstone migrate` before.',
    ),
  }),
  limits: limitSettings,
  demo: setting('DEMO', toggle('off')).describe(
    'on accepts demo tag batches, software tags and published keys; never in production.',
  ),
  logLevel: setting('LOG_LEVEL', choice('info', 'debug', 'warn', 'error', 'silent')).describe(
    'Lowest level that is written.',
  ),
  keys: setting('KEYS', keySource).describe(
    'Place of the private keys: files and settings of this service, or a PKCS#11 token (HSM). keys= names those in the token; empty: all keys.',
  ),
  chain: chainSettings,
  proofBundle: setting('PROOF_BUNDLE', toggle('off')).describe(
    'on: GET /api/asset/{tokenId}/proof answers with the verdict and its storage proof. Needs CHAIN_CODE_HASH.',
  ),
  index: z.object({
    pollMs: setting('INDEX_POLL_MS', whole(5, 60_000, 500)).describe(
      'Milliseconds between two reads of the head by the indexer; each is one provider call.',
    ),
    confirmations: setting('INDEX_CONFIRMATIONS', whole(0, 10_000, 0)).describe(
      'Blocks that the index stays behind the head.',
    ),
    checkSeconds: setting('INDEX_CHECK_SECONDS', whole(1, 86_400, 60)).describe(
      'Seconds between two comparisons of the index with the chain: the number of tokens, and ten of them.',
    ),
    eventRetentionDays: setting('EVENT_RETENTION_DAYS', whole(1, 3_650, 30)).describe(
      'Days for which `events` are kept.',
    ),
  }),
  backupKey: secret('BACKUP_KEY', optional(hexBytes(32, 32))).describe(
    'Key that seals and opens backups; empty: TAG_KEK does. Keep it apart from them, and from every server that need not restore. Make one with: openssl rand -hex 32.',
  ),
  operator: z.object({
    key: secret('OPERATOR_KEY', privateKey).describe(
      'Private key that writes to the registry for every role without a key of its own. Empty, as those below: nothing is written.',
    ),
    issuerKey: secret('ISSUER_KEY', privateKey).describe('Private key that mints (ISSUER role); empty: OPERATOR_KEY.'),
    binderKey: secret('BINDER_KEY', privateKey).describe(
      'Private key that binds tags (BINDER role); empty: OPERATOR_KEY.',
    ),
    qaKey: secret('QA_KEY', privateKey).describe('Private key that activates items (QA role); empty: OPERATOR_KEY.'),
    guardianKey: secret('GUARDIAN_KEY', privateKey).describe(
      'Private key that makes and takes back reports (GUARDIAN role); empty: OPERATOR_KEY.',
    ),
    recyclerKey: secret('RECYCLER_KEY', privateKey).describe(
      'Private key that recycles items (RECYCLER role, for reported ones GUARDIAN too); empty: OPERATOR_KEY.',
    ),
    relayerKey: secret('RELAYER_KEY', privateKey).describe(
      'Private key that pays for what owners have signed; it needs no role. Empty: OPERATOR_KEY.',
    ),
    attesterKey: secret('ATTESTER_KEY', privateKey).describe(
      'Private key that signs claims after a tap (ATTESTER role).',
    ),
  }),
  approvals: z.object({
    acts: setting('APPROVALS', anyOf(approvalActs, 'acts')).describe(
      'Irreversible acts that a second API key or operator must approve: recycle, batch-revoke, key-deletion; empty: none.',
    ),
    hours: setting('APPROVAL_HOURS', whole(1, 720, 72)).describe(
      'Hours in which a request for approval must be decided.',
    ),
  }),
  tap: z.object({
    kek: secret('TAG_KEK', optional(secretBytes(32, 32))).describe(
      'Key that seals the tag key files; without it no tap is verified (503). Make one with: openssl rand -hex 32.',
    ),
    previousKek: secret('TAG_KEK_PREVIOUS', optional(hexBytes(32, 32))).describe(
      'Former TAG_KEK, which opens key files until touchstone key rotate-kek has sealed them again, and whose tap cookies and forms are accepted; empty: none.',
    ),
    stationKek: secret('STATION_KEK', optional(secretBytes(32, 32))).describe(
      'Key that seals station.keys, the application keys of tag batches, where chips are written; never on a verifier. Make one with: openssl rand -hex 32.',
    ),
    previousStationKek: secret('STATION_KEK_PREVIOUS', optional(hexBytes(32, 32))).describe(
      'Former STATION_KEK, which opens station.keys until touchstone key rotate-kek has sealed it again; empty: none.',
    ),
    pepper: secret('TAG_PEPPER', optional(secretBytes(16, 64))).describe(
      'Secret of the tag commitments on chain (TAG_COMMITMENT=hmac). Keep it for ever: every bound tag depends on it.',
    ),
    previousPepper: secret('TAG_PEPPER_PREVIOUS', optional(hexBytes(16, 64))).describe(
      'Former TAG_PEPPER: tags bound under it verify as before, and new bindings use TAG_PEPPER; empty: none.',
    ),
    commitment: setting('TAG_COMMITMENT', choice('hmac', 'keccak-uid')).describe(
      'Commitment of a tag on chain: hmac with TAG_PEPPER, or keccak256 of the UID as some existing deployments have it.',
    ),
    windowSeconds: setting('TAP_WINDOW_SECONDS', whole(0, 3_600, 300)).describe(
      'Seconds from its first use in which the same tap passes again; 0: each tap once.',
    ),
    retentionDays: setting('TAP_RETENTION_DAYS', whole(0, 36_500, 90)).describe(
      'Days for which the ledger and the log of GraphQL keep each tap; 0: for ever. The last counter of a tag stays, so that no tap ever passes again.',
    ),
    countryHeader: setting(
      'TAP_COUNTRY_HEADER',
      optional(pattern(/^[A-Za-z0-9-]{1,100}$/, 'the name of a header')),
    ).describe(
      'Header in which a proxy of TRUSTED_PROXIES names the client’s country by two letters, such as CF-IPCountry. The proxy must set or remove it in every request; empty: taps have no country.',
    ),
    bind: setting(
      'TAP_BIND',
      mapped(choice('off', 'cookie'), (word) => word === 'cookie'),
    ).describe('cookie: only the browser that presented a tap first may repeat it.'),
    challenge: setting('TAP_CHALLENGE', toggle('off')).describe(
      'on: the chip’s next tap must follow within 30 s, against an address read in advance; two in a row still pass.',
    ),
  }),
  passport: z.object({
    signing: setting('PASSPORT_SIGNING', toggle('off')).describe(
      'on: passports also come signed, to clients that ask for that form. Keys are made in DATA_DIR/keys/issuer.jwks.json.',
    ),
    issuerName: setting(
      'ISSUER_NAME',
      pattern(/^(?! )[^\p{C}]{1,100}(?<! )$/u, '1 to 100 characters', 'Touchstone verification service'),
    ).describe('Name of the passports’ issuer: the operator of this service.'),
    apple: appleSettings,
    applePasswordFile: applePasswordSetting,
    google: googleSettings,
  }),
  pages: pageSettings,
  graphql: z.object({
    introspection: setting('GRAPHQL_INTROSPECTION', toggle('on')).describe(
      'off: GraphQL does not describe its schema; the playground then completes nothing.',
    ),
    persisted: setting('GRAPHQL_PERSISTED', file).describe(
      'JSON file of the only documents that GraphQL runs, by the SHA-256 of their texts; empty: every document.',
    ),
  }),
  gateway: gatewaySettings,
  agents: z.object({
    origins: setting('MCP_ORIGINS', origins).describe(
      'Origins of browser pages that may call MCP, besides this host’s own.',
    ),
    id: setting('AGENT_ID', optional(whole(0, 999_999_999_999, 0))).describe(
      'This service’s number in the ERC-8004 identity registry.',
    ),
    identity: setting('AGENT_IDENTITY_REGISTRY', address('0x8004a818bfb912233c491871b3d84c89a494bd9e')).describe(
      'ERC-8004 identity registry; the default is the one on Base Sepolia.',
    ),
    reputation: setting('AGENT_REPUTATION_REGISTRY', address('0x8004b663056a597dffe9eccc1965a193b7388713')).describe(
      'ERC-8004 reputation registry; the default is the one on Base Sepolia.',
    ),
    reviewers: setting('AGENT_REVIEWERS', addresses()).describe(
      'Reviewers whose feedback counts in reputation lookups; empty: everybody’s, which anyone can make up.',
    ),
    remoteFiles: setting('AGENT_REMOTE_FILES', toggle('off')).describe(
      'on: registration files of looked-up agents are fetched from public https addresses.',
    ),
    securityContact: setting(
      'SECURITY_CONTACT',
      optional(pattern(/^(?:mailto:[^\s<>]+@[^\s<>]+|https:\/\/[^\s<>]+)$/, 'a mailto: or https: URL')),
    ).describe('Contact for reports of vulnerabilities, for /.well-known/security.txt; empty: there is no such file.'),
  }),
})

const byVariable: Record<string, Setting> = {}
mapSettings(configSchema, (each) => (byVariable[each.variable] = each))

/** Settings by the names of their variables, in the order of the schema. */
export const settings: Readonly<Record<string, Setting>> = byVariable

function host(name: string, portVariable: string, portNumber: number, urlVariable: string, example: string) {
  return z.object({
    port: setting(portVariable, port(portNumber)).describe(`Port of the ${name}; 0 chooses a free one.`),
    url: setting(urlVariable, optional(origin(example))).describe(
      `Public URL of the ${name}, used in every link; empty: http:// with HOST, or 127.0.0.1 where that is all addresses, and its port.`,
    ),
  })
}
