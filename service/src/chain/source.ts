/**
 * What the reader asks of the chain (spec §2.2, §2.5): heads, reads pinned to a block by its hash, logs, proofs.
 * `providers.ts` answers it over JSON-RPC; whatever goes wrong there is `ServiceError('CHAIN_UNAVAILABLE')`.
 */
import type { EthProof, Hex, RpcHeader } from '@touchstone/verdict'

/** A canonical block. `timestamp` is in unix seconds. `header` is the provider's own JSON, for proofs. */
export type Block = Readonly<{ number: bigint; hash: Hex; parentHash: Hex; timestamp: bigint; header: RpcHeader }>

/** One log of the registry; `topics[0]` is the event, all of the contract's events carry the token id in `topics`. */
export type ChainLog = Readonly<{ address: Hex; topics: readonly Hex[]; data: Hex; blockNumber: bigint; blockHash: Hex; logIndex: number; transactionHash: Hex }>

/** The pinned block is no longer canonical (or unknown to every provider): resolve the head again. */
export const blockGone = Symbol('block gone')

/** `deadline` is a moment of `performance.now()` in milliseconds; without it a read may take 3 s. */
export type ReadOptions = Readonly<{ deadline?: number }>

export type ChainSource = Readonly<{
  /** The head under the configured block tag: canonical, fresh, of the right chain. */
  head: (options?: ReadOptions) => Promise<Block>
  /** A block by hash, or `blockGone`. */
  block: (hash: Hex, options?: ReadOptions) => Promise<Block | typeof blockGone>
  /** `eth_call` to `to`, pinned to the block's hash; the raw result, never `0x`. */
  call: (to: Hex, data: Hex, block: Block, options?: ReadOptions) => Promise<Hex | typeof blockGone>
  /** All logs of the registry in one block, by block hash, in log order. */
  logs: (block: Block, options?: ReadOptions) => Promise<readonly ChainLog[] | typeof blockGone>
  /** `eth_getProof` of the registry at the block, unchecked. */
  proof: (slots: readonly Hex[], block: Block, options?: ReadOptions) => Promise<EthProof | typeof blockGone>
  close: () => Promise<void>
}>
