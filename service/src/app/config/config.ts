/** Reads the environment into one frozen `Config`, and checks the settings that depend on one another. */
import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import { constantTimeEqual } from '../../lib/bytes.ts'
import { type KeyName, operatorSettings } from './key-source.ts'
import { appleSettings, googleSettings } from './pass-settings.ts'
import { configSchema, type Role } from './schema.ts'
import { mapSettings, type Setting } from './setting.ts'

/** Secret are `store`, `traces.headers`, `limits.redisUrl`, `chain.rpcUrls`, `chain.wsUrls`, `backupKey`, and the keys in `tap`, `operator` and `gateway`. */
export type Config = Readonly<ReturnType<typeof readConfig>>

/** A setting that cannot be used, in one sentence that names it. */
export class ConfigError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>

/** Throws a ConfigError that names the variable and the text found, which is left out where it is secret. */
export function readConfig(env: Environment) {
  const parsed = configSchema.safeParse(mapSettings(configSchema, (setting) => textOf(setting, env)))
  if (!parsed.success) throw new ConfigError(parsed.error.issues[0]?.message)
  const { chain, limits, ...config } = parsed.data
  const { gateway, store, workers } = config
  assertOnePlace(config)
  if (gateway.price > 100_000n && !gateway.allowHighPrice)
    throw new ConfigError(
      'PAYMENT_PRICE is above 100000, which default buyers reject; set PAYMENT_HIGH_PRICE=on to allow it.',
    )
  const roles = activeRoles(config.roles, gateway.payTo, (env['ONLY'] ?? '').trim() !== '')
  const { kek, stationKek } = config.tap
  const { backupKey } = config
  if (backupKey !== null && [kek, stationKek].some((other) => other !== null && constantTimeEqual(backupKey, other)))
    throw new ConfigError('BACKUP_KEY must be another key than TAG_KEK and STATION_KEK, or empty.')
  if (kek !== null && stationKek !== null && constantTimeEqual(kek, stationKek))
    throw new ConfigError('STATION_KEK must be another key than TAG_KEK: a verifier has no key of the station.')
  if (config.tap.countryHeader !== null && limits.trustedProxies.length === 0)
    throw new ConfigError('TAP_COUNTRY_HEADER needs TRUSTED_PROXIES, the proxies that set it.')
  if (chain.trust === 'proof' && (chain.interface !== 'registry' || chain.codeHash === null))
    throw new ConfigError(
      'CHAIN_TRUST=proof needs CHAIN_INTERFACE=registry and CHAIN_CODE_HASH: the storage of another contract means something else.',
    )
  if (chain.cache === 'events' && chain.interface !== 'registry')
    throw new ConfigError(
      'CHAIN_CACHE=events needs CHAIN_INTERFACE=registry: another contract may change a record without an event.',
    )
  if (gateway.facilitatorHeadersFile !== null && !confidential.test(gateway.facilitatorUrl ?? ''))
    throw new ConfigError('FACILITATOR_HEADERS_FILE needs a FACILITATOR_URL with https, or on this machine.')
  const { endpoint, headers } = config.traces
  if (Object.keys(headers).length > 0 && !confidential.test(endpoint ?? ''))
    throw new ConfigError(
      'OTEL_EXPORTER_OTLP_HEADERS needs an OTEL_EXPORTER_OTLP_ENDPOINT with https, or on this machine.',
    )
  if (gateway.keystore !== null && gateway.keystorePasswordFile === null)
    throw new ConfigError('ATTESTATION_KEYSTORE needs ATTESTATION_KEYSTORE_PASSWORD_FILE, a file with its password.')
  if (workers > 1 && store.databaseUrl === null)
    throw new ConfigError(
      'WORKERS above 1 needs PostgreSQL: set DATABASE_URL, because the embedded database belongs to one process.',
    )
  if ((config.metricsPort ?? 0) > 0 && (config.metricsPort ?? 0) + workers - 1 > 65_535)
    throw new ConfigError(
      `METRICS_PORT is ${config.metricsPort}, and leaves no port for each of ${workers} WORKERS: the last one is at most 65535.`,
    )
  if (store.directUrl !== null && store.databaseUrl === null)
    throw new ConfigError(
      'DATABASE_DIRECT_URL is DATABASE_URL without a pooler: set that as well, or leave both empty.',
    )
  if (store.readUrl !== null && store.databaseUrl === null)
    throw new ConfigError('DATABASE_READ_URL is a replica of DATABASE_URL: set that as well, or leave both empty.')
  return Object.freeze({
    ...config,
    roles,
    passport: passportOf(config.passport),
    chain: {
      ...chain,
      codeHash: chain.codeHash ?? undefined,
      maxHeadAgeSeconds: chain.maxHeadAgeSeconds ?? { latest: 30, safe: 600, finalized: 3600 }[chain.blockTag],
      cache: chain.cache ?? (chain.interface === 'registry' ? ('events' as const) : ('head' as const)),
    },
    limits: { ...limits, store: limitStore(limits, store.databaseUrl) },
  })
}

