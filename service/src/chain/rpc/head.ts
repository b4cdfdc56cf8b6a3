/**
 * Resolves the block tag to the block that answers are pinned to (spec §2.1 `chainRef`, §2.5). It is fresh, not behind, and in a quorum
 * agreed on. It keeps nothing between two calls but which providers are behind.
 */
import { msUntil } from '../../lib/async/deadline.ts'
import { quantity, RpcError } from './answer.ts'
import type { Block, OnUnchecked } from './block.ts'
import type { RpcAttempt } from './client.ts'
import { outcomeOf, ReadFailure } from './failover.ts'
import type { Provider } from './provider.ts'
import { type Read, readBlockAt } from './reads.ts'

type HeadOptions = Readonly<{
  blockTag: string
  /** 0 is any age. */
  maxHeadAgeSeconds: number
  readTimeoutMs: number
  /** How many providers must agree; where one is enough, the preferred one leads. */
  needed: number
  providers: readonly Provider[]
  /** Returns the providers that may be asked now, the preferred one first. */
  candidates: () => readonly Provider[]
  ask: (read: Read<Block>) => Promise<Block>
  lag: HeadLag
  /** Unix milliseconds. */
  now: () => number
  /** Monotonic milliseconds. */
  ticks: () => number
  onUnchecked: OnUnchecked
  onDisagreement: () => void
}>

/** The interval at which all other providers are asked for the head. It shows which are behind or back. */
const surveyMs = 5000

/** The returned function rejects with `ReadFailure`. */
export function createHeadResolver(options: HeadOptions): () => Promise<Block> {
  const { maxHeadAgeSeconds, readTimeoutMs, needed, providers, candidates, ask, lag, now, ticks, onUnchecked } = options
  const taggedBlock = readBlockAt(options.blockTag, onUnchecked)
  let surveyedAt = -Infinity
  return needed > 1 ? resolveByQuorum : resolveFirst

  /**
   * Returns the lowest head of all providers (trust `quorum`). Each of them must have it under the same hash. Two that contradict each
   * other are a failure: there is no majority vote.
   */
  async function resolveByQuorum(): Promise<Block> {
    const deadline = performance.now() + readTimeoutMs
    const asked = providers.filter((provider) => provider.breaker.admit())
    const isUsable = ({ index }: Provider) => !lag.isBehind(index)
    const heads = new Map(await answersOf(asked, needed, deadline, (provider) => provider.attempt(freshHead), isUsable))
    for (const provider of heads.keys()) if (!isUsable(provider)) heads.delete(provider)
    const [lowest] = [...heads.values()].toSorted((a, b) => Number(a.number - b.number))
    if (lowest === undefined || heads.size < needed) throw new ReadFailure('no quorum: too many providers are behind')

    const lowestBlock = readBlockAt(quantity(lowest.number), onUnchecked)
    const blocks = await answersOf([...heads.keys()], needed, deadline, async (provider) => {
      const own = heads.get(provider)
      return own?.number === lowest.number ? own : provider.attempt(lowestBlock.run)
    })
    if (blocks.some(([, block]) => block.hash !== lowest.hash)) {
      options.onDisagreement()
      throw new ReadFailure(`providers disagree about block ${lowest.number}`)
    }
    return lowest
  }

  function resolveFirst(): Promise<Block> {
    const [preferred] = candidates()
    const head = ask({ run: leadingHead, consensusKey: taggedBlock.consensusKey })
    survey(preferred)
    return head
  }

  async function leadingHead(rpc: RpcAttempt, provider: Provider): Promise<Block> {
    const block = await freshHead(rpc, provider)
    if (lag.isBehind(provider.index)) throw new RpcError('behind', `head ${block.number} is behind`)
    return block
  }

  async function freshHead(rpc: RpcAttempt, provider: Provider): Promise<Block> {
    let block = await taggedBlock.run(rpc, provider)
    if (lag.isJump(provider.index, block.number)) {
      // Another chain may answer behind its URL by now.
      provider.doubtChain()
      block = await provider.attempt(taggedBlock.run)
    }
    assertFresh(block, now(), maxHeadAgeSeconds)
    lag.saw(provider.index, block.number)
    return block
  }

  function survey(asked: Provider | undefined): void {
    if (ticks() - surveyedAt < surveyMs) return
    surveyedAt = ticks()
    for (const provider of providers)
      if (provider !== asked && provider.breaker.admit()) provider.attempt(freshHead).catch(() => {})
  }
}

