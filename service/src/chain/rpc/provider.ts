/**
 * One provider and its state: chain id, circuit breaker, latency, and how it reads at a pinned block (spec §2.5).
 * A provider is asked through `attempt`, which ends at its own deadline.
 */
import type { Hex } from '@touchstone/verdict'
import { createAdaptiveBatches } from '../../lib/async/concurrency.ts'
import { type SpanOptions, traced } from '../../lib/async/span.ts'
import { type Breaker, type BreakerState, createBreaker } from '../../lib/async/circuit-breaker.ts'
import { createRatePause } from '../../lib/async/rate-pause.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { createPin, type Pin } from './block-pin.ts'
import { isVagueLimit, parseQuantity, RpcError } from './answer.ts'
import { createRpcConnection, type RpcAttempt, type RpcCall } from './client.ts'

export type Provider = Readonly<{
  index: number
  /** Index and host: the path and the user part of a URL hold keys. */
  label: string
  breaker: Breaker
  /** The state of the breaker. A provider that has answered nothing but limits for long is `open`, and `ready` once it may be asked. */
  state: () => BreakerState
  /** Returns whether it limits its rate, and wants to be asked later. */
  isPaused: () => boolean
  latency: Latency
  pin: Pin
  /** Rejects with `RpcError` only. The breaker must have admitted it. */
  attempt: <T>(run: (rpc: RpcAttempt, provider: Provider) => Promise<T>) => Promise<T>
  /** The next attempt asks for the chain id before anything else. */
  doubtChain: () => void
  close: () => Promise<void>
}>

type ProviderOptions = Readonly<{
  index: number
  url: string
  chainId: number
  contract: Hex
  attemptTimeoutMs: number
  /** Requests under way at one time. */
  connections?: number
  /** Accepts a JSON-RPC answer under any status. */
  anyStatus?: boolean
  /** False keeps the breaker closed, for calls that have no other way than to try again. */
  breaks?: boolean
  /** Monotonic milliseconds. */
  ticks: () => number
  counts: Counts
  log: Log
  onFault: (label: string, failure: RpcError, breaker: BreakerState) => void
  /** The provider no longer takes block hashes as it did: what was read from it may be of other blocks. */
  onLostPin?: (label: string) => void
}>

/** Counters since the start. `calls` counts every member of a batch, `requests` HTTP requests. */
export type ChainCounts = Readonly<Counts>
type Counts = ReturnType<typeof newCounts>

export function newCounts() {
  return { calls: 0, requests: 0, faults: 0, limits: 0, hedges: 0, failovers: 0, disagreements: 0, uncheckedHeaders: 0 }
}

type ChainCheck = Readonly<{ isRight: Promise<void>; askedAt: number; isFirst: boolean }>

/** The chain id is asked for so often, beside another call. A URL may come to serve another chain, or another server may answer there. */
const chainCheckMs = 10_000

/**
 * The limits of the rate that one attempt has met. `leastSize` is that of the smallest batch that was given up because of one. `isOfRate`:
 * a part of it met one too, and passed later.
 */
type Limits = { met: number; leastSize: number | null; isOfRate: boolean }

/** A request that meets a limit of the rate is sent again so often. All its pauses must end before its attempt does. */
const repeats = { one: 4, batch: 2 }
/** A size of batches that passed under a limit holds for so long at most. */
const limitHoldsMs = 10_000

