/**
 * JSON-RPC over all providers (spec §2.5), for writes, payments and the reads that they are checked against. The fault of one provider is
 * no fault of the call: a read goes to the next one, and a signed transaction goes to all of them.
 */
import { type Hex, lowerCaseHex } from '@touchstone/verdict'
import { keccak256 } from 'viem/utils'
import { withDeadline } from '../../lib/async/deadline.ts'
import { sleep } from '../../lib/async/sleep.ts'
import type { Log } from '../../lib/log.ts'
import { quantity, requireQuantity, RpcError } from './answer.ts'
import { isAboutRequest, isKnownTransaction, isRefusal, type RpcClient } from './client.ts'
import { agreement, ReadFailure } from './failover.ts'
import { type ChainCounts, createProvider, newCounts, type Provider } from './provider.ts'

type AnyProviderOptions = Readonly<{
  /** The preferred one first. Paths and user parts may hold keys. */
  rpcUrls: readonly string[]
  contract: Hex
  chainId: number
  /** How many providers must return the same receipt before it counts, 1 at least (`requiredAnswers`). */
  neededForReceipts: number
  /** For one call, whatever number of attempts it takes; one attempt takes at most a third of it. */
  rpcTimeoutMs?: number
  log: Log
}>

export type AnyProvider = ReturnType<typeof createAnyProvider>

/**
 * Each provider is asked so often, with pauses in between, while no answer is usable. That is about a second where all refuse connections.
 */
const rounds = 8
/** A provider is asked after the others for so long after a fault. */
const distrustMs = 5_000
/**
 * Time that the other providers get to take a transaction which one has accepted, so that pending counts agree. They may also have what one
 * lacks.
 */
const othersMs = 300
/** Errors that another attempt would not change. */
const decided = /revert|funds|gas|fee|pending|nonce|underpriced|already|\bknown/i
const receiptMethod = 'eth_getTransactionReceipt'
const countMethod = 'eth_getTransactionCount'
/** One provider may lag behind another, so these are asked of all. */
const lookups: ReadonlySet<string> = new Set([receiptMethod, 'eth_getTransactionByHash'])

/** Connects to nothing yet. `rpc` throws `RpcError`: the error of a node that answered, else a fault. */
export function createAnyProvider(options: AnyProviderOptions) {
  const { contract, chainId, neededForReceipts, rpcTimeoutMs = 8_000, log } = options
  const counts = newCounts()
  const distrustedUntil = new Map<number, number>()
  const closing = new AbortController()
  const shared = {
    contract,
    chainId,
    attemptTimeoutMs: Math.ceil(rpcTimeoutMs / 3),
    connections: 64,
    anyStatus: true,
    breaks: false,
    ticks: () => performance.now(),
    counts,
    log,
  }
  const providers = options.rpcUrls.map((url, index) =>
    createProvider({
      ...shared,
      index,
      url,
      onFault(provider, { message }) {
        log.debug('chain provider fault', { provider, reason: message })
        distrustedUntil.set(index, performance.now() + distrustMs)
      },
    }),
  )
  const isDistrusted = ({ index }: Provider) => (distrustedUntil.get(index) ?? 0) > performance.now()
  const isAskedLater = (provider: Provider) => isDistrusted(provider) || provider.isPaused()

  const rpc: RpcClient = (method, params = [], { unanimous = false } = {}) => {
    const until = performance.now() + rpcTimeoutMs
    if (method === 'eth_sendRawTransaction') return sendToAll(params as readonly [Hex], until)
    const isLookup = lookups.has(method) || (unanimous && method === 'eth_getBlockByNumber')
    return untilDecided(until, closing.signal, () => {
      if (unanimous && method === countMethod) return highestCount(params)
      return isLookup ? lookUp(method, params, unanimous) : askNext(method, params, until)
    })
  }

  /** Throws where one provider does not answer. */
  async function highestCount(params: readonly unknown[]): Promise<Hex> {
    const answers = await Promise.all(providers.map((provider) => askOne(provider, countMethod, params)))
    return quantity(answers.map(requireQuantity).reduce((one, other) => (one > other ? one : other)))
  }

  /** Asks one provider after another; beside a slow one the next is asked too. */
  async function askNext(method: string, params: readonly unknown[], deadline: number): Promise<unknown> {
    try {
      return await agreement({
        providers: providers.toSorted((a, b) => Number(isAskedLater(a)) - Number(isAskedLater(b))),
        needed: 1,
        consensusKey: () => '',
        deadline,
        attempt: (provider) => askOne(provider, method, params),
        counts,
      })
    } catch (error) {
      throw error instanceof ReadFailure ? rpcErrorOf(error) : error
    }
  }

  /**
   * Returns what any provider has, of a receipt what enough of them have alike. `null` is an answer where no other one is left,
   * `unanimous` only where every provider returns it.
   */
  async function lookUp(method: string, params: readonly unknown[], unanimous: boolean): Promise<unknown> {
    const answers = providers.map((provider) => askOne(provider, method, params))
    const needed = method === receiptMethod ? neededForReceipts : 1
    const known = firstAlike(answers, needed)
    // A provider that hangs must not delay the next look.
    const afterOthers = () => answered(answers, needed).then(() => sleep(othersMs, { ref: false }))
    const found = await (unanimous ? known : Promise.race([known, afterOthers().catch(() => null)]))
    if (found !== null && found !== undefined) return found
    if (!unanimous) return answered(answers, needed).then(() => null)
    if ((await Promise.all(answers)).some((answer) => answer !== null))
      throw new RpcError('fault', 'providers disagree on a receipt, transaction or block')
    return null
  }

  /** Resolves once one provider has the transaction. A refusal counts only where every provider has answered with one. */
  async function sendToAll(params: readonly [Hex], until: number): Promise<Hex> {
    const hash = keccak256(params[0])
    let mayBeSent = false
    const all = providers.map((provider) => ({
      isWaitedFor: !isDistrusted(provider),
      sent: untilDecided(until, closing.signal, () =>
        askOne(provider, 'eth_sendRawTransaction', params).catch((error: unknown) => {
          if (isKnownTransaction(error)) return
          if (!isRefusal(error)) mayBeSent = true
          throw error
        }),
      ),
    }))
    try {
      await Promise.any(all.map(({ sent }) => sent))
    } catch (error) {
      const reasons = (error as AggregateError).errors as readonly RpcError[]
      if (mayBeSent && (await lookUp('eth_getTransactionByHash', [hash], false).catch(() => null)) !== null) return hash
      throw (
        (mayBeSent ? reasons.find((reason) => !isRefusal(reason)) : reasons[0]) ?? new RpcError('fault', 'lost answer')
      )
    }
    const others = Promise.allSettled(all.flatMap(({ sent, isWaitedFor }) => (isWaitedFor ? [sent] : [])))
    await withDeadline(others, othersMs, { onTimeout: () => {} })
    return hash
  }

  function askOne(provider: Provider, method: string, params: readonly unknown[]): Promise<unknown> {
    return provider.attempt(async ({ ask }) => {
      const answer = lowerCaseHex(await ask(method, params))
      if (method === 'eth_chainId' && answer !== quantity(BigInt(chainId)))
        throw new RpcError('fault', 'eth_chainId is another chain')
      return answer
    })
  }

  return {
    rpc,
    stats: (): ChainCounts => ({ ...counts }),
    async close(): Promise<void> {
      closing.abort()
      await Promise.all(providers.map((provider) => provider.close()))
    },
  }
}

