/**
 * The only reader of the environment: its texts, by the table of `settings.ts`, to one frozen object with a slice for each part.
 */
import { settings, type Setting } from './settings.ts'

type Settings = typeof settings
export type SettingName = keyof Settings
type Values = { readonly [Name in SettingName]: Settings[Name] extends Setting<infer T> ? T : never }

/** Each host's and part's slice; secret are `store.databaseUrl`, `chain.rpcUrls`, and the keys in `tap` and `operator`. */
export type Config = ReturnType<typeof readConfig>

/** A setting that cannot be used, in one sentence that names it. */
export class ConfigError extends Error {}

/** Reads the settings; a wrong one throws a ConfigError that names the variable and the text found (never a secret's). */
export function readConfig(env: Readonly<Record<string, string | undefined>>) {
  const value = <Name extends SettingName>(name: Name) => valueOf(name, env[name]) as Values[Name]
  const blockTag = value('CHAIN_BLOCK_TAG')
  const contractInterface = value('CHAIN_INTERFACE')
  return Object.freeze({
    dataDir: value('DATA_DIR'),
    hosts: { bind: value('HOST'), verificationPort: value('VERIFICATION_PORT'), baseUrl: value('BASE_URL') },
    store: { databaseUrl: value('DATABASE_URL') },
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
    demo: value('DEMO') === 'on',
    limits: {
      asset: value('RATE_LIMIT_ASSET'),
      tap: value('RATE_LIMIT_TAP'),
      windowSeconds: value('RATE_LIMIT_WINDOW_SECONDS'),
      trustedProxies: value('TRUSTED_PROXIES'),
    },
    proofBundle: value('PROOF_BUNDLE') === 'on',
    logLevel: value('LOG_LEVEL'),
  })
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
