/** Reads of a provider that limits its rate (HTTP 429, JSON-RPC −32005). Each is repeated after a pause, and fewer run at one time. */
import { createAdaptiveLimit } from '../../lib/async/concurrency.ts'
import { retry } from '../../lib/async/retry.ts'
import { isBusy } from '../rpc/failover.ts'
import type { RpcChainSource } from '../rpc/source.ts'

const mostReads = 8
const pausesMs = [50, 100, 200, 400, 800, 1_600, 3_200]

export type PatientSource = Omit<RpcChainSource, 'proof' | 'stats' | 'close'>

/** `signal` ends the repetitions. */
export function createPatientSource(source: PatientSource, signal: AbortSignal): PatientSource {
  const limit = createAdaptiveLimit(mostReads)
  const patient =
    <A extends readonly unknown[], R>(read: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      limit.run(() => retry(() => read(...args), { pausesMs, isRetryable: isBusy, onRetry: limit.tooMuch, signal }))
  return {
    head: patient(source.head),
    block: patient(source.block),
    call: patient(source.call),
    calls: patient(source.calls),
    logs: patient(source.logs),
    logsBetween: patient(source.logsBetween),
    blocksAt: patient(source.blocksAt),
    finalized: patient(source.finalized),
    doubtChain: source.doubtChain,
  }
}
