import { databaseUnavailable, isDatabaseUnavailable, reasonOf, ServiceError } from '../lib/errors.ts'

/** Returns the SQLSTATE of an error of the database, or '' for any other error. */
export function sqlState(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

/** The fault, or one of its causes, has this SQLSTATE. */
function hasState(error: unknown, state: string): boolean {
  return sqlState(error) === state || (error instanceof Error && hasState(error.cause, state))
}

/** A server that failed names one of these SQLSTATEs. They are about connections, memory, disks, locks, limits of time, and writes. */
const unavailableStates = /^(?:08|53|57|55P03|25006|25P0[34])/

/** The database could not carry out a statement that has no fault of its own. */
export function isOfServer(error: unknown): boolean {
  return unavailableStates.test(sqlState(error))
}

/** A lock was not given in time. */
export function isLockTimeout(error: unknown): boolean {
  return hasState(error, '55P03')
}

/** The database ended this transaction to end a deadlock. Nothing of it stays, so that it can be repeated. */
export function isDeadlock(error: unknown): boolean {
  return hasState(error, '40P01')
}

/** One row of a statement may have caused this error. A lock that was not given in time is that of one row. */
export function isOfOneRow(error: unknown): boolean {
  return !isDatabaseUnavailable(error) || isLockTimeout(error)
}

/** Creates the error of a lock that was not given in time. */
export function lockTimeout(message: string): Error {
  return Object.assign(new Error(message), { code: '55P03' })
}

/** The database ended a statement because it ran too long. */
export function isTimeout(error: unknown): boolean {
  return hasState(error, '57014')
}

/** The database answers. It ended this statement by a limit of time. */
export function isLimit(error: unknown): boolean {
  return isTimeout(error) || isLockTimeout(error)
}

/** Makes an error of the driver DATABASE_UNAVAILABLE. The message names a limit of time, because the database answers then. */
export function serverFailure(error: unknown): ServiceError {
  if (!isLimit(error)) return databaseUnavailable(error)
  return new ServiceError('DATABASE_UNAVAILABLE', `PostgreSQL ended a statement: ${reasonOf(error)}`, { cause: error })
}

/** The role lacks a right that the statement needs. */
export function isMissingRight(error: unknown): boolean {
  return sqlState(error) === '42501'
}

/** PostgreSQL answers, and has no connection left for this role. */
export function isOutOfConnections(error: unknown): boolean {
  return hasState(error, '53300')
}

/** PostgreSQL answers, and has no database of the name that was asked for. */
export function isMissingDatabase(error: unknown): boolean {
  return sqlState(error) === '3D000'
}
