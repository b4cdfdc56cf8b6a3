/** What the gateway takes and gives as Zod schemas (spec §2.6, §4.7, §4.8). */
import { z } from 'zod'
import { chainRefSchema, hash32, serviceStatus, stateCode, stateName, tokenIdText, version } from './verdict.ts'

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/)
const signature = z.string().regex(/^0x[0-9a-f]{130}$/)
const amount = z.string().regex(/^[0-9]+$/)

export const gatewayHealthSchema = z
  .strictObject({
    status: z.enum(['ok', 'degraded', 'not_ready']).meta({ description: 'not_ready: nothing is sold.' }),
    timestamp: z.iso.datetime(),
    runtime: z.string().meta({ examples: ['node/24.x'] }),
    attestation_signer: address.meta({ description: 'The key that signs now.' }),
    checks: z.record(z.string(), z.strictObject({ ok: z.boolean(), message: z.string() })),
  })
  .meta({ id: 'GatewayHealth', description: 'Whether the gateway can sell, from its last self-check.' })

export const purchaseSchema = z
  .object({
    assetId: z
      .string()
      .regex(/^[0-9]{1,78}$/)
      .exactOptional()
      .meta({ description: 'Decimal token id. Without it the answer is the offer.', examples: ['5'] }),
    chain: z.literal('base-sepolia').exactOptional(),
  })
  .meta({ id: 'Purchase', description: 'Which asset to attest.', examples: [{ assetId: '5', chain: 'base-sepolia' }] })

export const paymentRequiredSchema = z
  .strictObject({
    x402Version: z.literal(1),
    error: z.string().meta({ description: 'Code: payment_required, or what was wrong with the payment.' }),
    message: z.string(),
    accepts: z.array(
      z.strictObject({
        scheme: z.literal('exact'),
        network: z.literal('base-sepolia'),
        maxAmountRequired: amount.meta({ description: 'In the smallest units of the payment token.' }),
        resource: z.string().meta({ format: 'uri' }),
        description: z.string(),
        mimeType: z.literal('application/json'),
        payTo: address,
        maxTimeoutSeconds: z.literal(30),
        asset: address,
        outputSchema: z.record(z.string(), z.unknown()),
        extra: z.strictObject({ name: z.string(), version: z.string() }),
      }),
    ),
  })
  .meta({
    id: 'PaymentRequired',
    description: 'The offer of x402 version 1; PAYMENT-REQUIRED carries that of version 2.',
  })

/** Every code that is not a 402. */
export const gatewayErrorCodes = [
  'invalid_body',
  'unsupported_chain',
  'invalid_asset_id',
  'asset_id_not_attestable',
  'asset_not_found',
  'not_found',
  'method_not_allowed',
  'body_too_large',
  'rate_limited',
  'internal_error',
  'chain_unavailable',
  'payment_unavailable',
  'signer_unavailable',
  'ledger_unavailable',
  'not_ready',
  'settlement_pending',
] as const

export const gatewayErrorSchema = z
  .strictObject({
    error: z.enum(gatewayErrorCodes).meta({ description: 'Branch on this.' }),
    message: z.string().meta({ description: 'For people; its text may change.' }),
  })
  .meta({ id: 'GatewayError', description: 'Why nothing was sold; nothing was charged unless it says so.' })

export const soldSchema = z
  .strictObject({
    version,
    assetId: tokenIdText,
    chain: z.literal('base-sepolia'),
    state: stateName,
    state_code: stateCode,
    authentic: z.boolean(),
    flagged: z.boolean(),
    chainRef: chainRefSchema,
    attestation: z.strictObject({
      message: z.strictObject({
        tokenId: tokenIdText,
        state: stateCode,
        chainId: z.literal(84532),
        timestamp: z.int().min(0).meta({ description: 'Unix seconds.' }),
      }),
      encoding: z.literal('abi.encode(uint256,uint8,uint256,uint64)'),
      digest: hash32.meta({ description: 'keccak256 of the encoded message.' }),
      signature: signature.meta({ description: 'ECDSA over the digest, no prefix: r, s, v.' }),
      signer: address,
      keyId: z.string().regex(/^attest-[0-9a-f]{16}$/),
      eip712: z.strictObject({
        domain: z.record(z.string(), z.unknown()),
        types: z.record(z.string(), z.unknown()),
        primaryType: z.string(),
        message: z.record(z.string(), z.unknown()),
        signature,
      }),
    }),
    payment: z.strictObject({
      success: z.literal(true),
      transaction: hash32,
      payer: address,
      network: z.literal('base-sepolia'),
      amount,
      asset: address,
    }),
    ...serviceStatus,
  })
  .meta({ id: 'Attestation', description: 'The state of one asset, signed for contracts, and the payment for it.' })

export const paymentDocumentSchema = z
  .looseObject({ x402Version: z.literal(2), x402Versions: z.array(z.int()), resources: z.array(z.string()) })
  .meta({ id: 'PaymentDocument', description: 'What is sold here and for how much, before asking.' })

export const attestationKeysSchema = z
  .looseObject({
    version,
    contract: address,
    keys: z.array(
      z.looseObject({
        address,
        keyId: z.string(),
        validFrom: z.int(),
        validUntil: z.int().nullable(),
        status: z.enum(['next', 'active', 'retired', 'revoked']),
      }),
    ),
  })
  .meta({ id: 'AttestationKeys', description: 'How an attestation is checked, and every key that ever signed one.' })