/**
 * Reads the environment of a process that serves. Proof bundles need the hash of the code; commands serve none. A gateway among its roles
 * needs the keys that settle and claim; commands and processes of other roles only name the gateway, and have none of them.
 */
export function readServiceConfig(env: Environment): Config {
  const config = readConfig(env)
  if (config.roles.has('gateway')) assertSettles(config)
  if (config.proofBundle && config.chain.codeHash === undefined)
    throw new ConfigError('PROOF_BUNDLE=on needs CHAIN_CODE_HASH: a proof is of the storage of known code.')
  return config
}

function assertSettles({ gateway, keys }: Config): void {
  const hasKey =
    gateway.facilitatorKey !== null || gateway.facilitatorKeys.length > 0 || keys?.names.has('facilitator') === true
  if (gateway.facilitatorUrl === null && !hasKey)
    throw new ConfigError(
      'PAYMENT_PAY_TO needs a facilitator: set FACILITATOR_KEY, or FACILITATOR_URL for a remote facilitator.',
    )
  if (gateway.channels && gateway.channelKeys.length === 0)
    throw new ConfigError('PAYMENT_CHANNELS=on needs PAYMENT_CHANNEL_KEYS, the key that authorizes claims.')
  if (gateway.channels && gateway.facilitatorUrl !== null)
    throw new ConfigError('PAYMENT_CHANNELS=on needs FACILITATOR_KEY: a remote facilitator does not claim.')
}

type Keys = Pick<z.infer<typeof configSchema>, 'keys' | 'operator' | 'gateway'>

/** Rejects a key that a setting holds and that KEYS places in the token. One of the two would be ignored. */
function assertOnePlace({ keys, operator, gateway }: Keys): void {
  const settings: readonly (readonly [KeyName, string, boolean])[] = [
    ['operator', 'OPERATOR_KEY', operator.key !== null],
    ...operatorSettings.map(([role, variable]) => ['operator', variable, operator[`${role}Key`] !== null] as const),
    ['attester', 'ATTESTER_KEY', operator.attesterKey !== null],
    ['facilitator', 'FACILITATOR_KEY', gateway.facilitatorKey !== null],
    ['facilitator', 'FACILITATOR_KEYS', gateway.facilitatorKeys.length > 0],
    ['attestation', 'ATTESTATION_KEY', gateway.attestationKey !== null],
    ['attestation', 'ATTESTATION_KEYSTORE', gateway.keystore !== null],
  ]
  for (const [name, variable, isSet] of settings)
    if (isSet && keys?.names.has(name) === true)
      throw new ConfigError(
        `${variable} is set, and KEYS places the key ${name} in the token: remove the setting, or leave ${name} out of keys=.`,
      )
}

