/**
 * The x402 extension `payment-identifier`. A buyer chooses an id for a purchase, and all its payments with this id are one purchase. An id
 * is bound to its payer, so that it is no secret and cannot be taken by another.
 */
import { z } from 'zod'
import { isObject, type JsonObject } from '../../lib/json.ts'

export const identifierExtension = 'payment-identifier'

export const isIdentifier = (text: string): boolean => /^[a-zA-Z0-9_-]{16,128}$/.test(text)

const id = z.string().refine(isIdentifier)
const sent = z.object({ info: z.object({ required: z.boolean(), id: id.optional() }) })

/** Announces the extension in `PAYMENT-REQUIRED`: an id is optional. */
export const identifierOffer = {
  info: { required: false },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
    },
    required: ['required'],
  },
} as const

/** Returns the id of a payment, undefined where it has none, or null where the extension is malformed. */
export function parsePaymentIdentifier({ extensions }: JsonObject): string | undefined | null {
  const extension = isObject(extensions) ? extensions[identifierExtension] : undefined
  if (extension === undefined || extension === null) return undefined
  const { data } = sent.safeParse(extension)
  return data === undefined ? null : data.info.id
}
