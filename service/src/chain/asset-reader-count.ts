/** Counts what reading costs (spec §8): providers charge for every call and every member of a batch. */
import type { ChainSource } from './source.ts'

export type SourceCounts = { heads: number; blocks: number; calls: number; logs: number; proofs: number }

/** The same source, and how often each of its reads was asked for. */
export function countedSource(source: ChainSource): Readonly<{ source: ChainSource; counts: Readonly<SourceCounts> }> {
  const counts: SourceCounts = { heads: 0, blocks: 0, calls: 0, logs: 0, proofs: 0 }

  function counted<Args extends unknown[], Answer>(
    name: keyof SourceCounts,
    read: (...args: Args) => Answer,
    members: (...args: Args) => number = () => 1,
  ) {
    return (...args: Args): Answer => {
      counts[name] += members(...args)
      return read(...args)
    }
  }

  return {
    counts,
    source: {
      ...source,
      head: counted('heads', source.head),
      block: counted('blocks', source.block),
      call: counted('calls', source.call),
      calls: counted('calls', source.calls, (_to, datas) => datas.length),
      logs: counted('logs', source.logs),
      proof: counted('proofs', source.proof),
    },
  }
}