/**
 * Returns the text of a setting. A secret one may be in the file that NAME_FILE names; the end of its last line does not count. An empty file
 * is no empty setting: a disk that was full leaves one, and without DATABASE_URL another database would be made.
 */
function textOf({ variable, secret }: Setting, env: Environment): string | undefined {
  const file = `${variable}_FILE`
  const path = secret ? (env[file] ?? '') : ''
  if (path === '') return env[variable]
  if ((env[variable] ?? '') !== '')
    throw new ConfigError(`${variable} and ${file} are both set: leave one of them empty.`)
  const text = readSecretFile(file, path)
  if (text.trim() === '') throw new ConfigError(`${file} names an empty file: write ${variable} into it.`)
  return text.replace(/\r?\n$/, '')
}

function readSecretFile(file: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError(`${file} names a file that cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

type Passport = z.infer<typeof configSchema>['passport']

/** Returns the settings of passports with those of each wallet as a whole, or null for a wallet without passes. */
function passportOf({ apple: ofApple, google: ofGoogle, ...rest }: Passport) {
  const apple = wholeGroup('Passes of Apple Wallet', appleSettings, ofApple)
  const google = wholeGroup('Passes of Google Wallet', googleSettings, ofGoogle)
  if ((apple ?? google) !== null && !rest.signing)
    throw new ConfigError('Passes of wallets need PASSPORT_SIGNING=on: they are forms of a signed certificate.')
  if (apple === null && rest.applePasswordFile !== null)
    throw new ConfigError(
      'APPLE_PASS_KEY_PASSWORD_FILE is the password of APPLE_PASS_KEY_FILE: set that as well, or none.',
    )
  return { ...rest, apple, google }
}

type Whole<Group> = { readonly [Name in keyof Group]: NonNullable<Group[Name]> }

/** Returns a group of settings that belong together, or null where none is set. Throws a ConfigError that names those that are missing. */
function wholeGroup<Group extends object>(name: string, schema: z.ZodObject, group: Group): Whole<Group> | null {
  const variables = mapSettings(schema, ({ variable }) => variable) as Record<string, string>
  const missing = Object.entries(group).flatMap(([field, value]) => (value === null ? [variables[field]] : []))
  if (missing.length === Object.keys(group).length) return null
  if (missing.length > 0)
    throw new ConfigError(
      `${name} also need ${missing.join(', ')}: set ${Object.values(variables).join(', ')}, or none.`,
    )
  return group as Whole<Group>
}

/** Origins to which a secret may be sent. */
const confidential = /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|\/|$))/i

/** Returns the URL of a listener without a public one. One of all addresses, or of a link, is asked at 127.0.0.1. */
export function localUrl(bind: string, portNumber: number): string {
  const host = /^[0:.]+$|%/.test(bind) ? '127.0.0.1' : bind
  return `http://${host.includes(':') ? `[${host}]` : host}:${portNumber}`
}

/** Removes the gateway where no address to pay is set: then there is nothing to sell. */
function activeRoles(named: readonly Role[], payTo: string | null, isAsked: boolean): ReadonlySet<Role> {
  if (payTo !== null) return new Set(named)
  if (isAsked && named.includes('gateway'))
    throw new ConfigError('The role gateway needs PAYMENT_PAY_TO, the address that buyers pay.')
  return new Set(named.filter((role) => role !== 'gateway'))
}

type Limits = z.infer<typeof configSchema>['limits']

function limitStore({ store, redisUrl }: Limits, databaseUrl: string | null): Exclude<Limits['store'], 'auto'> {
  if (store === 'auto') return redisUrl !== null ? 'redis' : databaseUrl !== null ? 'postgres' : 'process'
  const [variable, url] = store === 'redis' ? ['REDIS_URL', redisUrl] : ['DATABASE_URL', databaseUrl]
  if (store !== 'process' && url === null)
    throw new ConfigError(`RATE_LIMIT_STORE=${store} needs ${variable}, or set RATE_LIMIT_STORE=process.`)
  return store
}
