/**
 * The head that answers are given at (spec §2.2): resolved when somebody asks, at most once at a time, kept for a second
 * at most, and renewed in the background while there is traffic, so that nobody waits for it.
 */
import { ServiceError, reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Follower } from './follower.ts'
import { blockGone } from './source.ts'
import type { Block, BlockGone, ChainSource } from './source.ts'

export type Heads = Readonly<{
  /** The head, if it was resolved lately. Starts a renewal in the background when it is due. */
  fresh: () => Block | undefined
  /** The head, resolved now where it is not fresh. Throws CHAIN_UNAVAILABLE; `deadline` is a moment of `performance.now()`. */
  current: (deadline: number) => Promise<Block>
  /** A block that was the head is not canonical any more, nor need the present one be: it is resolved anew. */
  lost: (block: Block) => void
  /** The chain is known to have a block of this number: a head below it is resolved anew. */
  reached: (number: bigint) => void
  stats: () => Readonly<{ headFailures: number }>
  close: () => void
}>

export type HeadsOptions = Readonly<{
  source: ChainSource
  follower: Follower
  headMaxAgeMs: number
  headRefreshMs: number
  /** Milliseconds, never going back. */
  now: () => number
  log: Log
}>

const never = -Infinity
/** For a renewal in the background; a caller brings its own. */
const readTimeoutMs = 3000

type Flight = Readonly<{ epoch: number; done: Promise<void> }>

export function createHeads(options: HeadsOptions): Heads {
  const { source, follower, headMaxAgeMs, headRefreshMs, now, log } = options
  let headFailures = 0
  /** When the question was sent that the head is the answer to. */
  let resolvedAt = never
  let startedAt = never
  let flight: Flight | undefined
  /** Grows when what is under way began too early for what is known since. */
  let epoch = 0
  let wanted = 0n
  let lostHash: Block['hash'] | undefined
  let closed = false

  function fresh(): Block | undefined {
    if (closed) return undefined
    const at = now()
    const due = at - resolvedAt > headRefreshMs && at - startedAt > headRefreshMs && flight === undefined
    if (due) resolve(performance.now() + readTimeoutMs).done.catch(() => {})
    return isUsable() ? follower.head() : undefined
  }

  function isUsable(): boolean {
    return now() - resolvedAt <= headMaxAgeMs
  }

  async function current(deadline: number): Promise<Block> {
    const known = fresh()
    if (known !== undefined) return known
    if (closed) refuse('the reader is closed')
    const first = flight ?? resolve(deadline)
    await first.done
    if (first.epoch !== epoch) await (flight ?? resolve(deadline)).done
    // Just resolved: it counts even if that took longer than a head may be old.
    return follower.head() ?? refuse('no head')
  }

  function resolve(deadline: number): Flight {
    startedAt = now()
    const own: Flight = { epoch, done: resolveOnce(deadline).finally(() => (flight = undefined)) }
    flight = own
    return own
  }

  async function resolveOnce(deadline: number): Promise<void> {
    const begun = epoch
    let sentAt = now()
    try {
      let to = await headOf(deadline)
      if (to.number < wanted) {
        // The source may have joined this to a question that is older than the wish.
        sentAt = now()
        to = await headOf(deadline)
      }
      if (isUsable() && isBehind(to)) return
      if ((await advance(to, deadline)) === blockGone) {
        sentAt = now()
        to = await headOf(deadline)
        if ((await advance(to, deadline)) === blockGone) follower.restart(to)
      }
      if (begun !== epoch) return
      resolvedAt = sentAt
      wanted = 0n
    } catch (error) {
      headFailures++
      log.warn('head not resolved', { reason: reasonOf(error) })
      throw error
    }
  }

  /** An ancestor of a head that may still be used: another provider that lags is no news. */
  function isBehind(block: Block): boolean {
    return block.hash !== follower.head()?.hash && follower.knows(block)
  }

  /** A follower that takes long must not make the head old. */
  function advance(to: Block, deadline: number): Promise<BlockGone | undefined> {
    return follower.advance(to, Math.min(deadline, performance.now() + headMaxAgeMs))
  }

  function headOf(deadline: number): Promise<Block> {
    return source.head({ deadline })
  }

  function forget(): void {
    epoch++
    resolvedAt = never
  }

  return {
    fresh,
    current,
    lost(block) {
      if (lostHash === block.hash) return
      lostHash = block.hash
      forget()
    },
    reached(number) {
      const head = follower.head()
      if (head === undefined || head.number >= number) return
      wanted = number > wanted ? number : wanted
      forget()
    },
    stats: () => ({ headFailures }),
    close() {
      closed = true
      forget()
    },
  }
}

function refuse(reason: string): never {
  throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: new Error(reason) })
}
