/** Retries of work that may be repeated. */
import { sleep } from './sleep.ts'

export type RetryOptions = {
  /** One pause before each retry; after the last of them the error is thrown. May be endless, see `backoff`. */
  readonly pausesMs: Iterable<number>
  readonly isRetryable: (error: unknown) => boolean
  /** Makes the pause after an error longer: it takes at least so many milliseconds. */
  readonly atLeastMs?: (error: unknown) => number
  readonly onRetry?: (error: unknown, pauseMs: number) => void
  /** Ends the retries: the last error is thrown. */
  readonly signal?: AbortSignal | undefined
}

/** Runs `work` until it succeeds. Throws the last error when it is not retryable or no retry is left. */
export async function retry<T>(
  work: () => Promise<T>,
  { pausesMs, isRetryable, atLeastMs = () => 0, onRetry, signal }: RetryOptions,
): Promise<T> {
  const pauses = pausesMs[Symbol.iterator]()
  const isOver = () => signal?.aborted === true
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (isOver() || !isRetryable(error)) throw error
      const next = pauses.next()
      if (next.done === true) throw error
      const pauseMs = Math.max(next.value, atLeastMs(error))
      onRetry?.(error, pauseMs)
      await sleep(pauseMs, { signal })
      if (isOver()) throw error
    }
  }
}

/** Yields endless pauses that grow by `factor` from `firstMs` up to `mostMs`. */
export function* backoff(firstMs: number, mostMs: number, factor = 2): Generator<number, never> {
  for (let pauseMs = firstMs; ; pauseMs = Math.min(pauseMs * factor, mostMs)) yield pauseMs
}
