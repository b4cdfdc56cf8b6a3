/**
 * A follower decides what of the cache is still true when the head moves (spec §2.2: a read pinned to the block that an
 * answer names gives the identical answer). The plainest one, here, keeps nothing: an entry lives for its head only.
 */
import type { AssetCache } from './cache.ts'
import type { Standing } from './follower-window.ts'
import type { Block, BlockGone } from './source.ts'

export type Follower = Readonly<{
  /** The block that every live entry of the cache is true at. */
  head: () => Block | undefined
  /** Whether this block is the head or one of its ancestors, as far as the follower remembers. */
  knows: (block: Block) => boolean
  /**
   * Makes `to` the head and drops from the cache whatever is not known to be true there, both in one turn. Never rejects:
   * what cannot be found out is dropped. `blockGone`: `to` is not canonical any more, and nothing has changed.
   * One call at a time.
   */
  advance: (to: Block, deadline: number) => Promise<BlockGone | undefined>
  /** Makes `to` the head and drops everything. */
  restart: (to: Block) => void
  /** Whether what was read at a block holds at the head. */
  standing: (tokenId: bigint, readAt: Block) => Standing
  stats: () => FollowerStats
}>

export type FollowerStats = Readonly<{
  /** `head` also where another mode was configured and cannot be kept up, for now or until an operator looks. */
  mode: 'events' | 'root' | 'head'
  flushes: number
  reorgs: number
  followFailures: number
  audits: number
  /** Changes of the contract that no log explains. More than 0: the providers or the contract need a look. */
  auditFailures: number
}>

export const noStats: FollowerStats = {
  mode: 'head',
  flushes: 0,
  reorgs: 0,
  followFailures: 0,
  audits: 0,
  auditFailures: 0,
}

export function createHeadFollower(cache: AssetCache): Follower {
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
    advance(to) {
      if (to.hash !== head?.hash) restart(to)
      return Promise.resolve(undefined)
    },
    restart,
    standing: (_tokenId, readAt) => (readAt.hash === head?.hash ? 'holds' : 'unknown'),
    stats: () => ({ ...noStats, flushes }),
  }
}
