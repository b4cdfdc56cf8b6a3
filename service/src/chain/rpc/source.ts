/**
 * The chain over JSON-RPC providers (spec §2.2, §2.5, §4.1): heads, reads pinned to a block by its hash, logs, proofs.
 * It decides which providers are asked, how many must agree, and what is CHAIN_UNAVAILABLE. The reasons go to the log,
 * where providers are named by index and host.
 */
import type { EthProof, Hex } from '@touchstone/verdict'
import type { ChainLog } from '../../domain/registry-event.ts'
import type { BreakerState } from '../../lib/async/circuit-breaker.ts'
import { msUntil, withDeadline } from '../../lib/async/deadline.ts'
import { singleFlight } from '../../lib/async/single-flight.ts'
import { chainUnavailable, reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { RpcError, nonCanonical, type NonCanonical, rangeTooWide, type RangeTooWide } from './answer.ts'
import type { Block } from './block.ts'
import { agreement, ReadFailure } from './failover.ts'
import { createHeadLag, createHeadResolver } from './head.ts'
import { type ChainCounts, createProvider, newCounts, type Provider } from './provider.ts'
import * as reads from './reads.ts'
import { requiredAnswers, type TrustOptions } from './trust.ts'

/** `deadline` is a moment of `performance.now()` in milliseconds; a read never takes longer than 3 s. */
type ReadOptions = Readonly<{ deadline?: number }>

/**
 * `check` returns what is wrong with an answer (for the log only), or `null`. After a rejected answer the next provider is
 * asked, so that an honest second one answers for a lying first one. It is no fault of its provider: the contract may really
 * answer so, or a setting may be wrong, and anyone could open every breaker. In `proof` trust a rejected proof is a fault, because
 * every verdict depends on the same check.
 */
type CheckedReadOptions<T> = ReadOptions & Readonly<{ check?: (answer: T) => string | null }>

/** `events`: only logs whose first topic is one of these. */
type LogsOptions = ReadOptions & Readonly<{ events?: readonly Hex[] }>

/** Every read throws CHAIN_UNAVAILABLE. */
export type ChainSource = Readonly<{
  /** The head under the configured block tag: canonical, fresh, of the right chain. Concurrent callers share one request. */
  head: (options?: ReadOptions) => Promise<Block>
  /** A block by hash. The provider may know blocks that are not canonical; only their children show it. */
  block: (hash: Hex, options?: ReadOptions) => Promise<Block | NonCanonical>
  /** `eth_call` to `to`, pinned to the block's hash; the raw result, never `0x`. A revert is CHAIN_UNAVAILABLE. */
  call: (to: Hex, data: Hex, block: Block, options?: CheckedReadOptions<Hex>) => Promise<Hex | NonCanonical>
  /** Several calls in one JSON-RPC batch; results in the order of `datas`. Fails as a whole. */
  calls: (
    to: Hex,
    datas: readonly Hex[],
    block: Block,
    options?: CheckedReadOptions<readonly Hex[]>,
  ) => Promise<readonly Hex[] | NonCanonical>
  /** All logs of the registry in one block, by block hash, in log order. */
  logs: (block: Block, options?: ReadOptions) => Promise<readonly ChainLog[] | NonCanonical>
  /** All logs of the registry in a range of block numbers (both included), in order. Not pinned: check their block hashes. */
  logsBetween: (from: bigint, to: bigint, options?: LogsOptions) => Promise<readonly ChainLog[] | RangeTooWide>
  /** `eth_getProof` of the registry at the block. Only its shape is checked here. In `proof` trust, one provider is enough if `check` is given. */
  proof: (
    slots: readonly Hex[],
    block: Block,
    options?: CheckedReadOptions<EthProof>,
  ) => Promise<EthProof | NonCanonical>
  /** Returns how often a provider stopped taking block hashes. What was read before the last time must not be kept. */
  lostPins: () => number
  close: () => Promise<void>
}>

export type RpcChainSource = ChainSource &
  Readonly<{
    /** The canonical blocks with these numbers, in their order; `null` for a block that the provider does not have. */
    blocksAt: (numbers: readonly bigint[], options?: ReadOptions) => Promise<readonly (Block | null)[]>
    /** The number of the `finalized` block; `null` where the provider does not have the tag. */
    finalized: (options?: ReadOptions) => Promise<bigint | null>
    /** Each provider is asked for its chain id before its next read. */
    doubtChain: () => void
    stats: () => ChainStats
  }>

type ChainStats = ChainCounts &
  Readonly<{ providers: readonly Readonly<{ label: string; breaker: BreakerState; behind: boolean }>[] }>

export type ChainSourceOptions = TrustOptions &
  Readonly<{
    contract: Hex
    chainId: number
    blockTag: 'latest' | 'safe' | 'finalized'
    /** 0 is any age. */
    maxHeadAgeSeconds: number
    /** For one provider, headers and body together. */
    attemptTimeoutMs?: number
    /** For one read, whatever number of providers it takes. */
    readTimeoutMs?: number
    /** Unix milliseconds, for the age of a head. */
    now?: () => number
    /** Monotonic milliseconds, for all other ages. */
    ticks?: () => number
    log: Log
  }>

/** The log names so many sets of unknown members at most: they come from providers. */
const mostNotices = 16

/** Failures of a provider that are an answer of the read. */
const answers = { 'non-canonical': nonCanonical, 'too-wide': rangeTooWide } as const

/** Connects to nothing yet. Throws for options that can never work. */
export function createChainSource(options: ChainSourceOptions): RpcChainSource {
  const { chainId, trust, log } = options
  const { attemptTimeoutMs = 1500, readTimeoutMs = 3000, now = Date.now, ticks = () => performance.now() } = options
  const contract = options.contract.toLowerCase() as Hex
  const needed = requiredAnswers(options)
  const counts = newCounts()
  const warnedOf = new Set<string>()
  let lostPins = 0
  const lag = createHeadLag(ticks)
  const shared = { chainId, contract, attemptTimeoutMs, ticks, counts, log, onFault, onLostPin }
  const providers = options.rpcUrls.map((url, index) => createProvider({ ...shared, index, url }))
  const resolveHead = singleFlight(
    createHeadResolver({
      blockTag: options.blockTag,
      maxHeadAgeSeconds: options.maxHeadAgeSeconds,
      readTimeoutMs,
      needed,
      providers,
      candidates,
      ask,
      lag,
      now,
      ticks,
      onUnchecked,
      onDisagreement: () => counts.disagreements++,
    }),
  )

  return {
    head(read) {
      // The request may be one that another caller began. This one waits for it up to its own deadline.
      const late = () => {
        throw new ReadFailure('deadline')
      }
      return finish('head', withDeadline(resolveHead(), msUntil(deadlineOf(read)), { onTimeout: late }))
    },
    block: (hash, read) => finish('block', ask(reads.readBlock(hash, onUnchecked), read), 'non-canonical'),
    async call(to, data, block, { check, ...read } = {}) {
      const calls = reads.checked(
        reads.readCalls(to, [data], block),
        'rejected',
        check && (([only = '0x']) => check(only)),
      )
      const results = await finish('call', ask(calls, read), 'non-canonical')
      return results === nonCanonical ? results : (results[0] ?? '0x')
    },
    async calls(to, datas, block, read) {
      if (datas.length === 0) return []
      const calls = reads.checked(reads.readCalls(to, datas, block), 'rejected', read?.check)
      return finish('calls', ask(calls, read), 'non-canonical')
    },
    logs: (block, read) => finish('logs', untimed(ask(reads.readLogs(contract, block), read)), 'non-canonical'),
    logsBetween: (from, to, read) =>
      finish('logs', untimed(ask(reads.readLogsBetween({ contract, from, to }, read?.events), read)), 'too-wide'),
    blocksAt: async (numbers, read) =>
      numbers.length === 0 ? [] : finish('blocks', ask(reads.readBlocksAt(numbers, onUnchecked), read)),
    finalized: (read) => finish('finalized', ask(reads.readFinalized(onUnchecked), read)),
    proof(slots, block, read) {
      const kind = trust === 'proof' ? 'fault' : 'rejected'
      const proof = reads.checked(reads.readProof(contract, slots, block), kind, read?.check)
      const isProven = trust === 'proof' && read?.check !== undefined
      return finish('proof', ask(proof, read, isProven ? 1 : needed), 'non-canonical')
    },
    lostPins: () => lostPins,
    doubtChain() {
      for (const provider of providers) provider.doubtChain()
    },
    stats: () => ({
      ...counts,
      providers: providers.map(({ index, label, state }) => ({
        label,
        breaker: state(),
        behind: lag.isBehind(index),
      })),
    }),
    async close() {
      await Promise.all(providers.map((provider) => provider.close()))
    },
  }

  function ask<T>(read: reads.Read<T>, options?: ReadOptions, wanted = needed): Promise<T> {
    return agreement({
      providers: candidates(),
      needed: wanted,
      consensusKey: read.consensusKey,
      deadline: deadlineOf(options),
      attempt: (provider) => provider.attempt(read.run),
      counts,
    })
  }

  /** Returns the healthy providers in the order of the configuration. Those that limit their rate, and those whose breaker may be tried, are last. */
  function candidates(): readonly Provider[] {
    const usable = providers.filter(({ index, breaker }) => breaker.state() !== 'open' && !lag.isBehind(index))
    const rank = ({ breaker, isPaused }: Provider) => (breaker.state() === 'ready' ? 2 : isPaused() ? 1 : 0)
    return usable.toSorted((a, b) => rank(a) - rank(b))
  }

  function onUnchecked(isChecked: boolean, unknown: readonly string[]): void {
    counts.uncheckedHeaders++
    const members = unknown.filter((name) => /^[a-zA-Z0-9]{1,40}$/.test(name)).join()
    const notice = `${isChecked} ${members}`
    if (!warnedOf.has(notice) && warnedOf.size < mostNotices) {
      warnedOf.add(notice)
      log.warn('block header with other members than this program knows', { unknown: members, checked: isChecked })
    }
    if (!isChecked && trust !== 'rpc') throw new RpcError('rejected', 'header has fields that cannot be checked')
  }

  /** Times beside logs are one provider's word, in no block hash. They are left out where its word alone must not count. */
  async function untimed(found: Promise<readonly ChainLog[]>): Promise<readonly ChainLog[]> {
    const logs = await found
    return trust === 'rpc' ? logs : logs.map(({ blockTimestamp: _time, ...log }) => log)
  }

  function onFault(provider: string, failure: RpcError, breaker: BreakerState): void {
    log[breaker === 'open' ? 'warn' : 'debug']('chain provider fault', { provider, reason: failure.message, breaker })
  }

  function onLostPin(provider: string): void {
    lostPins++
    log.warn('chain provider ignores block hashes', { provider })
  }

  /** Returns the answer that a failure of the kind `also` stands for; any other failure is CHAIN_UNAVAILABLE. */
  async function finish<T, K extends keyof typeof answers = never>(
    name: string,
    read: Promise<T>,
    also?: K,
  ): Promise<T | (typeof answers)[K]> {
    try {
      return await read
    } catch (error) {
      if (also !== undefined && error instanceof ReadFailure && error.kinds.has(also)) return answers[also]
      log.warn('chain read failed', { read: name, reason: reasonOf(error) })
      throw chainUnavailable(error)
    }
  }

  function deadlineOf(read?: ReadOptions): number {
    return Math.min(performance.now() + readTimeoutMs, read?.deadline ?? Infinity)
  }
}
