/**
 * The chain over JSON-RPC providers (spec §2.5, §4.1): who is asked, how many must agree, and what is CHAIN_UNAVAILABLE.
 * A caller sees one message only; the reasons go to the log, where providers are called by index and host.
 */
import type { Hex } from '@touchstone/verdict'
import { ServiceError, reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { BreakerState } from './breaker.ts'
import { ReadFailure, agreement } from './failover.ts'
import { createHeadLag } from './head-lag.ts'
import { createTip } from './head-tip.ts'
import { createProvider } from './provider.ts'
import type { Provider } from './provider.ts'
import {
  checked,
  readBlock,
  readBlocksAt,
  readCall,
  readCalls,
  readFinalized,
  readLogs,
  readLogsAbout,
  readLogsBetween,
  readProof,
} from './reads.ts'
import type { Read } from './reads.ts'
import { RpcFailure } from './rpc-answer.ts'
import { blockGone, rangeTooWide } from './source.ts'
import type { Block, ReadOptions, RpcChainSource } from './source.ts'

export type ChainSourceOptions = Readonly<{
  /** The preferred one first. Paths and user parts may hold keys. */
  rpcUrls: readonly string[]
  contract: Hex
  chainId: number
  blockTag: 'latest' | 'safe' | 'finalized'
  trust: 'rpc' | 'quorum' | 'proof'
  /** How many providers must agree, 2 at least; used by `quorum` only. */
  quorum: number
  /** 0 is any age. */
  maxHeadAgeSeconds: number
  /** For one provider, headers and body together. */
  attemptTimeoutMs?: number
  /** For one read, whatever number of providers it takes. */
  readTimeoutMs?: number
  /** Unix milliseconds: how old a head is. */
  now?: () => number
  /** Milliseconds of a clock that nobody sets: how long ago anything was. */
  ticks?: () => number
  log: Log
}>

/** What is an answer although no provider gave a result. */
const meanings = { gone: blockGone, 'too-wide': rangeTooWide } as const

/** Connects to nothing yet. Throws for options that can never work. */
export function createChainSource(options: ChainSourceOptions): RpcChainSource {
  const { chainId, trust, log } = options
  const { attemptTimeoutMs = 1500, readTimeoutMs = 3000, now = Date.now, ticks = () => performance.now() } = options
  const contract = lowerCase(options.contract)
  const needed = neededOf(options)
  const counts = { calls: 0, requests: 0, faults: 0, hedges: 0, failovers: 0, disagreements: 0, uncheckedHeaders: 0 }
  const lag = createHeadLag(ticks)
  const common = { chainId, contract, attemptTimeoutMs, ticks, onCalls, onFault }
  const providers = options.rpcUrls.map((url, index) => createProvider({ ...common, index, url }))
  const resolveTip = createTip({
    blockTag: options.blockTag,
    maxHeadAgeSeconds: options.maxHeadAgeSeconds,
    readTimeoutMs,
    needed,
    quorum: trust === 'quorum',
    providers,
    candidates,
    ask,
    lag,
    now,
    ticks,
    onUnchecked,
    onDisagreement: () => counts.disagreements++,
  })
  let headFlight: Promise<Block> | undefined

  return {
    head(read) {
      headFlight ??= resolveTip().finally(() => (headFlight = undefined))
      return finish('head', inTime(headFlight, deadlineOf(read)))
    },
    block: (hash, read) => finish('block', ask(readBlock(hash, onUnchecked), read), 'gone'),
    call: (to, data, block, read) =>
      // Wrong data may be what the contract really says there: no fault, or anyone who finds such an id opens every breaker.
      finish('call', ask(checked(readCall(to, data, block), 'refused', read?.check), read), 'gone'),
    calls: async (to, datas, block, read) =>
      datas.length === 0
        ? []
        : finish('calls', ask(checked(readCalls(to, datas, block), 'refused', read?.check), read), 'gone'),
    logs: (block, read) => finish('logs', ask(readLogs(contract, block), read), 'gone'),
    logsBetween: (from, to, read) =>
      finish('logs', ask(readLogsBetween(contract, from, to, read?.events), read), 'too-wide'),
    blocksAt: async (numbers, read) =>
      numbers.length === 0 ? [] : finish('blocks', ask(readBlocksAt(numbers, onUnchecked), read)),
    finalized: (read) => finish('finalized', ask(readFinalized(onUnchecked), read)),
    logsAbout: (tokenId, from, to, read) =>
      finish('logs', ask(readLogsAbout(contract, tokenId, from, to), read), 'too-wide'),
    proof: (slots, block, read) =>
      finish('proof', ask(checked(readProof(contract, slots, block), 'fault', read?.check), read), 'gone'),
    stats: () => ({
      ...counts,
      providers: providers.map(({ index, label, breaker }) => ({
        label,
        breaker: breaker.state(),
        behind: lag.isBehind(index),
      })),
    }),
    async close() {
      await Promise.all(providers.map((provider) => provider.close()))
    },
  }

  function ask<T>(read: Read<T>, options?: ReadOptions): Promise<T> {
    return agreement({
      providers: candidates(),
      needed,
      words: read.words,
      deadline: deadlineOf(options),
      attempt: (provider) => provider.attempt(read.run),
      count: (what) => counts[what]++,
    })
  }

  /** The healthy ones in the order of the configuration, then those whose breaker may be tried. */
  function candidates(): readonly Provider[] {
    const usable = providers.filter(({ index, breaker }) => breaker.state() !== 'open' && !lag.isBehind(index))
    return usable.toSorted((a, b) => Number(a.breaker.state() === 'ready') - Number(b.breaker.state() === 'ready'))
  }

  function onUnchecked(): void {
    if (trust !== 'rpc') throw new RpcFailure('refused', 'header has fields that cannot be checked')
    counts.uncheckedHeaders++
  }

  function onCalls(calls: number): void {
    counts.calls += calls
    counts.requests++
  }

  function onFault(provider: string, failure: RpcFailure, breaker: BreakerState): void {
    counts.faults++
    log[breaker === 'open' ? 'warn' : 'debug']('chain provider fault', { provider, reason: failure.message, breaker })
  }

  /** `also` is the failure that callers want to know about; all else is the one public error. */
  async function finish<T, K extends keyof typeof meanings = never>(
    name: string,
    flight: Promise<T>,
    also?: K,
  ): Promise<T | (typeof meanings)[K]> {
    try {
      return await flight
    } catch (error) {
      if (also !== undefined && error instanceof ReadFailure && error.kinds.has(also)) return meanings[also]
      log.warn('chain read failed', { read: name, reason: reasonOf(error) })
      throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: error })
    }
  }

  function deadlineOf(read?: ReadOptions): number {
    return Math.min(performance.now() + readTimeoutMs, read?.deadline ?? Infinity)
  }
}

function neededOf({ rpcUrls, trust, quorum }: ChainSourceOptions): number {
  if (rpcUrls.length === 0) throw new Error('No RPC URL is given.')
  if (trust !== 'quorum') return 1
  // The same provider twice would agree with itself.
  const distinct = new Set(rpcUrls.map((url) => new URL(url).href)).size
  if (distinct < rpcUrls.length) throw new Error('An RPC URL is given twice, which makes no quorum.')
  if (!Number.isInteger(quorum) || quorum < 2 || quorum > distinct) {
    throw new Error(`A quorum is of 2 providers or more; ${quorum} of ${distinct} RPC URLs make none.`)
  }
  return quorum
}

/** Joins a flight that others may have started earlier, without waiting longer than this caller wants. */
async function inTime<T>(flight: Promise<T>, deadline: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new ReadFailure('deadline')), Math.max(0, deadline - performance.now()))
  })
  try {
    return await Promise.race([flight, late])
  } finally {
    clearTimeout(timer)
  }
}

function lowerCase(address: Hex): Hex {
  return `0x${address.slice(2).toLowerCase()}`
}
