/**
 * Which providers are behind the others (spec §2.5). Heads seen at different moments are compared as if the chain
 * had made a block every 200 ms in between (Base), so that the one asked earlier is not taken for a lagging one.
 */
const maxLag = 25
const blocksPerMs = 1 / 200
/** Older heads say nothing about now. */
const validMs = 15_000

export type HeadLag = Readonly<{
  saw: (provider: number, head: bigint) => void
  isBehind: (provider: number) => boolean
}>

/** `now` is in milliseconds. Providers are known by their index. */
export function createHeadLag(now: () => number): HeadLag {
  const seen = new Map<number, { head: number; at: number }>()

  return {
    saw(provider, head) {
      seen.set(provider, { head: Number(head), at: now() })
    },
    isBehind(provider) {
      const own = seen.get(provider)
      if (own === undefined) return false
      for (const other of seen.values()) {
        if (now() - other.at > validMs) continue
        const madeSince = Math.max(0, other.at - own.at) * blocksPerMs
        if (other.head - own.head - madeSince >= maxLag) return true
      }
      return false
    },
  }
}