/** Returns the answers of all providers. Once `needed` usable ones have answered, those that are slower than usual are left out. */
function answersOf<T>(
  providers: readonly Provider[],
  needed: number,
  deadline: number,
  attempt: (provider: Provider) => Promise<T>,
  isUsable: (provider: Provider) => boolean = () => true,
): Promise<readonly (readonly [Provider, T])[]> {
  return new Promise((resolve, reject) => {
    const answers: [Provider, T][] = []
    const failures: [Provider, RpcError][] = []
    const deadlineTimer = setTimeout(end, msUntil(deadline))
    let graceTimer: NodeJS.Timeout | undefined
    for (const provider of providers) void ask(provider)
    if (providers.length < needed) end()

    async function ask(provider: Provider): Promise<void> {
      const outcome = await outcomeOf(attempt(provider))
      if ('answer' in outcome) answers.push([provider, outcome.answer])
      else failures.push([provider, outcome.failure])
      if (answers.length + failures.length === providers.length) return end()
      const slowest = Math.max(...providers.map(({ latency }) => latency.p95()))
      const usable = answers.filter(([answered]) => isUsable(answered))
      if (usable.length >= needed) graceTimer ??= setTimeout(end, Math.max(50, slowest))
    }

    function end(): void {
      clearTimeout(deadlineTimer)
      clearTimeout(graceTimer)
      if (answers.length >= needed) return resolve([...answers])
      const reasons = failures.map(([provider, failure]) => `${provider.label} ${failure.message}`)
      const causes = failures.map(([, failure]) => failure)
      reject(new ReadFailure(['no quorum', ...reasons].join('; '), causes))
    }
  })
}

/**
 * Rejects a head that is older than `maxAgeSeconds` (0: any age), or as far in the future. The cause is a stuck or lying provider, or a
 * clock here that is wrong. `now` is in unix milliseconds.
 */
export function assertFresh(block: Pick<Block, 'timestamp'>, now: number, maxAgeSeconds: number): void {
  const age = now / 1000 - Number(block.timestamp)
  if (maxAgeSeconds > 0 && Math.abs(age) > maxAgeSeconds)
    throw new RpcError('fault', `head is ${Math.round(age)} s old`)
}

type HeadLag = ReturnType<typeof createHeadLag>

const maxLag = 25
const blocksPerMs = 1 / 200
/** Older heads are not compared. */
const validMs = 15_000

/**
 * Finds the providers that are behind the others (spec §2.5). Heads seen at different moments are compared as if the chain
 * had made a block every 200 ms in between (Base), so that the one asked earlier does not count as lagging.
 * `now` is in milliseconds; a provider is named by its index.
 */
export function createHeadLag(now: () => number) {
  const seen = new Map<number, { head: number; at: number }>()
  return {
    saw(provider: number, head: bigint): void {
      seen.set(provider, { head: Number(head), at: now() })
    },
    /** Returns whether the chain is not expected to get from the provider's last head to this one, in either direction. */
    isJump(provider: number, head: bigint): boolean {
      const own = seen.get(provider)
      if (own === undefined) return false
      const made = Number(head) - own.head
      return made <= -maxLag || made - (now() - own.at) * blocksPerMs >= maxLag
    },
    isBehind(provider: number): boolean {
      const own = seen.get(provider)
      if (own === undefined) return false
      return [...seen.values()].some(({ head, at }) => {
        const madeSince = Math.max(0, at - own.at) * blocksPerMs
        return now() - at <= validMs && head - own.head - madeSince >= maxLag
      })
    },
  }
}
