/**
 * The follower of trust `proof` (spec §2.2): at every head the contract's storage root is proven under the block hash.
 * The same root means the same storage, so every entry is true there, proven, without believing in any log and across
 * any gap or reorganisation. Another root means that something changed, and as logs prove nothing, all entries go.
 */
import type { Hex } from '@touchstone/verdict'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { AssetCache } from './cache.ts'
import { noStats } from './follower.ts'
import type { Follower } from './follower.ts'
import type { ProvenRead } from './proof-read.ts'
import { blockGone } from './source.ts'
import type { Block } from './source.ts'

const keptRoots = 64

export function createRootFollower(options: Readonly<{ cache: AssetCache; proven: ProvenRead; log: Log }>): Follower {
  const { cache, proven, log } = options
  /** Storage root by block hash. */
  const roots = new Map<Hex, Hex>()
  let head: Block | undefined
  let counts = { flushes: 0, followFailures: 0, audits: 0 }

  function moveTo(to: Block, root: Hex | undefined): void {
    const unchanged = root !== undefined && head !== undefined && roots.get(head.hash) === root
    if (!unchanged && cache.size() > 0) counts.flushes++
    if (unchanged) cache.nextHead()
    else cache.flush()
    if (root !== undefined) roots.set(to.hash, root)
    const [oldest] = roots.keys()
    if (roots.size > keptRoots && oldest !== undefined) roots.delete(oldest)
    head = to
  }

  return {
    head: () => head,
    knows: (block) => block.hash === head?.hash,
    async advance(to, deadline) {
      if (to.hash === head?.hash) return undefined
      try {
        const proof = await proven([], to, deadline)
        if (proof === blockGone) return blockGone
        counts.audits++
        moveTo(to, proof.storageHash)
      } catch (error) {
        counts.followFailures++
        log.warn('storage root not proven', { block: to.number, reason: reasonOf(error) })
        moveTo(to, undefined)
      }
      return undefined
    },
    restart: (to) => moveTo(to, undefined),
    standing(_tokenId, readAt) {
      if (readAt.hash === head?.hash) return 'holds'
      const root = roots.get(readAt.hash)
      return root !== undefined && head !== undefined && roots.get(head.hash) === root ? 'holds' : 'unknown'
    },
    stats: () => ({ ...noStats, ...counts, mode: 'root' }),
  }
}
