/**
 * Reads the newest blocks one by one (spec §2.5). Every block is the child of the one before, by hash, and its logs are read by its hash,
 * so that logs of another branch cannot slip in.
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { hexToBytes } from '@noble/hashes/utils.js'
import { headerHash, type Hex } from '@touchstone/verdict'
import type { BlockId } from '../../domain/chain.ts'
import { type AssetEvent, parseEvents } from '../../domain/registry-event.ts'
import { mapConcurrently } from '../../lib/async/concurrency.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { nonCanonical } from '../rpc/source.ts'
import type { PatientSource } from './patience.ts'
import type { Block } from '../rpc/block.ts'

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
export function createBlockReader({ source, contract }: { source: PatientSource; contract: Hex }): ReadBlocks {
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

const bloomPattern = /^0x[0-9a-f]{512}$/
/** The root of no receipts at all. */
const noReceipts = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'

/**
 * Returns whether a block may hold logs of the contract, by its `logsBloom` (Yellow Paper §4.4.1). It has 2048 bits, three for each
 * address. So the logs of most blocks need not be read. True when in doubt: a header that cannot be checked, or one of a chain that leaves
 * the filter empty.
 */
export function mayHoldLogsOf(contract: Hex): (block: Block) => boolean {
  const bits = bitsOf(contract)
  return ({ header, hash }) => {
    const { logsBloom, receiptsRoot } = header
    if (typeof logsBloom !== 'string' || !bloomPattern.test(logsBloom) || headerHash(header) !== hash) return true
    if (!/[1-9a-f]/.test(logsBloom.slice(2))) return receiptsRoot !== noReceipts
    return bits.every(([digit, mask]) => (parseInt(logsBloom.charAt(digit), 16) & mask) !== 0)
  }
}

/** Each bit as a hex digit of the filter's text and its mask there. Bit 0 is the lowest bit of the last byte. */
function bitsOf(contract: Hex): readonly (readonly [digit: number, mask: number])[] {
  const digest = keccak_256(hexToBytes(contract.slice(2)))
  return [0, 2, 4].map((at) => {
    const bit = (((digest[at] ?? 0) << 8) | (digest[at + 1] ?? 0)) & 2047
    return [513 - (bit >> 2), 1 << (bit & 3)]
  })
}
