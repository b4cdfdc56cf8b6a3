/**
 * A cache invalidator drops the entries of the cache that may not hold at a new head (spec §2.2: a read pinned to the block that
 * an answer names gives the identical answer). The plainest one, here, drops all of them.
 */
import type { Block } from '../../rpc/block.ts'
import type { NonCanonical } from '../../rpc/source.ts'
import type { AssetCache } from '../cache.ts'
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

export type InvalidatorStats = Readonly<typeof noStats>

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

export function createHeadInvalidator(cache: AssetCache): Invalidator {
  let head: Block | undefined
  let flushes = 0

  function restart(to: Block): void {
    if (cache.size() > 0) flushes++
    cache.flush()
    head = to
  }

  return {
    head: () => head,
    knows: (block) => block.hash === head?.hash,
    async advance(to) {
      if (to.hash !== head?.hash) restart(to)
      return undefined
    },
    restart,
    validity: (_tokenId, readAt) => (readAt.hash === head?.hash ? 'valid' : 'unknown'),
    stats: () => ({ ...noStats, flushes }),
  }
}
