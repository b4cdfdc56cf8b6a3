/**
 * The old part of the chain in ranges of blocks (spec §2.5), each with all its events: about as many as one answer may hold.
 * Nothing below `finalized` changes any more, so only the ends of a range are checked against their block hashes.
 */
import { eventTopics, eventsOf } from './events.ts'
import type { AssetEvent } from './events.ts'
import type { IndexPlace } from './indexer-sink.ts'
import { untold } from './indexer-source.ts'
import type { IndexSource } from './indexer-source.ts'
import { rangeTooWide } from './source.ts'
import type { Block, ChainLog } from './source.ts'

/** The events after `before` up to `to`. */
type Range = Readonly<{ before: IndexPlace; events: readonly AssetEvent[]; to: Block }>

export type Ranges = Readonly<{
  /** From one block to another, both included, in order; the next one is fetched while one is worked on. Throws CHAIN_UNAVAILABLE. */
  between: (from: bigint, to: bigint) => AsyncGenerator<Range>
}>

const widest = 100_000
const headersAtOnce = 64
/** Blocks that a provider lacks are the parents of the first one: there is nothing before it. */
const zeroHash = `0x${'0'.repeat(64)}` as const

/** `logs` is how many a range should have; an answer of 8 MiB holds about 11,000. */
export function createRanges({ source, logs: wanted }: { source: IndexSource; logs: number }): Ranges {
  let span = 64
  /** No provider has refused so few blocks lately. */
  let ceiling = widest

  async function* between(from: bigint, to: bigint): AsyncGenerator<Range> {
    let next = fetchFrom(from, to)
    for (;;) {
      const range = await next
      const last = range.to.number === to
      if (!last) {
        next = fetchFrom(range.to.number + 1n, to)
        next.catch(() => {}) // it is awaited when the range before it is done
      }
      yield range
      if (last) return
    }
  }

  async function fetchFrom(from: bigint, to: bigint): Promise<Range> {
    for (;;) {
      const blocks = Math.min(span, Number(to - from) + 1)
      const end = from + BigInt(blocks) - 1n
      const logs = await source.logsBetween(from, end, { events: eventTopics }).catch((error: unknown) => {
        narrow(blocks) // it may be the time that was too short
        throw error
      })
      if (logs === rangeTooWide) {
        if (blocks === 1) throw untold('a block has more logs than a provider sends at once')
        narrow(blocks)
        continue
      }
      widen(blocks, logs.length)
      return rangeOf(from, end, logs)
    }
  }

  async function rangeOf(from: bigint, end: bigint, logs: readonly ChainLog[]): Promise<Range> {
    const untimed = logs.filter(({ blockTimestamp }) => blockTimestamp === undefined)
    const numbers = new Set([from - 1n, end, ...untimed.map(({ blockNumber }) => blockNumber)])
    numbers.delete(-1n)
    const blocks = await blocksAt([...numbers])
    const to = blocks.get(end) ?? missing()
    for (const { blockNumber, blockHash } of [...untimed, ...logs.slice(-1)])
      if (blocks.get(blockNumber)?.hash !== blockHash && blocks.has(blockNumber))
        throw untold('a log of a block that is not canonical')
    const timeOf = (log: ChainLog) => log.blockTimestamp ?? blocks.get(log.blockNumber)?.timestamp ?? missing()
    const before = from === 0n ? zeroHash : (blocks.get(from - 1n) ?? missing()).hash
    return { before: { number: from - 1n, hash: before }, events: eventsOf(logs, timeOf), to }
  }

  async function blocksAt(numbers: readonly bigint[]): Promise<Map<bigint, Block>> {
    const found = new Map<bigint, Block>()
    for (let at = 0; at < numbers.length; at += headersAtOnce) {
      for (const block of await source.blocksAt(numbers.slice(at, at + headersAtOnce)))
        if (block !== null) found.set(block.number, block)
    }
    return found
  }

  function narrow(blocks: number): void {
    span = ceiling = Math.max(1, Math.floor(blocks / 2))
  }

  function widen(blocks: number, logs: number): void {
    ceiling = Math.min(widest, Math.ceil(ceiling * 1.1))
    const fitting = Math.floor((blocks * wanted) / Math.max(1, logs))
    span = Math.max(1, Math.min(ceiling, fitting, 8 * blocks))
  }

  return { between }
}

function missing(): never {
  throw untold('a provider lacks a block of the range that it sent logs of')
}
