/**
 * A cache invalidator drops the entries of the cache that may not hold at a new head (spec §2.2: a read pinned to the block that
 * an answer names gives the identical answer). The one here remembers one head.
 */
import { LRUCache } from 'lru-cache'
import type { Hex } from '@touchstone/verdict'
import { reasonOf } from '../../../lib/errors.ts'
import type { Log } from '../../../lib/log.ts'
import type { Block } from '../../rpc/block.ts'
import { nonCanonical, type NonCanonical } from '../../rpc/answer.ts'
import type { AssetCache } from '../cache.ts'
import type { ProvenRead } from '../calls/storage-proof.ts'
import type { Validity } from './window.ts'

export type Invalidator = Readonly<{
  /** Returns the block at which every current entry of the cache holds. */
  head: () => Block | undefined
  /** Returns whether this block is the head or one of its ancestors, as far back as is remembered. */
  knows: (block: Block) => boolean
  /**
   * Makes `to` the head and drops every entry that is not known to hold there, both in one turn. Never rejects: what cannot
   * be found out is dropped. `nonCanonical`: `to` is no longer canonical, and nothing has changed. One call at a time.
   */
  advance: (to: Block, deadline: number) => Promise<NonCanonical | undefined>
  /** Makes `to` the head and drops everything. */
  restart: (to: Block) => void
  /** Returns whether the state of a token at a block holds at the head too. */
  validity: (tokenId: bigint, readAt: Block) => Validity
  stats: () => InvalidatorStats
}>

type InvalidatorStats = Readonly<typeof noStats>

export const noStats = {
  /** `head` also where another mode was configured and is switched off, for now or until an operator looks. */
  mode: 'head' as 'events' | 'root' | 'head',
  flushes: 0,
  reorgs: 0,
  followFailures: 0,
  audits: 0,
  /** Changes of the contract that no log explains. More than 0: the providers or the contract need a look. */
  auditFailures: 0,
}

/**
 * Creates the invalidator that keeps one head only. With `proven` (trust `proof`) it proves the contract's storage root at every head under
 * the block hash: the same root means the same storage, so every entry holds there, across any gap or reorganisation and without
 * trust in logs. At another root, and without `proven` at every head, all entries are dropped.
 */
export function createHeadInvalidator({
  cache,
  proven,
  log,
}: Readonly<{ cache: AssetCache; proven?: ProvenRead | undefined; log: Log }>): Invalidator {
  /** Storage root by block hash. */
  const roots = new LRUCache<Hex, Hex>({ max: 64 })
  let head: Block | undefined
  const counts = { flushes: 0, followFailures: 0, audits: 0 }

  function hasRootOfHead(root: Hex | undefined): boolean {
    return root !== undefined && head !== undefined && roots.peek(head.hash) === root
  }

  async function provenRoot(to: Block, deadline: number): Promise<Hex | NonCanonical | undefined> {
    try {
      const proof = await proven?.([], to, deadline)
      if (proof === undefined || proof === nonCanonical) return proof
      counts.audits++
      return proof.storageHash
    } catch (error) {
      counts.followFailures++
      log.warn('storage root not proven', { block: to.number, reason: reasonOf(error) })
      return undefined
    }
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
      const root = await provenRoot(to, deadline)
      if (root === nonCanonical) return root
      moveTo(to, root)
      return undefined
    },
    restart: (to) => moveTo(to, undefined),
    validity(_tokenId, readAt) {
      return readAt.hash === head?.hash || hasRootOfHead(roots.peek(readAt.hash)) ? 'valid' : 'unknown'
    },
    stats: () => ({ ...noStats, ...counts, mode: proven === undefined ? 'head' : 'root' }),
  }
}
