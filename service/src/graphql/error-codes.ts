/** The closed list of `extensions.code` of GraphQL errors (spec §7 leaves their form open), and how faults are told. */
import { GraphQLError } from 'graphql'

export const errorCodes = [
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'BAD_USER_INPUT',
  'NOT_FOUND',
  'RATE_LIMITED',
  'TOO_COMPLEX',
  'CHAIN_UNAVAILABLE',
  'INTERNAL',
] as const
export type ErrorCode = (typeof errorCodes)[number]

/** An error for the caller: its message is shown as it is. */
export function graphqlError(code: ErrorCode, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } })
}
