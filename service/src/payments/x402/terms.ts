/**
 * The terms of a sale (spec §2.6), and the payment requirements for both generations of buyers. They are the body of x402 version 1, the
 * `PAYMENT-REQUIRED` header of version 2, and the discovery document.
 */
import type { Hex } from '@touchstone/verdict'
import { caipNetwork, chainId, chainName } from '../../domain/chain.ts'
import { channelScheme } from '../channels/channel.ts'
import { errors, type PaymentErrorCode } from '../errors.ts'
import { identifierExtension, identifierOffer } from './identifier.ts'

/** Seconds in which a payment must settle, counted from its signing. */
export const maxTimeoutSeconds = 30
/** Default buyers of the first generation refuse more than 0.10 USDC. */
export const highestUsualPrice = 100_000n

/** `price` is in the token's smallest units. `resource` is the public URL of POST /verify. Token name and version are those of its EIP-712 domain. */
export type PaymentTerms = {
  readonly price: bigint
  readonly asset: Hex
  readonly payTo: Hex
  readonly resource: string
  readonly tokenName: string
  readonly tokenVersion: string
  /** Payment channels are offered too. */
  readonly channels?: ChannelTerms | undefined
}

/**
 * The terms of payment channels. `receiverAuthorizers` sign claims; new channels take the first one. `withdrawDelay` is in seconds, `minDeposit` in
 * the token's smallest units.
 */
export type ChannelTerms = {
  readonly receiverAuthorizers: readonly [Hex, ...Hex[]]
  readonly withdrawDelay: number
  readonly minDeposit: bigint
}

/** The payer can have a deposit back after this many seconds: the time in which vouchers must be claimed. */
const withdrawDelay = 86_400
/** A deposit costs as much gas as several payments. Stock clients deposit at most 5 USDC, where nothing else is set. */
const depositPrices = 100n
const usualDeposit = 5_000_000n

/** Returns the terms of payment channels whose claims these accounts sign. */
export function channelTerms(
  [first, ...others]: readonly [{ readonly address: Hex }, ...{ readonly address: Hex }[]],
  price: bigint,
): ChannelTerms {
  const wanted = depositPrices * price
  return {
    receiverAuthorizers: [first.address, ...others.map(({ address }) => address)],
    withdrawDelay,
    minDeposit: wanted < usualDeposit ? wanted : usualDeposit > price ? usualDeposit : price,
  }
}

const description =
  'Bound-state proof: the on-chain state of one physical product, with an ECDSA signature that a contract can check.'
const mimeType = 'application/json'

export function tokenDomain({ tokenName, tokenVersion, asset }: PaymentTerms) {
  return { name: tokenName, version: tokenVersion, chainId, verifyingContract: asset }
}

/** Returns the requirements of x402 version 2. The amount may be that of an earlier price. */
export function requirementsV2(terms: PaymentTerms, amount = terms.price, payTo = terms.payTo) {
  return {
    scheme: 'exact',
    network: caipNetwork,
    amount: amount.toString(),
    asset: terms.asset,
    payTo,
    maxTimeoutSeconds,
    extra: { name: terms.tokenName, version: terms.tokenVersion },
  } as const
}

/** Returns the requirements of a purchase through a channel. `found`: what the seller has of the buyer's channel. */
function channelRequirements(terms: PaymentTerms, channels: ChannelTerms, found: object = {}) {
  const [receiverAuthorizer] = channels.receiverAuthorizers
  const { extra, ...requirements } = requirementsV2(terms)
  const { withdrawDelay, minDeposit } = channels
  const own = { receiverAuthorizer, withdrawDelay, minDeposit: minDeposit.toString(), assetTransferMethod: 'eip3009' }
  return { ...requirements, scheme: channelScheme, extra: { ...extra, ...own, ...found } } as const
}

/** Returns the header of a 402 with the sum of a stock client's channel. The client signs the next voucher over that. */
export function correctiveHeader(terms: PaymentTerms, channels: ChannelTerms, found: object): string {
  const accepts = [channelRequirements(terms, channels, found)]
  const error = 'invalid_batch_settlement_evm_cumulative_amount_mismatch'
  return Buffer.from(JSON.stringify({ ...paymentRequiredV2(terms), accepts, error })).toString('base64')
}

