/**
 * Every setting of the service, once: name, meaning, default, how its text is read. `config.ts` reads the environment by this
 * table; `--help` and the handbook print it.
 */
import { BlockList, isIP } from 'node:net'
import { resolve } from 'node:path'
import type { Hex } from '@touchstone/verdict'

export type Setting<T> = {
  readonly help: string
  readonly fallback: string
  readonly read: (text: string) => T | null
  readonly want: string
  readonly secret?: boolean
}

const setting = <T>(fallback: string, want: string, read: (text: string) => T | null, help: string): Setting<T> => ({
  fallback,
  want,
  read,
  help,
})
const whole = (from: number, to: number, fallback: number, help: string) =>
  setting(
    String(fallback),
    `a whole number from ${from} to ${to}`,
    (text) => {
      const value = Number(text)
      return /^\d{1,12}$/.test(text) && value >= from && value <= to ? value : null
    },
    help,
  )
const choice = <const T extends string>(values: readonly [T, ...T[]], help: string) =>
  setting<T>(values[0], `one of ${values.join(', ')}`, (text) => values.find((value) => value === text) ?? null, help)
const list = (want: string, isItem: (text: string) => boolean, help: string) =>
  setting(
    '',
    `${want}, separated by commas`,
    (text) => {
      const items = text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
      return items.every(isItem) ? items : null
    },
    help,
  )
const address = (fallback: string, help: string) =>
  setting(
    fallback,
    'a contract address (0x and 40 hex digits)',
    (text) => (/^0x[0-9a-fA-F]{40}$/.test(text) ? (text.toLowerCase() as Hex) : null),
    help,
  )
const optional = <T>(inner: Setting<T>): Setting<T | null> => ({
  ...inner,
  fallback: '',
  want: `${inner.want}, or empty`,
  read: (text) => (text === '' ? null : inner.read(text)),
})
const secret = <T>(inner: Setting<T>): Setting<T> => ({ ...inner, secret: true })
const hexBytes = (least: number, most: number, help: string) =>
  setting(
    '',
    `${least === most ? least : `${least} to ${most}`} bytes in hex`,
    (text) => {
      const digits = text.replace(/^0x/, '')
      return /^([0-9a-fA-F]{2})+$/.test(digits) && digits.length >= 2 * least && digits.length <= 2 * most
        ? Uint8Array.from(Buffer.from(digits, 'hex'))
        : null
    },
    help,
  )
const url = (schemes: readonly string[], help: string) =>
  setting('', `a URL (${schemes.join(', ')})`, (text) => (isUrl(text, schemes) ? text : null), help)

