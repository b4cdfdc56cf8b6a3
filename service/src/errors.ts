/**
 * The closed list of faults and the HTTP status of each (spec §2.4, §7).
 * Wrong input and negative answers (counterfeit, unbound, payment required) are values, not errors.
 */
const statusOf = {
  INVALID_TOKEN_ID: 400,
  ASSET_NOT_FOUND: 404,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  CHAIN_UNAVAILABLE: 502,
} as const

export type FailureCode = keyof typeof statusOf

/** A fault with a code of the closed list. `message` may be shown to the caller; `cause` is for the log only. */
export class ServiceError extends Error {
  readonly code: FailureCode
  readonly status: (typeof statusOf)[FailureCode]

  constructor(code: FailureCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ServiceError'
    this.code = code
    this.status = statusOf[code]
  }
}

/**
 * The text of an unknown thrown thing, for logs: message and causes, never the stack, at most 500 characters. Providers and libraries
 * put accounts and signatures into their messages: what has the length of an address, or is longer than a hash, is left out.
 */
export function reasonOf(error: unknown): string {
  const parts: string[] = []
  for (
    let at: unknown = error;
    at !== undefined && at !== null && parts.length < 5;
    at = at instanceof Error ? at.cause : undefined
  ) {
    parts.push(at instanceof Error ? at.message || at.name : typeof at === 'string' ? at : typeof at)
  }
  return parts.join(': ').slice(0, 10_000).replaceAll(personal, '0x…').slice(0, 500)
}

const personal = /0x(?:[0-9a-f]{65,}|[0-9a-f]{40}(?![0-9a-f]))/gi
