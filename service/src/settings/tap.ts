/** Settings of taps, passports and pages (spec §2.8, §4.4–§4.6). */
import { choice, hexBytes, optional, secret, setting, url, whole } from './kinds.ts'

export const tapSettings = {
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
} as const
