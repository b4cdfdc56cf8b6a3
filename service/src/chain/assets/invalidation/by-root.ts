/**
 * The invalidator of trust `proof` (spec §2.2): at every head it proves the contract's storage root under the block hash.
 * The same root means the same storage, so every entry holds there, across any gap or reorganisation and without trust in
 * logs. Another root means that something changed, and all entries are dropped.
 */
import { LRUCache } from 'lru-cache'
import type { Hex } from '@touchstone/verdict'
import { reasonOf } from '../../../lib/errors.ts'
import type { Log } from '../../../lib/log.ts'
import type { Block } from '../../rpc/block.ts'
import { nonCanonical } from '../../rpc/source.ts'
import type { AssetCache } from '../cache.ts'
import type { ProvenRead } from '../calls/storage-proof.ts'
import { type Invalidator, noStats } from './invalidator.ts'

export function createRootInvalidator(
  options: Readonly<{ cache: AssetCache; proven: ProvenRead; log: Log }>,
): Invalidator {
  const { cache, proven, log } = options
  /** Storage root by block hash. */
  const roots = new LRUCache<Hex, Hex>({ max: 64 })
  let head: Block | undefined
  const counts = { flushes: 0, followFailures: 0, audits: 0 }

  function hasRootOfHead(root: Hex | undefined): boolean {
    return root !== undefined && head !== undefined && roots.peek(head.hash) === root
  }

  function moveTo(to: Block, root: Hex | undefined): void {
    const unchanged = hasRootOfHead(root)
    if (!unchanged && cache.size() > 0) counts.flushes++
    if (unchanged) cache.nextHead()
    else cache.flush()
    if (root !== undefined) roots.set(to.hash, root)
    head = to
  }

  return {
    head: () => head,
    knows: (block) => block.hash === head?.hash,
    async advance(to, deadline) {
      if (to.hash === head?.hash) return undefined
      try {
        const proof = await proven([], to, deadline)
        if (proof === nonCanonical) return nonCanonical
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
    validity(_tokenId, readAt) {
      return readAt.hash === head?.hash || hasRootOfHead(roots.peek(readAt.hash)) ? 'valid' : 'unknown'
    },
    stats: () => ({ ...noStats, ...counts, mode: 'root' }),
  }
}
