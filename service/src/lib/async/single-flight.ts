/** Sharing of one call among the callers that ask while it is in flight. */

export type SingleFlight<Args extends readonly unknown[], T> = {
  (...args: Args): Promise<T>
  /** Returns the call that is in flight for these arguments. */
  readonly inFlight: (...args: Args) => Promise<T> | undefined
}

/**
 * Returns a function that runs `work` at most once at a time per key and shares the result. Nothing is cached after the call has settled.
 * All arguments share one key when `keyOf` is left out; a caller that joins gets the result for the arguments of the first.
 */
export function singleFlight<Args extends readonly unknown[], T>(
  work: (...args: Args) => Promise<T>,
  keyOf: (...args: Args) => unknown = () => undefined,
): SingleFlight<Args, T> {
  const flights = new Map<unknown, Promise<T>>()

  function run(...args: Args): Promise<T> {
    const key = keyOf(...args)
    let flight = flights.get(key)
    if (flight === undefined) {
      flight = started(args).finally(() => flights.delete(key))
      flights.set(key, flight)
    }
    return flight
  }

  /** A synchronous exception becomes a rejection. */
  async function started(args: Args): Promise<T> {
    return work(...args)
  }

  return Object.assign(run, { inFlight: (...args: Args) => flights.get(keyOf(...args)) })
}
