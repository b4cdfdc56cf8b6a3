/** Settings of the payment gateway (spec §2.6, §4.8), a part of the schema of the configuration. */
import { z } from 'zod'
import {
  address,
  addresses,
  file,
  hexBytes,
  list,
  mapped,
  optional,
  openUrl,
  pattern,
  toggle,
  whole,
} from './parsers.ts'
import { secret, setting } from './setting.ts'

const keyBytes = hexBytes(32, 32)
const privateKey = optional(keyBytes)
const privateKeys = mapped(
  list('private keys of 32 bytes in hex', (text) => keyBytes.parse(text) !== undefined),
  (texts) => texts.flatMap((text) => keyBytes.parse(text) ?? []),
)
/** The factories of Coinbase Smart Wallet, versions 1 and 1.1. */
const walletFactories = '0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a,0xBA5ED110eFDBa3D005bfC882d75358ACBbB85842'
const shortText = (fallback: string) => pattern(/^[^\p{C}]{1,50}$/u, '1 to 50 characters', fallback)

export const gatewaySettings = z.object({
  payTo: setting('PAYMENT_PAY_TO', optional(address())).describe(
    'Address that buyers pay; empty: this service has no gateway.',
  ),
  price: setting('PAYMENT_PRICE', mapped(whole(1, 1_000_000_000, 10_000), BigInt)).describe(
    'Price of an attestation in the smallest unit of the asset: 10000 is 0.01 USDC.',
  ),
  allowHighPrice: setting('PAYMENT_HIGH_PRICE', toggle('off')).describe(
    'on allows a price above 100000, which default buyers reject.',
  ),
  asset: z.object({
    address: setting('PAYMENT_ASSET', address('0x036cbd53842c5426634e7929541ec2318f3dcf7e')).describe(
      'Token that is paid with (EIP-3009); the default is USDC on Base Sepolia.',
    ),
    name: setting('PAYMENT_ASSET_NAME', shortText('USDC')).describe('EIP-712 domain name of the token.'),
    version: setting('PAYMENT_ASSET_VERSION', shortText('2')).describe('EIP-712 domain version of the token.'),
  }),
  retentionDays: setting('PAYMENT_RETENTION_DAYS', whole(1, 36_500, 3_650)).describe(
    'Days for which paid payments and the transactions of the facilitator are kept for accounting; unpaid ones go after 7.',
  ),
  v2Header: setting('PAYMENT_V2_HEADER', toggle('on')).describe(
    'off: no PAYMENT-REQUIRED header, for clients of x402 version 1 only.',
  ),
  channels: setting('PAYMENT_CHANNELS', toggle('off')).describe(
    'on also sells through payment channels (x402 batch-settlement): buyers deposit once, and each purchase is a signed voucher.',
  ),
  channelKeys: secret('PAYMENT_CHANNEL_KEYS', privateKeys).describe(
    'Private keys that authorize claims of payment channels; new channels take the first. They hold no money, and every process has the same.',
  ),
  facilitatorUrl: setting('FACILITATOR_URL', optional(openUrl)).describe(
    'Remote x402 facilitator; empty: this process settles with FACILITATOR_KEY.',
  ),
  facilitatorHeadersFile: setting('FACILITATOR_HEADERS_FILE', file).describe(
    'JSON file, closed to other users, of header names and values that FACILITATOR_URL demands; read for each request.',
  ),
  facilitatorKey: secret('FACILITATOR_KEY', privateKey).describe(
    'Private key that pays the gas of settlements; used for nothing else.',
  ),
  facilitatorKeys: secret('FACILITATOR_KEYS', privateKeys).describe(
    'More private keys that take turns at settlements; as FACILITATOR_KEY.',
  ),
  walletFactories: setting('FACILITATOR_WALLET_FACTORIES', addresses(walletFactories)).describe(
    'Factories that may deploy the smart wallet of a buyer at the cost of the facilitator (ERC-6492); empty: none.',
  ),
  attestationKey: secret('ATTESTATION_KEY', privateKey).describe(
    'Private key that signs attestations; empty: ATTESTATION_KEYSTORE, or a key made once in DATA_DIR/keys.',
  ),
  keystore: setting('ATTESTATION_KEYSTORE', file).describe(
    'V3 keystore file (Web3 Secret Storage) with the key that signs attestations.',
  ),
  keystorePasswordFile: setting('ATTESTATION_KEYSTORE_PASSWORD_FILE', file).describe(
    'File whose first line is the password of ATTESTATION_KEYSTORE.',
  ),
  payerKey: secret('PAYER_KEY', privateKey).describe(
    'Private key that `touchstone pay` pays with; the service itself never uses it.',
  ),
})