/** Resolves with the first answer but null that `needed` providers return alike; with null where there is none. */
async function firstAlike(answers: readonly Promise<unknown>[], needed: number): Promise<unknown> {
  const counts = new Map<string, number>()
  const alike = answers.map(async (answer) => {
    const known = await answer
    if (known === null) throw new Error('not known there')
    if (needed === 1) return known
    const key = receiptKey(known)
    const count = (counts.get(key) ?? 0) + 1
    counts.set(key, count)
    return count < needed ? Promise.reject(new Error('not known alike yet')) : known
  })
  return Promise.any(alike).catch(() => null)
}

/** Resolves once `count` of these have an answer. Throws the fault after which that cannot happen any more. */
function answered(answers: readonly Promise<unknown>[], count: number): Promise<void> {
  let [left, faults] = [count, 0]
  return new Promise((resolve, reject) => {
    for (const answer of answers)
      answer.then(
        () => (left -= 1) === 0 && resolve(),
        (error: unknown) => (faults += 1) > answers.length - count && reject(error),
      )
  })
}

/** Equal for receipts that say the same of a transaction: its block, its outcome and its logs. */
function receiptKey(receipt: unknown): string {
  const { blockHash, blockNumber, status, to, logs } = receipt as Record<string, unknown>
  const said = (Array.isArray(logs) ? logs : []).map(({ address, topics, data, logIndex }: Record<string, unknown>) => [
    address,
    topics,
    data,
    logIndex,
  ])
  return JSON.stringify([blockHash, blockNumber, status, to, said])
}

/** Repeats what fails by faults only, until the signal aborts. */
async function untilDecided<T>(until: number, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let round = 1, pauseMs = 20; ; round += 1, pauseMs = Math.min(250, 2 * pauseMs)) {
    try {
      return await ask()
    } catch (error) {
      const mayPass = error instanceof RpcError && (error.isFault || error.kind === 'non-canonical')
      const isDecided = !mayPass || (isAboutRequest(error) && decided.test(error.message))
      const waitMs = Math.max(pauseMs, (mayPass && error.retryAfterMs) || 0)
      if (isDecided || round === rounds || performance.now() + waitMs > until) throw error
      await sleep(waitMs, { signal })
      if (signal.aborted) throw error
    }
  }
}

/** Returns the most telling failure: one that the node decided, then one that may pass. */
function rpcErrorOf({ failures, message }: ReadFailure): RpcError {
  const isFinal = (error: RpcError) =>
    error.kind === 'reverted' || error.kind === 'rejected' || (isAboutRequest(error) && decided.test(error.message))
  return (
    failures.find(isFinal) ?? failures.find(({ isFault }) => isFault) ?? failures[0] ?? new RpcError('fault', message)
  )
}
