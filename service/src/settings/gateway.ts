/** Settings of the gateway: price, where money goes, who settles, what signs (spec §2.6, §4.8). */
import { address, choice, hexBytes, optional, secret, setting, url, whole } from './kinds.ts'

const filePath = (help: string) => optional(setting('', 'a file', (text) => (text === '' ? null : text), help))

export const gatewaySettings = {
  PAYMENT_PAY_TO: optional(address('', 'Address that buyers pay; empty: this service has no gateway.')),
  PAYMENT_PRICE: whole(
    1,
    1_000_000_000,
    10_000,
    'Price of an attestation in the smallest unit of the asset: 10000 is 0.01 USDC.',
  ),
  PAYMENT_HIGH_PRICE: choice(['off', 'on'], 'on allows a price above 100000, which default buyers refuse.'),
  PAYMENT_ASSET: address(
    '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
    'Token that is paid with (EIP-3009); the default is USDC on Base Sepolia.',
  ),
  PAYMENT_ASSET_NAME: setting('USDC', '1 to 50 characters', shortText, 'EIP-712 domain name of the token.'),
  PAYMENT_ASSET_VERSION: setting('2', '1 to 50 characters', shortText, 'EIP-712 domain version of the token.'),
  PAYMENT_V2_HEADER: choice(['on', 'off'], 'off: no PAYMENT-REQUIRED header, for clients of x402 version 1 only.'),
  FACILITATOR_URL: optional(
    url(['http', 'https'], 'Remote x402 facilitator; empty: this process settles with FACILITATOR_KEY.'),
  ),
  FACILITATOR_KEY: secret(
    optional(hexBytes(32, 32, 'Private key that pays the gas of settlements; used for nothing else.')),
  ),
  ATTESTATION_KEY: secret(
    optional(
      hexBytes(
        32,
        32,
        'Private key that signs attestations; empty: ATTESTATION_KEYSTORE, or a key made once in DATA_DIR/keys.',
      ),
    ),
  ),
  ATTESTATION_KEYSTORE: filePath('V3 keystore file (Web3 Secret Storage) with the key that signs attestations.'),
  ATTESTATION_KEYSTORE_PASSWORD_FILE: filePath('File whose first line is the password of ATTESTATION_KEYSTORE.'),
  PAYER_KEY: secret(
    optional(hexBytes(32, 32, 'Private key that `touchstone pay` pays with; the service itself never uses it.')),
  ),
} as const

function shortText(text: string): string | null {
  return /^[^\p{C}]{1,50}$/u.test(text) ? text : null
}
