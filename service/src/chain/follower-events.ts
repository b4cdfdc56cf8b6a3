/**
 * The follower of our own contract (spec §2.2, §4.1): it reads the logs of every block between two heads, so that an entry
 * survives as long as no log names its token.
 *
 * Why an entry that is shown at the head H although it was read at an earlier block P is what a read pinned to H gives:
 * 1. The window holds a chain of blocks, each the parent of the next, ending in H. A block comes in only as the parent (by
 *    hash) of one that is in or comes in, and only with all its logs, fetched by its hash. So nothing between is missing.
 * 2. Every write to a record or a metadata hash emits an event that names the token (contracts/src/IAssetRegistry.sol).
 * 3. An entry is put in only if P is in the window and no block after P up to H names its token, and it is dropped in the
 *    same turn in which a block that names its token comes in. So no write lies between P and H: same record.
 * 4. A reorganisation takes the window back to the last common block A, and every entry put in at a head above A goes.
 *    An entry that stays was put in at a head at or below A, which therefore is still in the chain, and 3 held ever since.
 * 5. Whatever cannot be established (a gap, an old window, an answer that fails, an event that is not known) restarts the
 *    window at H with an empty cache, for which 3 holds trivially.
 * What is believed is the provider's logs, as its words are believed in trust `rpc`; the audit (follower-audit.ts) checks.
 */
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { AssetCache } from './cache.ts'
import type { Audit } from './follower-audit.ts'
import { noStats } from './follower.ts'
import type { Follower } from './follower.ts'
import { touchedBy } from './follower-touch.ts'
import type { Window } from './follower-window.ts'
import { blockGone } from './source.ts'
import type { Block, BlockGone, ChainSource } from './source.ts'

/** Blocks; more are not walked but forgotten. */
const maxGap = 64
/** A window that nobody has moved for so long is forgotten. */
const maxIdleMs = 30_000
/** After this many failures in a row the logs are left alone for a while: each failure costs time at every head. */
const failuresBeforeRest = 3
const restMs = 30_000

export type EventsFollowerOptions = Readonly<{
  source: ChainSource
  cache: AssetCache
  window: Window
  /** Made with the follower's own `switchOff`. */
  audit: (switchOff: (reason: string) => void) => Audit
  /** Milliseconds; as everywhere here, deadlines are moments of `performance.now()` and ages are differences of this. */
  now: () => number
  log: Log
}>

export function createEventsFollower(options: EventsFollowerOptions): Follower {
  const { source, cache, window, now, log } = options
  const audit = options.audit(switchOff)
  const counts = { flushes: 0, reorgs: 0, followFailures: 0 }
  let off = false
  let movedAt = -Infinity
  let failuresInARow = 0
  let restUntil = -Infinity

  async function advance(to: Block, deadline: number): Promise<BlockGone | undefined> {
    const head = window.head()
    if (head?.hash === to.hash) {
      movedAt = now()
      return undefined
    }
    const moved = head !== undefined && mayFollow(head, to) ? await follow(to, deadline) : 'failed'
    if (moved === blockGone) return blockGone
    if (moved === 'failed') restart(to)
    if (!off) audit.nextHead()
    return undefined
  }

  function mayFollow(head: Block, to: Block): boolean {
    const age = now() - movedAt
    return !off && audit.trusted() && now() >= restUntil && age <= maxIdleMs && to.number - head.number <= maxGap
  }

  async function follow(to: Block, deadline: number): Promise<BlockGone | 'moved' | 'failed'> {
    try {
      const path = await pathTo(to, deadline)
      if (path === null || path === blockGone) return path ?? 'failed'
      const steps = await Promise.all(path.steps.map((block) => touchedIn(block, deadline)))
      if (steps.includes(blockGone)) return blockGone
      failuresInARow = 0
      // From here to the end nothing waits: the head and the cache change in one turn.
      if (off) return 'failed'
      rewindTo(path.ancestor)
      for (const step of steps) {
        if (step === blockGone) continue
        window.append(step.block, step.touched)
        if (step.touched.tokens === 'all') flush()
        else for (const tokenId of step.touched.tokens) cache.drop(tokenId)
        if (step.touched.newCode) switchOff('the contract says that its code may have changed')
      }
      cache.nextHead()
      movedAt = now()
      return off ? 'failed' : 'moved'
    } catch (error) {
      counts.followFailures++
      if (++failuresInARow >= failuresBeforeRest) restUntil = now() + restMs
      log.warn('chain not followed', { block: to.number, reason: reasonOf(error) })
      return 'failed'
    }
  }

  async function touchedIn(block: Block, deadline: number) {
    const logs = await source.logs(block, { deadline })
    return logs === blockGone ? logs : { block, touched: touchedBy(logs) }
  }

  /** The blocks after the last one that the window knows, oldest first. `null`: too far away. */
  async function pathTo(to: Block, deadline: number): Promise<{ ancestor: Place; steps: Block[] } | BlockGone | null> {
    const steps: Block[] = []
    let place: Place = to
    let known: Block | undefined = to
    while (!window.knows(place)) {
      if (place.number <= window.base() || steps.length === maxGap) return null
      const block: Block | BlockGone = known ?? (await source.block(place.hash, { deadline }))
      if (block === blockGone) return blockGone
      if (block.hash !== place.hash || block.number !== place.number) return null
      steps.unshift(block)
      place = { hash: block.parentHash, number: block.number - 1n }
      known = undefined
    }
    return { ancestor: place, steps }
  }

  function rewindTo(ancestor: Place): void {
    if (window.head()?.hash === ancestor.hash) return
    counts.reorgs++
    window.rewind(ancestor)
    cache.dropAbove(ancestor.number)
  }

  function restart(to: Block): void {
    flush()
    window.restart(to)
    movedAt = now()
  }

  function flush(): void {
    if (cache.size() > 0) counts.flushes++
    cache.flush()
  }

  /** For good: what is wrong must be seen by somebody. From now on an entry lives for its head only. */
  function switchOff(reason: string): void {
    if (off) return
    off = true
    log.error('cache by events switched off', { reason })
    const head = window.head()
    if (head !== undefined) restart(head)
  }

  return {
    head: window.head,
    knows: window.knows,
    advance,
    restart,
    standing: window.standing,
    stats: () => ({ ...noStats, ...counts, ...audit.stats(), mode: off || !audit.trusted() ? 'head' : 'events' }),
  }
}

type Place = Pick<Block, 'number' | 'hash'>
