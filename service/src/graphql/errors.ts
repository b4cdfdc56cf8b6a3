/** The codes of `extensions.code` in GraphQL errors (spec §7 leaves their form open), and the errors that clients receive. */
import { GraphQLError } from 'graphql'
import { CostError, maxPlanCost } from '../db/cost.ts'
import { isTimeout } from '../db/errors.ts'
import { IndexIncompleteError } from '../index/contract.ts'
import { errorRows, type GraphqlCode } from '../lib/error-codes.ts'
import { databaseUnavailable, isDatabaseUnavailable, reasonOf, ServiceError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'

export const graphqlErrorCodes: readonly GraphqlCode[] = errorRows.flatMap(
  ({ graphql }) => (graphql as GraphqlCode) ?? [],
)

/** Creates an error whose message is sent to the client. `oldest` is the position that a client may go on from. */
export function graphqlError(
  code: GraphqlCode,
  message: string,
  more: { readonly oldest?: string } = {},
): GraphQLError {
  return new GraphQLError(message, { extensions: { code, ...more } })
}

/**
 * Turns an error of an operation into the one that the client receives. Faults of chain, database and plan have codes of their own; others
 * become INTERNAL with the id of their log line.
 */
export type FormatError = (error: Error, requestId: string) => GraphQLError

export function createFormatError(log: Log): FormatError {
  return (error, requestId) => {
    const located: Partial<GraphQLError> = error instanceof GraphQLError ? error : {}
    const { nodes = null, source = null, positions = null, path = null, originalError } = located
    const { message, ...described } =
      originalError === undefined || originalError instanceof GraphQLError
        ? describeRefusal(error.message, located.extensions)
        : describeFault(originalError, requestId, log)
    const extensions = { ...described, ...(described.code === 'INTERNAL' && { requestId }) }
    return new GraphQLError(message, { nodes, source, positions, path, extensions })
  }
}

/** The message of an error and its extensions. */
type Described = Readonly<{ code: GraphqlCode; message: string } & Record<string, unknown>>

const longestMessage = 1_000

/** Shortens a message that repeats what the caller sent. */
function shorten(message: string): string {
  return message.length <= longestMessage ? message : `${message.slice(0, longestMessage)}…`
}

/** Errors of the parser, the validation and the coercion of inputs carry no code. */
function describeRefusal(
  message: string,
  { code, cost, maxCost, oldest }: Readonly<Record<string, unknown>> = {},
): Described {
  return {
    code: graphqlErrorCodes.find((known) => known === code) ?? 'BAD_USER_INPUT',
    message: shorten(message),
    ...(cost !== undefined && { cost, maxCost }),
    ...(oldest !== undefined && { oldest }),
  }
}

const tooMuch = (cost = '') => `This filter reads too much in this order${cost}. Narrow it, or sort by what it filters.`

/** Rethrows a fault without its cost, which follows from the products of all brands. */
export function throwWithoutCost(fault: unknown): never {
  throw fault instanceof CostError ? graphqlError('TOO_COMPLEX', tooMuch()) : fault
}

function describeFault(fault: Error, requestId: string, log: Log): Described {
  if (fault instanceof CostError) {
    const message = tooMuch(`: it costs ${fault.cost} of at most ${maxPlanCost}`)
    return { code: 'TOO_COMPLEX', message, cost: fault.cost, maxCost: maxPlanCost }
  }
  if (isTimeout(fault)) return { code: 'TOO_COMPLEX', message: 'This takes too long: narrow the filter.' }
  if (fault instanceof IndexIncompleteError) return { code: 'INDEX_INCOMPLETE', message: fault.message }
  const error = isDatabaseUnavailable(fault) ? databaseUnavailable(fault) : fault
  if (error instanceof ServiceError && (error.code === 'CHAIN_UNAVAILABLE' || error.code === 'DATABASE_UNAVAILABLE')) {
    log.warn('request failed', { code: error.code, requestId, reason: reasonOf(error.cause) })
    return { code: error.code, message: error.message }
  }
  log.error('request failed', { code: 'INTERNAL', requestId, reason: reasonOf(fault) })
  return { code: 'INTERNAL', message: `The request failed unexpectedly. Its id is ${requestId}.` }
}

/** Returns null where the index does not have all products yet, so that the caller goes by the chain. */
export function nullIfIncomplete<T>(read: Promise<T>): Promise<T | null> {
  return read.catch((error: unknown) => {
    if (error instanceof IndexIncompleteError) return null
    throw error
  })
}

/** Wraps the reason of a rejected execution. */
export function faultError(fault: unknown): GraphQLError {
  if (fault instanceof GraphQLError) return fault
  const originalError = fault instanceof Error ? fault : new Error(String(fault))
  return new GraphQLError(originalError.message, { originalError })
}
