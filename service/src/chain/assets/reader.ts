/**
 * Reads assets from the chain, each answer with the block it holds at (spec §2.2, §2.5, §4.1). Joins the head cache, the asset
 * cache with its invalidator, and the reads in batches. Every failure is CHAIN_UNAVAILABLE; state 0 is an answer.
 */
import type { Hex } from '@touchstone/verdict'
import { headPausesMs } from '../../domain/chain.ts'
import { createAgeClock } from '../../lib/async/age-clock.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { Block } from '../rpc/block.ts'
import { nonCanonical, type NonCanonical } from '../rpc/answer.ts'
import { type ChainSource } from '../rpc/source.ts'
import { createMicroBatch, type MicroBatchOptions } from './batch.ts'
import { type AssetCache, type CachedAsset, createAssetCache, toSnapshot } from './cache.ts'
import type { DecodedState, TaggedState } from './calls/abi.ts'
import {
  type CallEncoding,
  createEncodingDetector,
  type DetectEncoding,
  isOfRegistry,
  type ReadInterface,
} from './calls/encodings.ts'
import { createProvenRead, proofEncoding } from './calls/storage-proof.ts'
import { createHeadCache } from './head.ts'
import { createLogInvalidator } from './invalidation/by-logs.ts'
import { createHeadInvalidator, type Invalidator } from './invalidation/invalidator.ts'

export type AssetReaderOptions = Readonly<{
  source: ChainSource
  contract: Hex
  interface: ReadInterface
  /** The source itself implements `quorum`; `proof` needs `codeHash`. */
  trust: 'rpc' | 'quorum' | 'proof'
  codeHash?: Hex | undefined
  /** `events`: an asset is kept until a log names its token. `head`: for one head. `off`: not at all. */
  cache: 'events' | 'head' | 'off'
  /** Assets in the cache; the least recently used one is evicted. */
  cacheEntries: number
  /** How old the head of an answer may be, and from what age on it is renewed in the background. */
  headMaxAgeMs?: number
  headRefreshMs?: number
  /** Time after which a read is given up. */
  readTimeoutMs?: number
  /** Pauses before the repetitions of a read whose block is not canonical. Backends behind one URL may also lack it for a moment. */
  retryPausesMs?: readonly number[]
  /** Tokens in one call, and calls under way at one time. */
  maxBatch?: number
  concurrency?: number
  /** Heads between two audits of the cache by events, and the time after which one is due in any case. */
  auditEvery?: number
  auditMs?: number
  /** Monotonic milliseconds. */
  now?: (() => number) | undefined
  log: Log
}>

/** The answer holds at `block`. */
export type AssetReading = Readonly<{ asset: CachedAsset; block: Block }>

/** `tokenId` and `asset` are `null` for a tag that no token carries. The asset is a snapshot. `tagHash` is the commitment that was found. */
type TagReading = Readonly<{ block: Block; tokenId: bigint | null; asset: CachedAsset | null; tagHash: Hex }>

export type AssetReader = Readonly<ReturnType<typeof createAssetReader>>

const auditTimeoutMs = 3000
/** Tags of one call, which has two commitments for each while TAG_PEPPER is replaced. Providers take a hundred calls in a JSON-RPC batch. */
const tagBatches = { maxBatch: 50, concurrency: 4 }
/** Most reads of one token that came back older than its change. After them the answer is given at its own block. */
const maxStaleReads = 3

