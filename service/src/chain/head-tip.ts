/**
 * Resolves the block tag to the block that answers are pinned to (spec §2.1 `chain_ref`): fresh, not behind, and in a
 * quorum agreed on. Keeps nothing: whoever wants to ask less often keeps the answer.
 */
import { assertFresh } from './head.ts'
import type { OnUnchecked } from './head.ts'
import type { HeadLag } from './head-lag.ts'
import type { Provider } from './provider.ts'
import { quorumHead } from './quorum.ts'
import { readBlockAt } from './reads.ts'
import type { Read } from './reads.ts'
import { RpcFailure } from './rpc-answer.ts'
import type { Rpc } from './rpc-connection.ts'
import type { Block } from './source.ts'

export type TipOptions = Readonly<{
  blockTag: string
  /** 0 is any age. */
  maxHeadAgeSeconds: number
  readTimeoutMs: number
  /** Whether `needed` providers must agree; else one is enough. */
  quorum: boolean
  needed: number
  providers: readonly Provider[]
  /** Those that may be asked now, the preferred one first. */
  candidates: () => readonly Provider[]
  ask: (read: Read<Block>) => Promise<Block>
  lag: HeadLag
  /** Unix milliseconds. */
  /** Unix milliseconds. */
  now: () => number
  /** Milliseconds of a clock that nobody sets. */
  ticks: () => number
  onUnchecked: OnUnchecked
  onDisagreement: () => void
}>

/** How often a head also asks the providers that need not be asked, to learn which of them are behind or back. */
const surveyMs = 5000

/** The returned function rejects with `ReadFailure`. */
export function createTip(options: TipOptions): () => Promise<Block> {
  const { maxHeadAgeSeconds, readTimeoutMs, needed, providers, candidates, ask, lag, now, ticks, onUnchecked } = options
  const tip = readBlockAt(options.blockTag, onUnchecked)
  let surveyedAt = -Infinity
  return options.quorum ? agreedTip : firstTip

  function agreedTip(): Promise<Block> {
    return quorumHead({
      providers,
      needed,
      deadline: performance.now() + readTimeoutMs,
      headOf: (provider) => provider.attempt(freshHead),
      blockAt: (provider, number) => provider.attempt(readBlockAt(`0x${number.toString(16)}`, onUnchecked).run),
      isBehind: (provider) => lag.isBehind(provider.index),
      onDisagreement: options.onDisagreement,
    })
  }

  function firstTip(): Promise<Block> {
    const [preferred] = candidates()
    const flight = ask({ run: frontHead, words: tip.words })
    survey(preferred)
    return flight
  }

  async function frontHead(rpc: Rpc, provider: Provider): Promise<Block> {
    const block = await freshHead(rpc, provider)
    if (lag.isBehind(provider.index)) throw new RpcFailure('behind', `head ${block.number} is behind`)
    return block
  }

  async function freshHead(rpc: Rpc, provider: Provider): Promise<Block> {
    const block = await tip.run(rpc, provider)
    assertFresh(block, now(), maxHeadAgeSeconds)
    lag.saw(provider.index, block.number)
    return block
  }

  /** Asks the providers that the head was not asked of: who is behind or back shows only when somebody looks. */
  function survey(asked: Provider | undefined): void {
    if (ticks() - surveyedAt < surveyMs) return
    surveyedAt = ticks()
    for (const provider of providers) {
      if (provider !== asked && provider.breaker.admit()) provider.attempt(freshHead).catch(() => {})
    }
  }
}
