/** Returns the SQLSTATE of an error of the database, or '' for any other error. */
export function sqlState(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

/** A lock was not given in time. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/** Creates the error of a lock that was not given in time. */
export function lockTimeout(message: string): Error {
  return Object.assign(new Error(message), { code: '55P03' })
}

/** The database ended a statement because it ran too long. */
export function isTimeout(error: unknown): boolean {
  return sqlState(error) === '57014'
}

/** PostgreSQL answers, and has no connection left for this role, or the fault has that as its cause. */
export function isOutOfConnections(error: unknown): boolean {
  return sqlState(error) === '53300' || (error instanceof Error && isOutOfConnections(error.cause))
}

/** PostgreSQL answers, and has no database of the name that was asked for. */
export function isMissingDatabase(error: unknown): boolean {
  return sqlState(error) === '3D000'
}