/** Connects to nothing yet. Throws for options that can never work. */
export function createAssetReader(options: AssetReaderOptions) {
  const { headMaxAgeMs = 1000, headRefreshMs = 200, readTimeoutMs = 3000, concurrency = 2, log } = options
  const { now = createAgeClock(), retryPausesMs = headPausesMs } = options
  const { source, counts } = countReads(options.source)
  const keeps = options.cache !== 'off'
  const cache = createAssetCache(keeps ? options.cacheEntries : 1)
  const open = options.trust === 'proof' ? openProvenReads : openReads
  const { invalidator, encodingAt, maxBatch } = open({ ...options, source, now }, cache)
  const heads = createHeadCache({ source, invalidator, headMaxAgeMs, headRefreshMs, readTimeoutMs, now, log })
  const batch = createMicroBatch({ read: readTokens, maxBatch, concurrency, pin, onNonCanonical: heads.discard })
  const tagBatch = createMicroBatch({ read: readTags, ...tagBatches, pin, onNonCanonical: heads.discard })
  let hits = 0
  let misses = 0
  let isRegistry = options.interface === 'registry'

  async function pin(deadline: number) {
    const block = await heads.current(deadline)
    const encoding = await encodingAt(block, deadline)
    if (encoding !== nonCanonical) return { block, encoding }
    heads.discard()
    return nonCanonical
  }

  /** Reads one asset. A token that does not exist has state 0. Throws CHAIN_UNAVAILABLE within about 3 s. */
  async function read(tokenId: bigint): Promise<AssetReading> {
    const deadline = performance.now() + readTimeoutMs
    let retries = 0
    let staleReads = 0
    for (;;) {
      const head = heads.fresh() ?? (await heads.current(deadline))
      const reading = cached(tokenId)
      if (reading !== undefined) {
        hits++
        return reading
      }
      misses++
      const answer = await batch.ask(tokenId, head.hash, deadline)
      if (answer === nonCanonical) {
        await pauseBefore(retries++, deadline)
        continue
      }
      const { state: decoded, block } = answer
      // Another caller that waited for the same answer may have cached it, or a newer one.
      const newer = cached(tokenId)
      if (newer !== undefined) return newer
      const validity = keeps ? invalidator.validity(tokenId, block) : 'unknown'
      if (validity === 'valid') return admit(tokenId, decoded, block)
      if (validity === 'unknown') return { asset: toSnapshot(tokenId, decoded), block }
      // Stale: the token changed on the way to the head, or the block is no longer canonical.
      if (++staleReads < maxStaleReads) continue
      if (!invalidator.knows(block)) throw chainUnavailable('the chain is reorganised faster than it can be read')
      return { asset: toSnapshot(tokenId, decoded), block }
    }
  }

  /** Entries hold at the invalidator's head; both change in one turn, and so they are read in one. */
  function cached(tokenId: bigint): AssetReading | undefined {
    const block = invalidator.head()
    const asset = cache.get(tokenId)
    return asset === undefined || block === undefined ? undefined : { asset, block }
  }

  function admit(tokenId: bigint, decoded: DecodedState, readAt: Block): AssetReading {
    const block = invalidator.head() ?? readAt
    return { asset: cache.put(tokenId, decoded, block.number), block }
  }

  /**
   * Reads the token that carries a tag and its asset, all at one block. A tag may be bound under its former commitment instead.
   * Throws CHAIN_UNAVAILABLE, also when the two commitments are bound to different tokens.
   */
  async function readByTag(tagHash: Hex, formerTagHash?: Hex): Promise<TagReading> {
    const tagHashes = formerTagHash === undefined ? [tagHash] : [tagHash, formerTagHash]
    const deadline = performance.now() + readTimeoutMs
    for (let retries = 0; ; await pauseBefore(retries++, deadline)) {
      const answer = await tagBatch.ask(tagHashes.join(), heads.fresh()?.hash, deadline)
      if (answer === nonCanonical) continue
      const { state: tags, block } = answer
      const bound = tags.find((tag) => tag.tokenId !== null)
      if (bound === undefined || bound.tokenId === null) return { block, tokenId: null, asset: null, tagHash }
      if (tags.some(({ tokenId }) => tokenId !== null && tokenId !== bound.tokenId))
        throw chainUnavailable('the present and the former commitment of a tag are bound to different tokens')
      return {
        block,
        tokenId: bound.tokenId,
        asset: toSnapshot(bound.tokenId, bound.decoded),
        tagHash: tagHashes[tags.indexOf(bound)] ?? tagHash,
      }
    }
  }

  /**
   * Returns whether each change of a record emits an event, so that an index of events has it. It asks the contract where the setting is
   * `auto`, until it is known to. Throws CHAIN_UNAVAILABLE.
   */
  async function emitsChanges(): Promise<boolean> {
    if (isRegistry || options.interface === 'foreign') return isRegistry
    const deadline = performance.now() + readTimeoutMs
    for (let retries = 0; ; await pauseBefore(retries++, deadline)) {
      const pinned = await pin(deadline)
      if (pinned !== nonCanonical) return (isRegistry = isOfRegistry(pinned.encoding))
    }
  }

  /** Waits before a read whose block is not canonical is repeated. Throws CHAIN_UNAVAILABLE when the time is up. */
  async function pauseBefore(retry: number, deadline: number): Promise<void> {
    const pauseMs = retryPausesMs[retry]
    if (pauseMs === undefined || performance.now() + pauseMs >= deadline)
      throw chainUnavailable('the pinned block is not canonical, again')
    if (pauseMs > 0) await sleep(pauseMs)
  }

  return {
    read,
    readByTag,
    emitsChanges,
    /** Returns the block at which every current asset holds, if it was resolved lately. Renews it while it is asked for. */
    head: heads.fresh,
    /** Takes note that the chain has this block: the next read resolves the head anew if it is below. */
    dropHead: heads.reached,
    /** `entries` counts the assets in the cache. */
    stats() {
      const upstreamCalls = Object.values(counts).reduce((sum, count) => sum + count, 0)
      const own = { hits, misses, entries: cache.size(), upstreamCalls }
      return { ...own, ...counts, ...invalidator.stats(), ...batch.stats() }
    },
    close: heads.close,
  }
}

