/** The last block that the index and the chain have in common, among those whose hashes the index kept. */
import type { IndexPlace, IndexSink } from './indexer-sink.ts'
import type { IndexSource } from './indexer-source.ts'
import { untold } from './indexer-source.ts'

const atOnce = 64

type CommonAncestorOptions = Readonly<{
  source: Pick<IndexSource, 'blocksAt'>
  kept: IndexSink['kept']
  /** Not above the head of the chain. */
  from: bigint
}>

/** `null`: there is none. Throws CHAIN_UNAVAILABLE. */
export async function commonAncestor({ source, kept, from }: CommonAncestorOptions): Promise<IndexPlace | null> {
  for (let below = from; ;) {
    const places = await kept(below, atOnce)
    const last = places.at(-1)
    if (last === undefined) return null
    const blocks = await source.blocksAt(places.map(({ number }) => number))
    // A provider that has lost a block says nothing about it.
    if (blocks.includes(null)) throw untold('a provider lacks a block below its head')
    const common = places.find(({ hash }, index) => blocks[index]?.hash === hash)
    if (common !== undefined) return common
    below = last.number - 1n
  }
}
