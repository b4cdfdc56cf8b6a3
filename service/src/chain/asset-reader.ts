/**
 * Reads assets from the chain, each answer with the block it is true at (spec §2.2, §2.5, §4.1).
 * Joins: the head (asset-reader-head), what may be kept between heads (follower, cache), and reading the rest in batches
 * (micro-batch, read-calls, proof-read). Everything that goes wrong is CHAIN_UNAVAILABLE; state 0 is an answer.
 */
import type { Hex } from '@touchstone/verdict'
import { ServiceError } from '../errors.ts'
import { createHeads } from './asset-reader-head.ts'
import { createPlan } from './asset-reader-plan.ts'
import type { AssetReaderOptions } from './asset-reader-plan.ts'
import { countedSource } from './asset-reader-count.ts'
import type { SourceCounts } from './asset-reader-count.ts'
import { createAssetCache, deadAsset } from './cache.ts'
import type { CachedAsset } from './cache.ts'
import type { FollowerStats } from './follower.ts'
import { createMicroBatch } from './micro-batch.ts'
import type { Found } from './read-calls.ts'
import type { TagFound } from './read-calls-form.ts'
import { blockGone } from './source.ts'
import type { Block } from './source.ts'

/** The answer is true at `block`. */
export type AssetReading = Readonly<{ asset: CachedAsset; block: Block }>

/** `tokenId` and `asset` are `null` for a tag that no token carries. The asset is never live. */
type TagReading = Readonly<{ block: Block; tokenId: bigint | null; asset: CachedAsset | null }>

export type AssetReader = Readonly<{
  /** One asset. A token that does not exist has state 0. Throws CHAIN_UNAVAILABLE within about 3 s. */
  read: (tokenId: bigint) => Promise<AssetReading>
  /** The token that carries a tag and its asset, all at one block. Throws CHAIN_UNAVAILABLE. */
  readByTag: (tagHash: Hex) => Promise<TagReading>
  /** The block that every live asset is true at, if it was resolved lately; at once, and renews itself while it is asked for. */
  head: () => Block | undefined
  /** The chain is known to have reached this block: the next read resolves the head anew if it is below. */
  dropHead: (blockNumber: bigint) => void
  stats: () => AssetReaderStats
  close: () => void
}>

type AssetReaderStats = Readonly<SourceCounts> &
  FollowerStats &
  Readonly<{
    upstreamCalls: number
    hits: number
    misses: number
    batches: number
    batchedIds: number
    splits: number
    headFailures: number
    /** Assets in the cache. */
    entries: number
  }>

const readTimeoutMs = 3000
/** Reads of one token that came back older than a change of it, before such an answer is given at its own block. */
const maxOvertaken = 3

/** Connects to nothing yet. Throws for options that can never work. */
export function createAssetReader(options: AssetReaderOptions): AssetReader {
  const { headMaxAgeMs = 1000, headRefreshMs = 200, lanes = 2, now = () => performance.now(), log } = options
  const { source, counts } = countedSource(options.source)
  const keeps = options.cache !== 'off'
  const cache = createAssetCache(keeps ? { entries: options.cacheEntries } : { entries: 0, missing: 0 })
  const { follower, formAt, batchSize } = createPlan({ ...options, source, now }, cache)
  const heads = createHeads({ source, follower, headMaxAgeMs, headRefreshMs, now, log })
  const batch = createMicroBatch({ maxBatch: batchSize, lanes, pin, onGone: heads.lost })
  let hits = 0
  let misses = 0

  async function pin(deadline: number) {
    const block = await heads.current(deadline)
    const form = await formAt(block, deadline)
    if (form !== blockGone) return { block, form }
    heads.lost(block)
    return blockGone
  }

  async function read(tokenId: bigint): Promise<AssetReading> {
    const deadline = performance.now() + readTimeoutMs
    let timesGone = 0
    let timesOvertaken = 0
    for (;;) {
      const head = heads.fresh() ?? (await heads.current(deadline))
      const reading = kept(tokenId)
      if (reading !== undefined) {
        hits++
        return reading
      }
      misses++
      const answer = await batch.ask(tokenId, head.hash, deadline)
      if (answer === blockGone) {
        if (++timesGone > 1) return refuse('the pinned block is gone, again')
        continue
      }
      const { found, block } = answer
      // Whoever waited for the same answer may have put it in, or a newer one.
      const others = kept(tokenId)
      if (others !== undefined) return others
      const standing = keeps ? follower.standing(tokenId, block) : 'unknown'
      if (standing === 'holds') return admitted(tokenId, found, block)
      if (standing === 'unknown') return { asset: deadAsset(tokenId, found), block }
      // The head has passed a change of this token, or the block is no longer canonical: the old state is told to nobody.
      if (++timesOvertaken < maxOvertaken) continue
      if (!follower.knows(block)) return refuse('the chain is reorganised faster than it can be read')
      return { asset: deadAsset(tokenId, found), block }
    }
  }

  /** What the cache holds is true at the follower's head; both change in one turn, and so they are read in one. */
  function kept(tokenId: bigint): AssetReading | undefined {
    const block = follower.head()
    const asset = cache.get(tokenId)
    return asset === undefined || block === undefined ? undefined : { asset, block }
  }

  function admitted(tokenId: bigint, found: Found, readAt: Block): AssetReading {
    const block = follower.head() ?? readAt
    return { asset: cache.put(tokenId, found, block.number), block }
  }

  async function readByTag(tagHash: Hex): Promise<TagReading> {
    const deadline = performance.now() + readTimeoutMs
    for (let attempt = 0; attempt < 2; attempt++) {
      const pinned = await pin(deadline)
      if (pinned === blockGone) continue
      const { block, form } = pinned
      const tag = await form.byTag(tagHash, block, deadline)
      if (tag !== blockGone) return tagReading(tag, block)
      heads.lost(block)
    }
    return refuse('the pinned block is gone, again')
  }

  return {
    read,
    readByTag,
    head: heads.fresh,
    dropHead: heads.reached,
    stats() {
      const upstreamCalls = Object.values(counts).reduce((sum, count) => sum + count, 0)
      const own = { hits, misses, entries: cache.size(), upstreamCalls }
      return { ...own, ...counts, ...follower.stats(), ...batch.stats(), ...heads.stats() }
    },
    close: heads.close,
  }
}

function tagReading(tag: TagFound, block: Block): TagReading {
  if (tag.tokenId === null) return { block, tokenId: null, asset: null }
  return { block, tokenId: tag.tokenId, asset: deadAsset(tag.tokenId, tag.found) }
}

function refuse(reason: string): never {
  throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: new Error(reason) })
}
