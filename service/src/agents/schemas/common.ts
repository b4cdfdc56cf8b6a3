/** What the routes take, and errors that all of them share, as Zod schemas (spec §4, §7). Nothing is checked with them at run time. */
import { z } from 'zod'

/** Spec §4.1: the answer writes it without leading zeros. */
export const tokenIdParameter = z
  .string()
  .regex(/^[0-9]+$/)
  .max(78)
  .meta({ description: 'Decimal token id, 0 to 2^256-1, digits only.', examples: ['5'] })

export const hashParameter = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/)
  .meta({ description: 'The `metadataHash` that the contract holds: 0x and 64 hex digits.' })

export const gtinParameter = z
  .string()
  .regex(/^[0-9]{14}$/)
  .meta({ description: 'GTIN-14 with a right check digit.', examples: ['09520001000003'] })

export const serialParameter = z
  .string()
  .min(1)
  .max(60)
  .meta({ description: 'Serial: 1 to 20 characters of GS1 CSET 82, percent-encoded.', examples: ['W-0001'] })

/** Spec §4.4. */
export const piccParameter = z
  .string()
  .regex(/^[0-9a-fA-F]{32}$/)
  .meta({ description: 'Encrypted chip data of one tap.' })

export const cmacParameter = z
  .string()
  .regex(/^[0-9a-fA-F]{16}$/)
  .meta({ description: 'The chip’s message authentication code of the same tap.' })

/** RFC 9457: the error body, and beside it the members of a problem. */
export const problemSchema = z
  .strictObject({
    type: z.string().meta({ description: 'Page that explains the code; about:blank where there is no code.' }),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string(),
    version: z.literal('1').exactOptional(),
    verified: z.literal(false).exactOptional(),
    error: z.union([z.string(), z.strictObject({ code: z.string(), message: z.string() })]),
  })
  .meta({
    id: 'Problem',
    description: 'The same error for clients that name application/problem+json in Accept (RFC 9457).',
  })

/** A document of somebody else’s vocabulary. */
export const documentSchema = z
  .record(z.string(), z.unknown())
  .meta({ id: 'JsonDocument', description: 'A JSON document whose form another specification gives.' })

export const textSchema = z.string().meta({ id: 'Text', description: 'Plain text.' })
export const pageSchema = z.string().meta({ id: 'Page', description: 'A page for people, in HTML.' })
