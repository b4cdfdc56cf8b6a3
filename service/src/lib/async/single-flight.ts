/** Sharing of one call among the callers that ask while it is in flight. */

/**
 * Returns a function that runs `work` at most once at a time per key and shares the result. Nothing is cached after the call has settled.
 * All arguments share one key when `keyOf` is left out; a caller that joins gets the result for the arguments of the first.
 */
export function singleFlight<Args extends readonly unknown[], T>(
  work: (...args: Args) => Promise<T>,
  keyOf: (...args: Args) => unknown = () => undefined,
) {
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

  return Object.assign(run, {
    /** Returns the call that is in flight for these arguments. */
    inFlight: (...args: Args) => flights.get(keyOf(...args)),
  })
}

/**
 * Returns a function that reads where the last reading began `maxAgeMs` ago or earlier. Callers share a reading that is under way; one that is
 * older by its answer is repeated, because it may lack what was written meanwhile. `beganAt` returns when the last successful one began.
 */
export function createRefresh(
  read: () => Promise<unknown>,
  beganAt: () => number,
  ticks: () => number = () => performance.now(),
): (maxAgeMs: number) => Promise<void> {
  const readOnce = singleFlight(read)
  return async (maxAgeMs) => {
    const asked = ticks()
    // The own reading of a caller is new enough, however long it took.
    const isOld = () => beganAt() < asked && ticks() - beganAt() >= maxAgeMs
    if (isOld()) await readOnce()
    if (isOld()) await readOnce()
  }
}
