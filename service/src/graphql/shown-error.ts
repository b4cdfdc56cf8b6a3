/** What a client is told of an error: its code of the closed list, or INTERNAL with the id under which the log has the reason. */
import { GraphQLError } from 'graphql'
import { reasonOf, ServiceError } from '../errors.ts'
import type { Log } from '../log.ts'
import { isTimeout } from '../store/bounded-count.ts'
import { errorCodes, type ErrorCode } from './error-codes.ts'

/** For HTTP and socket alike; the result has the message, places, path and `extensions.code`. */
export type ShowError = (error: Error, requestId: string) => GraphQLError

export function createShowError(log: Log): ShowError {
  return (error, requestId) => {
    const place = error instanceof GraphQLError ? placeOf(error) : {}
    const fault = error instanceof GraphQLError ? error.originalError : undefined
    const { code, message } =
      fault === undefined || fault instanceof GraphQLError
        ? { code: codeOf(error), message: error.message }
        : told(fault, requestId, log)
    const extensions = code === 'INTERNAL' ? { code, requestId } : { code }
    return new GraphQLError(message, { ...place, extensions })
  }
}

function placeOf({ nodes, source, positions, path }: GraphQLError) {
  return { nodes: nodes ?? null, source: source ?? null, positions: positions ?? null, path: path ?? null }
}

/** What the parser, the validation and the coercion of inputs refuse has no code of its own. */
function codeOf(error: Error): ErrorCode {
  const code = error instanceof GraphQLError ? error.extensions['code'] : undefined
  return errorCodes.find((known) => known === code) ?? 'BAD_USER_INPUT'
}

function told(fault: Error, requestId: string, log: Log): { code: ErrorCode; message: string } {
  if (isTimeout(fault)) return { code: 'TOO_COMPLEX', message: 'This takes too long: narrow the filter.' }
  if (fault instanceof ServiceError && fault.code === 'CHAIN_UNAVAILABLE') {
    log.warn('request failed', { code: fault.code, requestId, reason: reasonOf(fault.cause) })
    return { code: fault.code, message: fault.message }
  }
  log.error('request failed', { code: 'INTERNAL', requestId, reason: reasonOf(fault) })
  return { code: 'INTERNAL', message: `The request failed unexpectedly. Its id is ${requestId}.` }
}

/** For what a promise gave up on. */
export function faultError(fault: unknown): GraphQLError {
  if (fault instanceof GraphQLError) return fault
  const originalError = fault instanceof Error ? fault : new Error(String(fault))
  return new GraphQLError(originalError.message, { originalError })
}