/** All settings, in the order in which the handbook shows them. */
export const settings = {
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
  BASE_URL: optional(
    setting(
      '',
      'an http or https URL without path, such as https://verify.example.com',
      originOf,
      'Public URL of the verification host, used in every link; empty: http://127.0.0.1 and its port.',
    ),
  ),
  DATABASE_URL: secret(
    optional(url(['postgres', 'postgresql'], 'PostgreSQL 15 or newer; empty: the embedded database in DATA_DIR.')),
  ),
  CHAIN_RPC_URLS: secret(
    list(
      'http or https URLs',
      (text) => isUrl(text, ['http', 'https']),
      'JSON-RPC providers, best first. Two or more survive the fault of one.',
    ),
  ),
  CHAIN_CONTRACT: optional(address('', 'Address of the registry contract.')),
  CHAIN_INTERFACE: choice(
    ['auto', 'registry', 'foreign'],
    'registry: CHAIN_CONTRACT is an AssetRegistry of this project; foreign: another contract with getAsset; auto: ask it (ERC-165).',
  ),
  CHAIN_BLOCK_TAG: choice(['latest', 'safe', 'finalized'], 'Which head verdicts are pinned to.'),
  CHAIN_TRUST: choice(
    ['rpc', 'quorum', 'proof'],
    'rpc believes any healthy provider; quorum wants CHAIN_QUORUM of them to agree; proof checks Merkle proofs.',
  ),
  CHAIN_QUORUM: whole(2, 9, 2, 'Providers that must agree in quorum mode.'),
  CHAIN_CODE_HASH: optional(
    setting(
      '',
      '0x and 64 hex digits',
      (text) => (/^0x[0-9a-f]{64}$/.test(text) ? (text as Hex) : null),
      'keccak256 of the deployed contract code; needed in proof mode.',
    ),
  ),
  CHAIN_RECORDS_SLOT: whole(0, 1_000_000, 3, 'Storage slot of the record mapping, for proofs.'),
  CHAIN_START_BLOCK: whole(
    0,
    999_999_999_999,
    0,
    'Block of the contract’s deployment, or any before: where the history of a token begins.',
  ),
  CHAIN_MAX_HEAD_AGE_SECONDS: optional(
    whole(0, 86_400, 30, 'Oldest acceptable head; 0: any; empty: 30 for latest, 600 for safe, 3600 for finalized.'),
  ),
  CHAIN_CACHE: optional(
    choice(
      ['events', 'head', 'off'],
      'events keeps a verdict until its token changes; head until the next block; off reads every time. Empty: events with CHAIN_INTERFACE=registry, else head.',
    ),
  ),
  CHAIN_CACHE_ENTRIES: whole(1, 10_000_000, 100_000, 'Most verdicts kept in memory (about 1.5 kB each).'),
  TAG_KEK: secret(
    optional(
      hexBytes(
        32,
        32,
        'Key that seals the tag key files; without it no tap is verified (503). Make one with: openssl rand -hex 32.',
      ),
    ),
  ),
  TAG_PEPPER: secret(
    optional(
      hexBytes(
        16,
        64,
        'Secret of the tag commitments on chain (TAG_COMMITMENT=hmac). Keep it for ever: every bound tag depends on it.',
      ),
    ),
  ),
  TAG_COMMITMENT: choice(
    ['hmac', 'keccak-uid'],
    'How the chain knows a tag: hmac with TAG_PEPPER, or keccak256 of the UID as some existing deployments have it.',
  ),
  TAP_WINDOW_SECONDS: whole(
    0,
    3_600,
    300,
    'Seconds from its first use in which the same tap passes again; 0: each tap once.',
  ),
  TAP_BIND: choice(['off', 'cookie'], 'cookie: only the browser that presented a tap first may repeat it.'),
  TAP_CHALLENGE: choice(
    ['off', 'on'],
    'on: a second tap within 60 s must follow the first, against addresses read in advance.',
  ),
  PASSPORT_SIGNING: choice(
    ['off', 'on'],
    'on: passports also come signed, for whoever asks for that form. Keys are made in DATA_DIR/keys/issuer.jwks.json.',
  ),
  ISSUER_NAME: setting(
    'Touchstone verification service',
    '1 to 100 characters',
    (text) => (/^(?! )[^\p{C}]{1,100}(?<! )$/u.test(text) ? text : null),
    'Name of the passports’ issuer: whoever runs this service.',
  ),
  PUBLIC_RPC_URL: optional(
    url(
      ['http', 'https'],
      'JSON-RPC provider that visitors’ browsers may ask on the pages, for the recheck; it must allow other origins. Never one with a key.',
    ),
  ),
  EXPLORER_URL: optional(
    url(['http', 'https'], 'Block explorer that the pages link transactions to, such as https://sepolia.basescan.org.'),
  ),
  OPERATOR_KEY: secret(
    optional(
      hexBytes(
        32,
        32,
        'Private key that writes to the registry (issuer, binder, QA, guardian, recycler, relayer); empty: this service only reads.',
      ),
    ),
  ),
  ATTESTER_KEY: secret(optional(hexBytes(32, 32, 'Private key that signs claims after a tap (ATTESTER role).'))),
  DEMO: choice(['off', 'on'], 'on lets demo tag batches, software tags and published keys in; never in production.'),
  RATE_LIMIT_ASSET: whole(0, 1_000_000_000, 60, 'Keyless reads a client IP may make in a window; 0: no limit.'),
  RATE_LIMIT_TAP: whole(0, 1_000_000_000, 30, 'Tap requests a client IP may make in a window; 0: no limit.'),
  RATE_LIMIT_WINDOW_SECONDS: whole(1, 86_400, 60, 'Length of a window of every limit.'),
  TRUSTED_PROXIES: list('IP addresses or CIDR ranges', isRange, 'Proxies whose X-Forwarded-For is believed.'),
  PROOF_BUNDLE: choice(
    ['off', 'on'],
    'on: GET /api/asset/{tokenId}/proof answers with the verdict and its storage proof.',
  ),
  LOG_LEVEL: choice(['info', 'debug', 'warn', 'error', 'silent'], 'Lowest level that is written.'),
} as const

/** Scheme, host and port; null for a URL that says more. */
function originOf(text: string): string | null {
  if (!isUrl(text, ['http', 'https'])) return null
  const url = new URL(text)
  return url.href === `${url.origin}/` ? url.origin : null
}

function isUrl(text: string, schemes: readonly string[]): boolean {
  return URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1))
}

function isRange(text: string): boolean {
  const [address = '', bits] = text.split('/')
  if (isIP(address) === 0) return false
  if (bits === undefined) return true
  try {
    new BlockList().addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
    return /^\d{1,3}$/.test(bits)
  } catch {
    return false
  }
}
