/** GraphQL over HTTP as Zod schemas (spec §4.9); what can be asked is in the GraphQL schema. */
import { z } from 'zod'

export const graphqlRequestSchema = z
  .object({
    query: z.string().meta({ description: 'A GraphQL document.' }),
    variables: z.record(z.string(), z.unknown()).nullable().exactOptional(),
    operationName: z.string().nullable().exactOptional(),
    extensions: z.record(z.string(), z.unknown()).nullable().exactOptional(),
  })
  .meta({
    id: 'GraphqlRequest',
    description: 'One operation.',
    examples: [{ query: '{ products(first: 2) { totalCount edges { node { id name verified } } } }' }],
  })

/** `extensions.code` of every error. */
export const graphqlErrorCodes = [
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'BAD_USER_INPUT',
  'NOT_FOUND',
  'RATE_LIMITED',
  'TOO_COMPLEX',
  'CHAIN_UNAVAILABLE',
  'INTERNAL',
] as const

export const graphqlAnswerSchema = z
  .strictObject({
    data: z.record(z.string(), z.unknown()).nullable().exactOptional(),
    errors: z
      .array(
        z.looseObject({
          message: z.string(),
          extensions: z.looseObject({ code: z.enum(graphqlErrorCodes) }).exactOptional(),
        }),
      )
      .exactOptional(),
  })
  .meta({ id: 'GraphqlAnswer', description: 'data, errors or both. Branch on errors[].extensions.code.' })