/** Commitments under which one tag may be bound, joined by commas. */
type TagKey = string

const hashesOf = (key: TagKey) => key.split(',') as Hex[]

const readTokens: MicroBatchOptions<bigint, DecodedState>['read'] = (encoding, ids, block, deadline) =>
  encoding.read(ids, block, deadline)

const readTags: MicroBatchOptions<TagKey, readonly TaggedState[]>['read'] = async (encoding, keys, block, deadline) => {
  const answer = await encoding.byTags(keys.flatMap(hashesOf), block, deadline)
  if (answer === nonCanonical) return answer
  if ('suspects' in answer)
    return { suspects: new Set(keys.filter((key) => hashesOf(key).some((hash) => answer.suspects.has(hash)))) }
  let at = 0
  return keys.map((key) => answer.slice(at, (at += hashesOf(key).length)))
}

type Reads = Readonly<{ invalidator: Invalidator; encodingAt: DetectEncoding; maxBatch: number }>
type ReadsOptions = AssetReaderOptions & Readonly<{ now: () => number }>

/** Opens reads by proof: what may be kept between two heads is proven too. */
function openProvenReads(options: ReadsOptions, cache: AssetCache): Reads {
  const { source, contract, codeHash, log } = options
  if (codeHash === undefined) throw new Error('Trust "proof" needs the code hash of the contract.')
  const proven = createProvenRead({ source, contract, codeHash })
  const encoding = proofEncoding(proven)
  return {
    invalidator: createHeadInvalidator({ cache, proven: options.cache === 'events' ? proven : undefined, log }),
    encodingAt: () => Promise.resolve(encoding),
    maxBatch: encoding.maxBatch,
  }
}

/** Opens reads by `eth_call`, with logs as the reason to drop what was kept. */
function openReads(options: ReadsOptions, cache: AssetCache): Reads {
  const { source, contract, interface: kind, maxBatch = 1000, now, log } = options
  // A reader that is always asked has 16 heads in 3.2 s.
  const { auditEvery = 16, auditMs = 3_200 } = options
  const detect = createEncodingDetector({ source, contract, interface: kind })
  let encoding: CallEncoding | undefined

  async function encodingAt(block: Block, deadline: number): Promise<CallEncoding | NonCanonical> {
    const detected = await detect(block, deadline)
    if (detected !== nonCanonical) encoding = detected
    return detected
  }

  /** Reads outside of the batches, so that an audit delays no caller. */
  async function readAgain(ids: readonly bigint[], block: Block) {
    const answer = await encoding?.read(ids, block, performance.now() + auditTimeoutMs)
    if (answer === undefined || answer === nonCanonical) return answer ?? null
    return 'suspects' in answer ? null : answer
  }

  if (options.cache !== 'events') return { invalidator: createHeadInvalidator({ cache, log }), encodingAt, maxBatch }
  const sample = () => Math.min(maxBatch, encoding?.maxBatch ?? 0)
  const audits = { read: readAgain, every: auditEvery, everyMs: auditMs, sample }
  return { invalidator: createLogInvalidator({ source, cache, audits, now, log }), encodingAt, maxBatch }
}

type SourceCounts = { heads: number; blocks: number; calls: number; logs: number; proofs: number }

/** Counts the reads of a source (spec §8): providers charge for every call and every member of a batch. */
function countReads(source: ChainSource): Readonly<{ source: ChainSource; counts: Readonly<SourceCounts> }> {
  const counts: SourceCounts = { heads: 0, blocks: 0, calls: 0, logs: 0, proofs: 0 }

  function counted<Args extends unknown[], Answer>(
    name: keyof SourceCounts,
    read: (...args: Args) => Answer,
    members: (...args: Args) => number = () => 1,
  ) {
    return (...args: Args): Answer => {
      counts[name] += members(...args)
      return read(...args)
    }
  }

  return {
    counts,
    source: {
      ...source,
      head: counted('heads', source.head),
      block: counted('blocks', source.block),
      call: counted('calls', source.call),
      calls: counted('calls', source.calls, (_to, datas) => datas.length),
      logs: counted('logs', source.logs),
      proof: counted('proofs', source.proof),
    },
  }
}
