/**
 * What the reader asks of the chain (spec §2.2, §2.5): heads, reads pinned to a block by its hash, logs, proofs.
 * `providers.ts` answers it over JSON-RPC; whatever goes wrong there is `ServiceError('CHAIN_UNAVAILABLE')`.
 */
import type { EthProof, Hex, RpcHeader } from '@touchstone/verdict'

/** A block. `timestamp` is in unix seconds. `header` is the provider's own JSON without its transactions, for proofs. */
export type Block = Readonly<{ number: bigint; hash: Hex; parentHash: Hex; timestamp: bigint; header: RpcHeader }>

/** One log of the registry; `topics[0]` is the event, all of the contract's events carry the token id in `topics`. */
export type ChainLog = Readonly<{
  address: Hex
  topics: readonly Hex[]
  data: Hex
  blockNumber: bigint
  blockHash: Hex
  logIndex: number
  transactionHash: Hex
  /** Unix seconds; not every provider tells it. */
  blockTimestamp?: bigint
}>

/** The pinned block is no longer canonical (or unknown to every provider): resolve the head again. */
export const blockGone = Symbol('block gone')
export type BlockGone = typeof blockGone

/** No provider wants to answer for so many blocks or logs at once: ask for fewer. */
export const rangeTooWide = Symbol('range too wide')
type RangeTooWide = typeof rangeTooWide

/** `deadline` is a moment of `performance.now()` in milliseconds; a read never takes longer than 3 s. */
export type ReadOptions = Readonly<{ deadline?: number }>

/**
 * `check` says what is wrong with an answer (for the log only), or `null`. After a refused answer the next provider is
 * asked: so that an honest second one answers for a lying first one. A refused proof also counts as a fault of its
 * provider; refused data does not, for it may be what the contract really says.
 */
type CheckedReadOptions<T> = ReadOptions & Readonly<{ check?: (answer: T) => string | null }>

/** `events`: only logs whose first topic is one of these. */
type LogsOptions = ReadOptions & Readonly<{ events?: readonly Hex[] }>

export type ChainSource = Readonly<{
  /** The head under the configured block tag: canonical, fresh, of the right chain. Concurrent callers share one flight. */
  head: (options?: ReadOptions) => Promise<Block>
  /** A block by hash, or `blockGone` if no provider knows it. Whether it is canonical must be known from its children. */
  block: (hash: Hex, options?: ReadOptions) => Promise<Block | BlockGone>
  /** `eth_call` to `to`, pinned to the block's hash; the raw result, never `0x`. A revert is CHAIN_UNAVAILABLE. */
  call: (to: Hex, data: Hex, block: Block, options?: CheckedReadOptions<Hex>) => Promise<Hex | BlockGone>
  /** Like `call` for several at once, in one JSON-RPC batch; results in the order of `datas`. Fails as a whole. */
  calls: (
    to: Hex,
    datas: readonly Hex[],
    block: Block,
    options?: CheckedReadOptions<readonly Hex[]>,
  ) => Promise<readonly Hex[] | BlockGone>
  /** All logs of the registry in one block, by block hash, in log order. */
  logs: (block: Block, options?: ReadOptions) => Promise<readonly ChainLog[] | BlockGone>
  /** All logs of the registry in a range of block numbers (both included), in order. Not pinned: check their block hashes. */
  logsBetween: (from: bigint, to: bigint, options?: LogsOptions) => Promise<readonly ChainLog[] | RangeTooWide>
  /** `eth_getProof` of the registry at the block; only its shape is checked here, so pass `check` in `proof` trust. */
  proof: (slots: readonly Hex[], block: Block, options?: CheckedReadOptions<EthProof>) => Promise<EthProof | BlockGone>
  close: () => Promise<void>
}>

/** Counters since the start, for metrics and benchmarks. `calls` counts every member of a batch, `requests` HTTP requests. */
type ChainStats = Readonly<{
  calls: number
  requests: number
  faults: number
  hedges: number
  failovers: number
  disagreements: number
  uncheckedHeaders: number
  providers: readonly Readonly<{ label: string; breaker: 'closed' | 'open' | 'ready'; behind: boolean }>[]
}>

/** The source over JSON-RPC providers. */
export type RpcChainSource = ChainSource &
  Readonly<{
    /** Like `logsBetween`, only those that have the token id as their second topic. */
    logsAbout: (
      tokenId: bigint,
      from: bigint,
      to: bigint,
      options?: ReadOptions,
    ) => Promise<readonly ChainLog[] | RangeTooWide>
    /** The canonical blocks with these numbers, in their order; `null` for those that the provider does not have. */
    blocksAt: (numbers: readonly bigint[], options?: ReadOptions) => Promise<readonly (Block | null)[]>
    /** The number of the `finalized` block; `null` where the provider does not say. */
    finalized: (options?: ReadOptions) => Promise<bigint | null>
    stats: () => ChainStats
  }>
