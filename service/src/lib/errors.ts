/** The error class of the service, and how errors are written to the log. */
import { errorCodes, type RestCode } from './error-codes.ts'

/**
 * A fault with a code of the error table (spec §2.4, §7). `message` may be shown to the caller; `cause` is for the log only.
 * Wrong input and negative answers (counterfeit, unbound, payment required) are values, not errors.
 */
export class ServiceError extends Error {
  readonly code: RestCode
  readonly status: (typeof errorCodes)[RestCode]['rest']

  constructor(code: RestCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ServiceError'
    this.code = code
    this.status = errorCodes[code].rest
  }
}

/** Returns the error of a chain without a usable answer. A `ServiceError` is returned as it is; `cause` is for the log only. */
export function chainUnavailable(cause: unknown): ServiceError {
  if (cause instanceof ServiceError) return cause
  const reason = typeof cause === 'string' ? new Error(cause) : cause
  return new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: reason })
}

export function throwChainUnavailable(cause: unknown): never {
  throw chainUnavailable(cause)
}

export function isChainUnavailable(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.code === 'CHAIN_UNAVAILABLE'
}

/** `Retry-After` of an answer while the database is unavailable. */
export const retryAfterSeconds = '5'

/** Returns the error of a database that does not answer or cannot write; `cause` is for the log only. */
export function databaseUnavailable(cause: unknown): ServiceError {
  return new ServiceError('DATABASE_UNAVAILABLE', 'The database does not answer. Try again in a few seconds.', {
    cause,
  })
}

/** The database does not answer, or the fault has that as its cause. */
export function isDatabaseUnavailable(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if (at instanceof ServiceError && at.code === 'DATABASE_UNAVAILABLE') return true
  return false
}

/** Makes the handler of a missing file or folder, which returns `value`. It throws every other error on. */
export function ifMissing<T>(value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return value
    throw error
  }
}

/**
 * Returns message and causes of a thrown value for a log or a terminal. It is one line of visible text, at most 500 characters, without the
 * stack. Of several errors at once it takes the first. Providers and libraries put accounts and signatures into their messages, so hex of
 * these lengths is removed.
 */
export function reasonOf(error: unknown): string {
  const parts: string[] = []
  for (
    let at: unknown = error;
    at !== undefined && at !== null && parts.length < 5;
    at = at instanceof Error ? at.cause : undefined
  ) {
    if (at instanceof AggregateError && at.errors.length > 0) at = at.errors[0] as unknown
    if (at instanceof Error) parts.push(at.message || at.name)
    else if (typeof at === 'string' || parts.length === 0) parts.push(typeof at === 'string' ? at : typeof at)
  }
  const text = parts.join(': ').slice(0, 10_000).replaceAll('.: ', ': ').replaceAll(personal, '0x…')
  return text.replaceAll(/\s+/g, ' ').replaceAll(invisible, '\ufffd').slice(0, 500)
}

/** Matches what moves a cursor, sets a colour or reorders text. */
const invisible = /[\p{Cc}\p{Cf}]/gu

const personal = /0x(?:[0-9a-f]{65,}|[0-9a-f]{40}(?![0-9a-f]))/gi
