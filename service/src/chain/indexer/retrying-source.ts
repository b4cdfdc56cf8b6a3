/**
 * Reads of a provider that limits its rate (HTTP 429, JSON-RPC −32005). Each is repeated after a pause, as long as the provider asks for, and
 * fewer run at one time. A breaker may be open, which the pauses outlast: a step that began anew would send all its reads again, and never end.
 */
import { createAdaptiveLimit } from '../../lib/async/concurrency.ts'
import { retry } from '../../lib/async/retry.ts'
import { isBusy, isUnasked, retryAfterMs } from '../rpc/failover.ts'
import type { RpcChainSource } from '../rpc/source.ts'

const mostReads = 8
const pausesMs = [50, 100, 200, 400, 800, 1_600, 3_200]

export type RetryingSource = Omit<RpcChainSource, 'proof' | 'lostPins' | 'stats' | 'close'>

/** `signal` ends the repetitions. */
export function createRetryingSource(source: RetryingSource, signal: AbortSignal): RetryingSource {
  const limit = createAdaptiveLimit(mostReads)
  const retrying =
    <A extends readonly unknown[], R>(read: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      limit.run(() =>
        retry(() => read(...args), {
          pausesMs,
          atLeastMs: retryAfterMs,
          isRetryable: (error) => isBusy(error) || isUnasked(error),
          onRetry: limit.tooMuch,
          signal,
        }),
      )
  return {
    head: retrying(source.head),
    block: retrying(source.block),
    call: retrying(source.call),
    calls: retrying(source.calls),
    logs: retrying(source.logs),
    logsBetween: retrying(source.logsBetween),
    blocksAt: retrying(source.blocksAt),
    finalized: retrying(source.finalized),
    doubtChain: source.doubtChain,
  }
}
