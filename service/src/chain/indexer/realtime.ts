/**
 * Reads the newest blocks one by one (spec §2.5). Every block is the child of the one before, by hash, and its logs are read by its hash,
 * so that logs of another branch cannot slip in.
 */
import type { Hex } from '@touchstone/verdict'
import type { BlockId } from '../../domain/chain.ts'
import { type AssetEvent, parseEvents } from '../../domain/registry-event.ts'
import { mapConcurrently } from '../../lib/async/concurrency.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { nonCanonical } from '../rpc/answer.ts'
import type { RetryingSource } from './retrying-source.ts'
import { type Block, mayHoldLogsOf } from '../rpc/block.ts'

/** At least one block, each the parent of the next, with all their events. */
export type BlockRun = Readonly<{ blocks: readonly Block[]; events: readonly AssetEvent[]; to: Block }>

export type ReadBlocks = (after: BlockId, head: Block) => Promise<BlockRun | 'forked'>

/** The longest run. */
export const mostBlocks = 64
const concurrency = 8

/**
 * Returns a function that reads the blocks after a block, up to a head above it. Returns `forked` when that block is not on the branch of
 * the head. A block whose logs cannot be read ends the run before it. It throws CHAIN_UNAVAILABLE where that is the first one, also when
 * the chain is reorganised meanwhile.
 */
export function createBlockReader({ source, contract }: { source: RetryingSource; contract: Hex }): ReadBlocks {
  const mayHoldLogs = mayHoldLogsOf(contract)

  async function eventsOfBlock(block: Block): Promise<readonly AssetEvent[]> {
    const logs = await source.logs(block)
    if (logs === nonCanonical) throw chainUnavailable(reorganised)
    return parseEvents(logs, () => block.timestamp)
  }

  return async (after, head) => {
    const count = Math.min(mostBlocks, Number(head.number - after.number))
    const numbers = Array.from({ length: count }, (_, index) => after.number + 1n + BigInt(index))
    const found = await source.blocksAt(numbers.filter((number) => number !== head.number))
    const blocks = numbers.map((number, index) => (number === head.number ? head : present(found[index])))
    if (blocks[0]?.parentHash !== after.hash) return 'forked'
    if (blocks.some((block, index) => index > 0 && block.parentHash !== blocks[index - 1]?.hash))
      throw chainUnavailable(reorganised)
    let end = blocks.length
    let failure: unknown
    const events = await mapConcurrently(blocks, concurrency, async (block, index) => {
      if (index >= end || !mayHoldLogs(block)) return []
      return eventsOfBlock(block).catch((error: unknown) => {
        if (index < end) [end, failure] = [index, error]
        return []
      })
    })
    if (end === 0) throw failure
    return { blocks: blocks.slice(0, end), events: events.slice(0, end).flat(), to: present(blocks[end - 1]) }
  }
}

export const reorganised = 'the chain was reorganised while it was read'

/** Throws CHAIN_UNAVAILABLE for a block that the provider lacks. */
export function present(block: Block | null | undefined): Block {
  if (block === null || block === undefined) throw chainUnavailable('a provider lacks a block below its head')
  return block
}
