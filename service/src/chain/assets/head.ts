/**
 * Keeps the head that answers are pinned to (spec §2.2). It is resolved on demand, one request at a time, kept for a second at most, and
 * renewed in the background while there is traffic.
 */
import { currentSpan, withSpan } from '../../lib/async/span.ts'
import { chainUnavailable, reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { Block } from '../rpc/block.ts'
import { nonCanonical, type NonCanonical } from '../rpc/answer.ts'
import { type ChainSource } from '../rpc/source.ts'
import type { Invalidator } from './invalidation/invalidator.ts'

type HeadCacheOptions = Readonly<{
  source: ChainSource
  invalidator: Invalidator
  headMaxAgeMs: number
  headRefreshMs: number
  readTimeoutMs: number
  /** Monotonic milliseconds. */
  now: () => number
  log: Log
}>

type InFlight = Readonly<{ epoch: number; done: Promise<void> }>

export function createHeadCache(options: HeadCacheOptions) {
  const { source, invalidator, headMaxAgeMs, headRefreshMs, readTimeoutMs, now, log } = options
  /** The moment when the request for the head was sent. */
  let resolvedAt = -Infinity
  let startedAt = -Infinity
  let inFlight: InFlight | undefined
  /** Grows when a request in flight began too early for what is known since. */
  let epoch = 0
  let wanted = 0n
  let discardedAt = -Infinity
  let closed = false

  /** Returns the head if it was resolved lately, and starts a renewal in the background when it is due. */
  function fresh(): Block | undefined {
    if (closed) return undefined
    const at = now()
    const due = at - resolvedAt > headRefreshMs && at - startedAt > headRefreshMs && inFlight === undefined
    const usable = isUsable()
    // No request waits for the renewal of a head that can be used.
    if (due) withSpan(usable ? undefined : currentSpan(), renew)
    return usable ? invalidator.head() : undefined
  }

  function renew(): void {
    resolve(performance.now() + readTimeoutMs).done.catch(() => {})
  }

  function isUsable(): boolean {
    return now() - resolvedAt <= headMaxAgeMs
  }

  /** Returns the head, resolved now where it is not fresh. Throws CHAIN_UNAVAILABLE; `deadline` is a moment of `performance.now()`. */
  async function current(deadline: number): Promise<Block> {
    const known = fresh()
    if (known !== undefined) return known
    if (closed) throw chainUnavailable('the reader is closed')
    const first = inFlight ?? resolve(deadline)
    await first.done
    if (first.epoch !== epoch) await (inFlight ?? resolve(deadline)).done
    // Just resolved: it counts even if that took longer than a head may be old.
    const head = invalidator.head()
    if (head === undefined) throw chainUnavailable('no head')
    return head
  }

  function resolve(deadline: number): InFlight {
    startedAt = now()
    const own: InFlight = { epoch, done: resolveOnce(deadline).finally(() => (inFlight = undefined)) }
    inFlight = own
    return own
  }

  async function resolveOnce(deadline: number): Promise<void> {
    const begun = epoch
    let sentAt = now()
    try {
      let to = await source.head({ deadline })
      if (to.number < wanted) {
        // The source may have joined this to an older request.
        sentAt = now()
        to = await source.head({ deadline })
      }
      if (isUsable() && isBehind(to)) return
      if ((await advance(to, deadline)) === nonCanonical) {
        sentAt = now()
        to = await source.head({ deadline })
        if ((await advance(to, deadline)) === nonCanonical) invalidator.restart(to)
      }
      if (begun !== epoch) return
      resolvedAt = sentAt
      wanted = 0n
    } catch (error) {
      log.warn('head not resolved', { reason: reasonOf(error) })
      throw error
    }
  }

  /** Returns whether the block is an ancestor of the head: the answer of a provider that lags. */
  function isBehind(block: Block): boolean {
    return block.hash !== invalidator.head()?.hash && invalidator.knows(block)
  }

  /** A slow invalidator must not make the head old. */
  function advance(to: Block, deadline: number): Promise<NonCanonical | undefined> {
    return invalidator.advance(to, Math.min(deadline, performance.now() + headMaxAgeMs))
  }

  function forget(): void {
    epoch++
    resolvedAt = -Infinity
  }

  return {
    fresh,
    current,
    /**
     * Resolves the head anew, because it may be no longer canonical. The next head is kept as long as it is fresh: backends behind one URL may
     * lack it for a moment, and would lack each newer one.
     */
    discard: (): void => {
      if (now() - discardedAt <= headMaxAgeMs) return void (startedAt = now())
      discardedAt = now()
      forget()
    },
    /** Resolves a head below this number anew: the chain has a block of it. */
    reached: (number: bigint): void => {
      const head = invalidator.head()
      if (head === undefined || head.number >= number) return
      wanted = number > wanted ? number : wanted
      forget()
    },
    close: (): void => {
      closed = true
      forget()
    },
  }
}
