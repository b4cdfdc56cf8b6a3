/**
 * One provider with its memory: is it on the right chain, ill, slow, and how does it take a pin (spec §2.5).
 * A provider is asked through `attempt`, which has its own deadline and never outlives it.
 */
import { reasonOf } from '../errors.ts'
import type { Hex } from '@touchstone/verdict'
import { createBreaker } from './breaker.ts'
import type { Breaker, BreakerState } from './breaker.ts'
import { createLatency } from './latency.ts'
import type { Latency } from './latency.ts'
import { createPin } from './pin.ts'
import type { Pin } from './pin.ts'
import { RpcFailure, quantityOf } from './rpc-answer.ts'
import { createRpcConnection } from './rpc-connection.ts'
import type { Rpc, RpcCall } from './rpc-connection.ts'

export type Provider = Readonly<{
  index: number
  /** Index and host: the path and the user part of a URL hold keys. */
  label: string
  breaker: Breaker
  latency: Latency
  pin: Pin
  /** Rejects with `RpcFailure` only. The breaker must have admitted it. */
  attempt: <T>(run: (rpc: Rpc, provider: Provider) => Promise<T>) => Promise<T>
  close: () => Promise<void>
}>

export type ProviderOptions = Readonly<{
  index: number
  url: string
  chainId: number
  contract: Hex
  attemptTimeoutMs: number
  /** Milliseconds of a clock that nobody sets. */
  ticks: () => number
  onCalls: (calls: number) => void
  onFault: (label: string, failure: RpcFailure, breaker: BreakerState) => void
}>

export function createProvider(options: ProviderOptions): Provider {
  const { index, chainId, contract, attemptTimeoutMs, ticks, onCalls, onFault } = options
  const url = new URL(options.url)
  const connection = createRpcConnection(url, attemptTimeoutMs)
  const breaker = createBreaker({ faults: 5, openMs: 5000, now: ticks })
  const latency = createLatency()
  let chain: Promise<void> | undefined

  const provider: Provider = {
    index,
    label: `${index}:${url.host}`,
    breaker,
    latency,
    pin: createPin(contract),
    attempt,
    close: connection.close,
  }
  return provider

  async function attempt<T>(run: (rpc: Rpc, provider: Provider) => Promise<T>): Promise<T> {
    const begun = performance.now()
    const askAll = (calls: readonly RpcCall[]) => {
      onCalls(calls.length)
      return connection.send(calls, begun + attemptTimeoutMs)
    }
    const ask = async (method: string, params: readonly unknown[]) => (await askAll([[method, params]]))[0]
    try {
      await rightChain(ask)
      const answer = await run({ ask, askAll }, provider)
      breaker.answered()
      // Only answers count: what a hanging provider takes is the deadline, and to wait for that before asking another is no hedge.
      latency.add(performance.now() - begun)
      return answer
    } catch (error) {
      const failure = error instanceof RpcFailure ? error : new RpcFailure('fault', reasonOf(error))
      if (failure.isFault) breaker.fault()
      else breaker.answered()
      if (failure.isFault) onFault(provider.label, failure, breaker.state())
      throw failure
    }
  }

  /** Asked once; what fails is asked again by the next attempt. */
  function rightChain(ask: Rpc['ask']): Promise<void> {
    chain ??= ask('eth_chainId', []).then((found) => {
      if (quantityOf(found) !== BigInt(chainId)) throw new RpcFailure('fault', 'eth_chainId is another chain')
    })
    const asked = chain
    asked.catch(() => {
      if (chain === asked) chain = undefined
    })
    return asked
  }
}
