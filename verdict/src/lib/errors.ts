/** The faults of this library. A bad verdict is no fault: `recheck` and `prove` report it. */

/**
 * The code says why nothing could be found out.
 *
 * - `RPC_UNAVAILABLE`: the RPC did not answer, not in time, not as JSON-RPC, or cannot read the block any more.
 * - `RPC_REFUSED`: the RPC answered with a JSON-RPC error (only from a caller of `createRpc`; `cause` holds its code and message).
 * - `SERVICE_UNAVAILABLE`: the verification service did not answer, or not in time.
 * - `BAD_ANSWER`: the verification service answered something that is neither a verdict nor an error body of spec §2.4.
 */
export type VerdictErrorCode = 'RPC_UNAVAILABLE' | 'RPC_REFUSED' | 'SERVICE_UNAVAILABLE' | 'BAD_ANSWER'

/** A fault with a code of the closed list. The message never holds a URL, because RPC URLs carry keys. */
export class VerdictError extends Error {
  readonly code: VerdictErrorCode

  constructor(code: VerdictErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'VerdictError'
    this.code = code
  }
}

/** With no endpoint left to try, a refusal means that this endpoint does not support the call. */
export function unavailable(cause: unknown): unknown {
  if (!isRefusal(cause)) return cause
  return new VerdictError('RPC_UNAVAILABLE', `${cause.message} For old blocks it must keep old state.`, {
    cause: cause.cause,
  })
}

/** Did the endpoint answer, with a JSON-RPC error? */
export function isRefusal(error: unknown): error is VerdictError {
  return error instanceof VerdictError && error.code === 'RPC_REFUSED'
}
