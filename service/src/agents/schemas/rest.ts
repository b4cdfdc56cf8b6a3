/** Answers of the verification host beside the verdict, as Zod schemas: taps, proofs, passports refused, health (spec §2.6, §2.7, §4.4–§4.6). */
import { z } from 'zod'
import { hash32, stateCode, stateName, tokenIdText, untrustedSchema, verdictSchema } from './verdict.ts'

const chip = {
  uid: z
    .string()
    .regex(/^[0-9A-F]{14}$/)
    .meta({ description: 'UID of the chip, 7 bytes.' }),
  tapCounter: z.int().min(0).max(0xffffff).meta({ description: 'How often the chip was read, counted by the chip.' }),
}
const tapChain = z.strictObject({
  id: z.literal(84532),
  name: z.literal('Base Sepolia'),
  contract: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  blockNumber: z.int().min(0).meta({ description: 'Block that everything was read at.' }),
  blockHash: hash32,
})

/** Spec §2.7: always status 200; `verified` says whether the chip is genuine and belongs to an item. */
export const tapAnswerSchema = z
  .union([
    z.strictObject({
      verified: z.literal(true),
      bound: z.literal(true),
      ...chip,
      asset: z.strictObject({
        tokenId: tokenIdText,
        stateCode,
        lifecycleState: stateName,
        flagged: z.boolean(),
        timestamp: z.int().min(0).meta({ description: 'Of the record, in unix seconds.' }),
        ownerCommitment: hash32.nullable(),
        untrusted: untrustedSchema.exactOptional(),
      }),
      metadataHash: hash32.nullable(),
      chain: tapChain,
    }),
    z.strictObject({
      verified: z.literal(false),
      bound: z.literal(false),
      ...chip,
      reason: z.literal('unbound'),
      chain: tapChain,
    }),
    z.strictObject({ verified: z.literal(false), reason: z.enum(['counterfeit', 'replayed']) }),
    z.strictObject({
      verified: z.literal(false),
      reason: z.literal('tap_again'),
      challenge: z.string().meta({ description: 'To be sent as X-Tap-Challenge with the next tap.' }),
      seconds: z.int().min(1),
    }),
  ])
  .meta({
    id: 'TapAnswer',
    description: 'What a tap came to. Branch on `verified`, never on the status: a counterfeit is a 200 too.',
    examples: [{ verified: false, reason: 'counterfeit' }],
  })

export const passportRefusedSchema = z
  .strictObject({ verified: z.literal(false), error: z.string() })
  .meta({ id: 'PassportRefused', description: 'Why there is no passport. For people; branch on the status.' })

const hexData = z.string().regex(/^0x(?:[0-9a-f]{2})*$/)
const quantity = z.string().regex(/^0x[0-9a-f]+$/)

export const proofBundleSchema = z
  .strictObject({
    version: z.literal('1'),
    verdict: verdictSchema,
    proof: z.strictObject({
      header: z.record(z.string(), z.unknown()).meta({ description: 'The block as eth_getBlockByHash gives it.' }),
      accountProof: z.array(hexData),
      storageProof: z.array(z.strictObject({ key: quantity, value: quantity, proof: z.array(hexData) })),
      recordsSlot: z.int().min(0),
      codeHash: hash32,
    }),
  })
  .meta({
    id: 'ProofBundle',
    description: 'A verdict with the Merkle proof of its record (EIP-1186), checked offline by @touchstone/verdict.',
  })

export const healthSchema = z
  .strictObject({
    status: z.literal('ok'),
    timestamp: z.iso.datetime(),
    runtime: z.string().meta({ examples: ['node/24.x'] }),
  })
  .meta({ id: 'Health', description: 'The host answers.' })

export type TapAnswer = z.infer<typeof tapAnswerSchema>