/** `header` is the base64 of the version 2 document; empty where a setting switches it off. */
export type PaymentRequired = { readonly body: string; readonly header: string }

/** Makes the payment requirements of each 402 code once at start, because responses differ by their error code only. */
export function createPaymentRequired(
  terms: PaymentTerms,
  withHeader = true,
): ReadonlyMap<PaymentErrorCode, PaymentRequired> {
  const documents = Object.values(errors).flatMap(({ error, status, message }) => {
    if (status !== 402) return []
    const body = JSON.stringify({ x402Version: 1, error, message, accepts: [requirementsV1(terms)] })
    const required = JSON.stringify({ ...paymentRequiredV2(terms), error })
    return [[error, { body, header: withHeader ? Buffer.from(required).toString('base64') : '' }] as const]
  })
  return new Map(documents)
}

/** Makes /.well-known/x402 (and x402.json): enough to pay before the first request. */
export function paymentDocument(terms: PaymentTerms): string {
  const { resource } = terms
  const item = { resource, type: 'http', method: 'POST', description, mimeType, inputSchema } as const
  return JSON.stringify({
    x402Version: 2,
    x402Versions: [1, 2],
    resources: [resource],
    items: [
      { ...item, x402Version: 1, accepts: [requirementsV1(terms)] },
      { ...item, ...paymentRequiredV2(terms), resource },
    ],
  })
}

/** Contains spec §2.6 and more: without `payTo` and `asset` real buyers throw, without `extra` they sign a wrong domain. */
function requirementsV1(terms: PaymentTerms) {
  return {
    scheme: 'exact',
    network: chainName,
    maxAmountRequired: terms.price.toString(),
    resource: terms.resource,
    description,
    mimeType,
    payTo: terms.payTo,
    maxTimeoutSeconds,
    asset: terms.asset,
    outputSchema: {
      input: { type: 'http', method: 'POST', discoverable: true, bodyType: 'json', bodyFields: inputFields },
      output: outputSchema,
    },
    extra: { name: terms.tokenName, version: terms.tokenVersion },
  } as const
}

function paymentRequiredV2(terms: PaymentTerms) {
  return {
    x402Version: 2,
    resource: { url: terms.resource, description, mimeType },
    accepts: [requirementsV2(terms), ...(terms.channels ? [channelRequirements(terms, terms.channels)] : [])],
    extensions: { bazaar, [identifierExtension]: identifierOffer },
  } as const
}

const inputFields = {
  assetId: { type: 'string', required: true, description: 'Decimal token id, 0 to 2^256-1.', pattern: '^[0-9]{1,78}$' },
  chain: { type: 'string', description: 'base-sepolia, or left out.', enum: [chainName] },
  eas: { type: 'boolean', description: 'true: also as an EAS off-chain attestation.' },
} as const

/** JSON Schema of the request body. */
const inputSchema = {
  type: 'object',
  properties: {
    assetId: { type: 'string', pattern: '^[0-9]{1,78}$', description: 'Decimal token id, 0 to 2^256-1.' },
    chain: { type: 'string', enum: [chainName] },
    eas: { type: 'boolean' },
  },
  required: ['assetId'],
} as const

const outputSchema = {
  type: 'object',
  properties: {
    assetId: { type: 'string' },
    state: { type: 'string' },
    state_code: { type: 'integer' },
    authentic: { type: 'boolean' },
    flagged: { type: 'boolean' },
    chainRef: { type: 'object' },
    attestation: { type: 'object', description: 'message, digest, signature, signer, keyId and an EIP-712 form.' },
    payment: { type: 'object' },
  },
} as const

/** The discovery extension of x402 version 2: `info` is an example, `schema` describes `info`. */
const bazaar = {
  info: {
    input: { type: 'http', method: 'POST', bodyType: 'json', body: { assetId: '1', chain: chainName } },
    output: { type: 'json', example: { assetId: '1', chain: chainName, state: 'ACTIVATED', authentic: true } },
  },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      input: {
        type: 'object',
        properties: {
          type: { type: 'string', const: 'http' },
          method: { type: 'string', enum: ['POST'] },
          bodyType: { type: 'string', enum: ['json'] },
          body: inputSchema,
        },
        required: ['type', 'bodyType', 'body'],
      },
      output: { type: 'object', properties: { type: { type: 'string' }, example: { type: 'object' } } },
    },
    required: ['input'],
  },
} as const
