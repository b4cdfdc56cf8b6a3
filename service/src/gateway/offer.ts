/**
 * The 402 for both generations of buyers (spec §2.6): the body of x402 version 1 and the `PAYMENT-REQUIRED` header of version 2.
 * Everything is made once at start: an answer differs by its code only.
 */
import { errors, messageOf, statusOf, type ErrorCode } from './answers.ts'
import { chainName, description, maxTimeoutSeconds, mimeType, requirementsV2, type Terms } from './terms.ts'

/** `header` is the base64 of the version 2 document; empty where the setting leaves it out. */
export type Offer = { readonly body: string; readonly header: string }

/** The offer that goes with each 402 code. */
export function createOffers(terms: Terms, withHeader = true): ReadonlyMap<ErrorCode, Offer> {
  const codes = (Object.keys(errors) as ErrorCode[]).filter((error) => statusOf(error) === 402)
  return new Map(codes.map((error) => [error, offerOf(terms, error, withHeader)]))
}

function offerOf(terms: Terms, error: ErrorCode, withHeader: boolean): Offer {
  const body = { x402Version: 1, error, message: messageOf(error), accepts: [requirementsV1(terms)] }
  const required = { ...paymentRequiredV2(terms), error }
  return {
    body: JSON.stringify(body),
    header: withHeader ? Buffer.from(JSON.stringify(required)).toString('base64') : '',
  }
}

/** Spec §2.6, and what real buyers need besides: without `payTo` and `asset` they throw, without `extra` they sign a wrong domain. */
export function requirementsV1(terms: Terms) {
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

export function paymentRequiredV2(terms: Terms) {
  return {
    x402Version: 2,
    resource: { url: terms.resource, description, mimeType },
    accepts: [requirementsV2(terms)],
    extensions: { bazaar },
  } as const
}

const inputFields = {
  assetId: { type: 'string', required: true, description: 'Decimal token id, 0 to 2^256-1.', pattern: '^[0-9]{1,78}$' },
  chain: { type: 'string', description: 'base-sepolia, or left out.', enum: [chainName] },
} as const

/** JSON Schema of the request body. */
export const inputSchema = {
  type: 'object',
  properties: {
    assetId: { type: 'string', pattern: '^[0-9]{1,78}$', description: 'Decimal token id, 0 to 2^256-1.' },
    chain: { type: 'string', enum: [chainName] },
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
