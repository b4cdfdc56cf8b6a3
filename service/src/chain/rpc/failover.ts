/**
 * Asks providers until enough of them agree (spec §2.5): one for `rpc` and for proofs, k otherwise.
 * A provider that fails is replaced by the next one at once; beside one that is slower than usual another is asked (a hedge).
 * There is no majority vote: two different answers are a failure.
 */
import { msUntil } from '../../lib/async/deadline.ts'
import { reasonOf, ServiceError } from '../../lib/errors.ts'
import type { Provider } from './provider.ts'
import { type RpcErrorKind, RpcError } from './answer.ts'

/** A read without an answer, with the kinds of all failures on the way. The message is for the log only. */
export class ReadFailure extends Error {
  readonly kinds: ReadonlySet<RpcErrorKind>
  readonly failures: readonly RpcError[]

  constructor(message: string, failures: readonly RpcError[] = []) {
    super(message)
    this.name = 'ReadFailure'
    this.failures = failures
    this.kinds = new Set(failures.map((failure) => failure.kind))
  }
}

/** Returns whether a provider limits its rate, so that the same read may succeed a little later. */
export function isBusy(error: unknown): boolean {
  return readFailureOf(error)?.kinds.has('busy') === true
}

/** Returns the milliseconds until the first provider wants to be asked again; 0 where none has said so. */
export function retryAfterMs(error: unknown): number {
  const asked = readFailureOf(error)?.failures.map((failure) => failure.retryAfterMs ?? 0) ?? []
  return asked.length === 0 ? 0 : Math.min(...asked)
}

/** Returns whether the function reverts or no code answers, as opposed to a provider that failed. */
export function hasReverted(error: unknown): boolean {
  return readFailureOf(error)?.kinds.has('reverted') === true
}

/** Returns whether a provider was asked at all. Without one the failure says nothing about the read. */
export function wasAsked(error: unknown): boolean {
  return (readFailureOf(error)?.failures.length ?? 0) > 0
}

/** Returns whether no provider could be asked, as behind an open breaker. The same read may succeed a little later. */
export function isUnasked(error: unknown): boolean {
  return readFailureOf(error)?.failures.length === 0
}

function readFailureOf(error: unknown): ReadFailure | undefined {
  const cause = error instanceof ServiceError ? error.cause : undefined
  return cause instanceof ReadFailure ? cause : undefined
}

export type AgreementOptions<T> = Readonly<{
  /** In the order of preference. */
  providers: readonly Provider[]
  needed: number
  attempt: (provider: Provider) => Promise<T>
  /** Equal for answers that agree. */
  consensusKey: (answer: T) => string
  /** A moment of `performance.now()`. */
  deadline: number
  counts: { hedges: number; failovers: number; disagreements: number }
}>

/**
 * Resolves once `needed` answers are equal, rejects with `ReadFailure`. Attempts that are still under way then
 * go on: their latencies and faults count for the next read.
 */
export function agreement<T>(options: AgreementOptions<T>): Promise<T> {
  const { providers, needed, attempt, consensusKey, deadline, counts } = options
  const waiting = [...providers]
  const failures: RpcError[] = []
  const reasons: string[] = []
  let firstKey: string | undefined
  let equal = 0
  let running = 0
  let slowest = 0
  let resets = 0
  let settled = false
  let hedgeTimer: NodeJS.Timeout | undefined

  return new Promise((resolve, reject) => {
    const deadlineTimer = setTimeout(() => fail('deadline'), msUntil(deadline))
    if (deadline <= performance.now()) return fail('deadline')
    for (let wanted = needed; wanted > 0; wanted--) startNext()
    endIfHopeless()

    function startNext(): boolean {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        if (!next.breaker.admit()) continue
        start(next)
        return true
      }
      return false
    }

    function start(provider: Provider): void {
      running++
      slowest = Math.max(slowest, provider.latency.p95())
      clearTimeout(hedgeTimer)
      if (waiting.length > 0) hedgeTimer = setTimeout(hedge, Math.max(50, slowest))
      outcomeOf(attempt(provider))
        .then((outcome) => ended(provider, outcome))
        .catch(fail)
    }

    function hedge(): void {
      if (startNext()) counts.hedges++
    }

    function ended(provider: Provider, outcome: Outcome<T>): void {
      running--
      // A revert is the chain's own answer, so in a quorum others may contradict it.
      const isAnswer = 'answer' in outcome || (needed > 1 && outcome.failure.kind === 'reverted')
      if (isAnswer) return agreeOrFail(outcome)
      if (settled) return
      failures.push(outcome.failure)
      reasons.push(`${provider.label} ${outcome.failure.message}`)
      if (providers.length === 1 && outcome.failure.kind === 'reset' && resets++ === 0 && provider.breaker.admit()) {
        start(provider)
      } else if (startNext()) counts.failovers++
      endIfHopeless()
    }

    function agreeOrFail(outcome: Outcome<T>): void {
      const key = needed === 1 ? '' : 'answer' in outcome ? `=${consensusKey(outcome.answer)}` : 'reverted'
      firstKey ??= key
      if (firstKey !== key) {
        counts.disagreements++
        failures.length = 0 // a block that is non-canonical for one of them must not hide this
        return fail('providers disagree')
      }
      equal++
      if (equal < needed) return endIfHopeless()
      if (settled) return
      if ('failure' in outcome) {
        failures.push(outcome.failure)
        return fail(outcome.failure.message)
      }
      settle()
      resolve(outcome.answer)
    }

    function endIfHopeless(): void {
      if (settled || running + equal >= needed || startNext()) return
      fail(providers.length === 0 ? 'every provider is behind or its breaker open' : 'not enough providers answered')
    }

    function fail(reason: unknown): void {
      if (settled) return
      settle()
      reject(new ReadFailure([reasonOf(reason), ...reasons].join('; '), failures))
    }

    function settle(): void {
      settled = true
      clearTimeout(deadlineTimer)
      clearTimeout(hedgeTimer)
    }
  })
}

type Outcome<T> = Readonly<{ answer: T }> | Readonly<{ failure: RpcError }>

export async function outcomeOf<T>(attempt: Promise<T>): Promise<Outcome<T>> {
  try {
    return { answer: await attempt }
  } catch (error) {
    return { failure: error instanceof RpcError ? error : new RpcError('fault', reasonOf(error)) }
  }
}