export function createProvider(options: ProviderOptions): Provider {
  const { index, chainId, contract, attemptTimeoutMs, connections = 16, anyStatus = false, ticks } = options
  const { breaks = true, counts, log, onFault, onLostPin } = options
  const sendAll = createAdaptiveBatches<RpcCall>({
    isFinal: (error, size) => isAboutContent(error, size) || asksForLong(error),
    now: ticks,
  })
  const url = new URL(options.url)
  const connection = createRpcConnection(url, { connectTimeoutMs: attemptTimeoutMs, connections, anyStatus })
  const breaker = createBreaker({ faults: breaks ? 5 : Infinity, openMs: 5000, now: ticks })
  const pause = createRatePause(() => performance.now())
  const closing = new AbortController()
  const latency = createLatency()
  const label = `${index}:${url.host}`
  const pin = createPin(contract, () => onLostPin?.(label))
  let chain: ChainCheck | undefined

  const provider: Provider = {
    index,
    label,
    breaker,
    state,
    isPaused: () => pause.leftMs() > 0,
    latency,
    pin,
    attempt,
    doubtChain,
    async close() {
      closing.abort()
      await connection.close()
    },
  }
  return provider

  async function attempt<T>(run: (rpc: RpcAttempt, provider: Provider) => Promise<T>): Promise<T> {
    const begun = ticks()
    const until = performance.now() + attemptTimeoutMs
    const limits: Limits = { met: 0, leastSize: null, isOfRate: false }
    const send = (calls: readonly RpcCall[]) => sendWithin(calls, until, limits)
    const askAll = (calls: readonly RpcCall[]) => sendAll(calls, send, (error) => mostHoldMs(error, limits))
    const ask = async (method: string, params: readonly unknown[]) => (await askAll([[method, params]]))[0]
    try {
      const { isRight, isFirst } = checkChain(ask)
      if (isFirst) await isRight
      const [answer] = await Promise.all([run({ ask, askAll }, provider), isRight])
      answered()
      // Only answers count: a hanging provider takes until the deadline, and a hedge after that would come too late. Nor do pauses.
      if (limits.met === 0) latency.add(ticks() - begun)
      return answer
    } catch (error) {
      const failure = error instanceof RpcError ? error : new RpcError('fault', reasonOf(error))
      if (failure.kind === 'busy' && breaker.state() === 'closed') throw failure
      if (failure.isFault) breaker.fault()
      else answered()
      if (failure.kind === 'reset' || breaker.state() !== 'closed') doubtChain()
      if (failure.isFault) {
        counts.faults++
        onFault(label, failure, breaker.state())
      }
      throw failure
    }
  }

  function answered(): void {
    if (breaker.state() !== 'closed') log.info('chain provider answers again', { provider: label })
    breaker.answered()
  }

  /**
   * Sends a request, after the pause of a limit and again after each that it meets. Parts of a batch that met one are sent at once, and not
   * again: the limit may be one of the size.
   */
  async function sendWithin(calls: readonly RpcCall[], until: number, limits: Limits): Promise<readonly unknown[]> {
    const isPart = limits.leastSize !== null && calls.length < limits.leastSize
    const most = calls.length === 1 ? repeats.one : isPart ? 0 : repeats.batch
    for (let sent = 0; ; sent++) {
      if (!isPart || sent > 0) await waitForPause(until, limits)
      if (performance.now() >= until) throw new RpcError('fault', 'no answer in time')
      counts.calls += calls.length
      counts.requests++
      try {
        const results = await traced(spanOf(calls), () => connection.send(calls, until))
        pause.passed()
        limits.isOfRate ||= isPart && sent > 0
        return results
      } catch (error) {
        if (!(error instanceof RpcError) || error.kind !== 'busy') throw error
        pause.limited(error.retryAfterMs)
        limits.met++
        counts.limits++
        log.debug('chain provider limits its rate', { provider: label, pauseMs: Math.ceil(pause.leftMs()) })
        if (!isVagueLimit(error) && sent < most && performance.now() + pause.leftMs() < until) continue
        if (calls.length > 1) limits.leastSize = Math.min(limits.leastSize ?? Infinity, calls.length)
        throw error
      }
    }
  }

  /** Throws where the pause outlasts the attempt: then the provider is not asked at all. */
  async function waitForPause(until: number, limits: Limits): Promise<void> {
    for (let leftMs = pause.leftMs(); leftMs > 0; leftMs = pause.leftMs()) {
      if (performance.now() + leftMs >= until) {
        const message = `rate limit: not asked for another ${Math.ceil(leftMs)} ms`
        throw new RpcError('busy', message, undefined, leftMs)
      }
      limits.met++
      await sleep(Math.ceil(leftMs), { signal: closing.signal })
      if (closing.signal.aborted) throw new RpcError('fault', 'closed')
    }
  }

  /** A part of a batch would meet the same limit, before the pause is over. */
  function asksForLong(error: unknown): boolean {
    const asked = error instanceof RpcError && error.kind === 'busy' ? (error.retryAfterMs ?? 0) : 0
    return asked >= attemptTimeoutMs && !pause.isStuck()
  }

  /** A limit is one of the size or of the rate. A part that passed at once shows the size, although it may have passed by chance. */
  function mostHoldMs(error: unknown, { isOfRate }: Limits): number {
    if (!(error instanceof RpcError) || error.kind !== 'busy' || isVagueLimit(error)) return Infinity
    return isOfRate ? 0 : limitHoldsMs
  }

  function state(): BreakerState {
    if (breaker.state() !== 'closed' || !pause.isStuck()) return breaker.state()
    return pause.leftMs() > 0 ? 'open' : 'ready'
  }

  /** A provider is named by its number: its URL may hold keys, even in the host. */
  function spanOf(calls: readonly RpcCall[]): SpanOptions {
    const names = new Set(calls.map(([method]) => method))
    const [name = 'none'] = names
    return {
      name: names.size === 1 ? name : 'batch',
      kind: 'client',
      attributes: { 'rpc.system.name': 'jsonrpc', 'touchstone.provider': index, 'touchstone.calls': calls.length },
    }
  }

  function doubtChain(): void {
    chain = undefined
  }

  /** Asks when the last answer is old. After a failure the next attempt asks again, first of all. */
  function checkChain(ask: RpcAttempt['ask']): ChainCheck {
    if (chain !== undefined && ticks() - chain.askedAt < chainCheckMs) return chain
    const isRight = Promise.all([assertChainId(ask), pin.renew({ ask })]).then(() => {})
    const check = { isFirst: chain === undefined, askedAt: ticks(), isRight }
    chain = check
    check.isRight.catch(() => {
      if (chain === check) doubtChain()
    })
    return check
  }

  /** Throws errors that are no answer. A refusal of this call must not pass for one of the call beside it. */
  async function assertChainId(ask: RpcAttempt['ask']): Promise<void> {
    const found = await ask('eth_chainId', []).catch((error: unknown) => {
      throw error instanceof RpcError ? new RpcError(error.kind, error.message, undefined, error.retryAfterMs) : error
    })
    if (parseQuantity(found) !== BigInt(chainId)) throw new RpcError('fault', 'eth_chainId is another chain')
  }
}

/**
 * A limit of the provider's batches comes in any words and under any status. A large batch may break the socket. Where one of two calls did,
 * the chain id is asked for first.
 */
function isAboutContent(error: unknown, size: number): boolean {
  if (!(error instanceof RpcError)) return false
  return error.kind === 'non-canonical' || error.kind === 'reverted' || (error.kind === 'reset' && size === 2)
}

const kept = 64

type Latency = ReturnType<typeof createLatency>

/** The 95th percentile of the last 64 attempts in milliseconds; 0 before the first. A slower attempt is hedged. */
export function createLatency() {
  const samples: number[] = []
  let next = 0
  let p95: number | null = 0

  return {
    add(ms: number): void {
      samples[next] = ms
      next = (next + 1) % kept
      p95 = null
    },
    p95(): number {
      p95 ??= samples.toSorted((a, b) => a - b)[Math.ceil(samples.length * 0.95) - 1] ?? 0
      return p95
    },
  }
}
