/**
 * The new part of the chain block by block (spec §2.5): every block is the child of the one before, by hash, and its logs are
 * asked for by its hash, so that no branch can hide in between.
 */
import type { Hex } from '@touchstone/verdict'
import { eventsOf } from './events.ts'
import type { AssetEvent } from './events.ts'
import { mayHoldLogsOf } from './indexer-bloom.ts'
import type { IndexPlace } from './indexer-sink.ts'
import { untold } from './indexer-source.ts'
import type { IndexSource } from './indexer-source.ts'
import { blockGone } from './source.ts'
import type { Block } from './source.ts'

/** `blocks` follow each other, and there is at least one. */
export type Following = Readonly<{ blocks: readonly Block[]; events: readonly AssetEvent[]; to: Block }>

export type FollowBlocks = (after: IndexPlace, head: Block) => Promise<Following | 'forked'>

export const blocksAtOnce = 64
const lanes = 8

/**
 * At most 64 blocks after a place, up to the head. `forked`: the place is not on the branch of the head. The head must be above it.
 * Throws CHAIN_UNAVAILABLE, also when the chain moves meanwhile.
 */
export function createFollowBlocks({ source, contract }: { source: IndexSource; contract: Hex }): FollowBlocks {
  const mayHoldLogs = mayHoldLogsOf(contract)

  async function follow(after: IndexPlace, head: Block): Promise<Following | 'forked'> {
    const count = Math.min(blocksAtOnce, Number(head.number - after.number))
    const numbers = Array.from({ length: count }, (_, index) => after.number + 1n + BigInt(index))
    const found = await source.blocksAt(numbers.filter((number) => number !== head.number))
    const blocks = numbers.map((number, index) => (number === head.number ? head : (found[index] ?? lacking())))
    if (blocks[0]?.parentHash !== after.hash) return 'forked'
    blocks.forEach((block, index) => {
      const parent = blocks[index - 1]
      if (parent !== undefined && block.parentHash !== parent.hash)
        throw untold('the chain moved while it was followed')
    })
    const to = blocks.at(-1) ?? lacking()
    return { blocks, events: await eventsIn(blocks.filter(mayHoldLogs)), to }
  }

  async function eventsIn(blocks: readonly Block[]): Promise<readonly AssetEvent[]> {
    const events: (readonly AssetEvent[])[] = []
    for (let at = 0; at < blocks.length; at += lanes)
      events.push(...(await Promise.all(blocks.slice(at, at + lanes).map(eventsOfBlock))))
    return events.flat()
  }

  async function eventsOfBlock(block: Block): Promise<readonly AssetEvent[]> {
    const logs = await source.logs(block)
    if (logs === blockGone) throw untold('the chain moved while it was followed')
    return eventsOf(logs, () => block.timestamp)
  }

  return follow
}

function lacking(): never {
  throw untold('a provider lacks a block below its head')
}
