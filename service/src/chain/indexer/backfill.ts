/**
 * Reads the finalized part of the chain in ranges of blocks (spec §2.5). Each range has about as many events as one answer may hold. These
 * blocks do not change any more, so only the ends of a range are checked against their block hashes.
 */
import { zeroHash } from '../../domain/chain.ts'
import type { BlockId } from '../../domain/chain.ts'
import { type AssetEvent, eventTopics, type ChainLog, parseEvents } from '../../domain/registry-event.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { isBusy, wasAsked } from '../rpc/failover.ts'
import { rangeTooWide } from '../rpc/answer.ts'
import type { RetryingSource } from './retrying-source.ts'
import type { Block } from '../rpc/block.ts'

/** All events after the block `before`, up to `to`. */
type Range = Readonly<{ before: BlockId; events: readonly AssetEvent[]; to: Block }>

export type Backfill = ReturnType<typeof createBackfill>

const mostBlocks = 100_000
const headersAtOnce = 64

/** The ceiling stays as it is for so long after a span was too wide. */
const ceilingHoldsMs = 300_000

type BackfillOptions = Readonly<{
  source: RetryingSource
  /** The number of logs that a range should have; an answer of 8 MiB holds about 11,000. */
  wantedLogs: number
  /** Ends the attempts with fewer blocks. */
  signal?: AbortSignal
}>

export function createBackfill({ source, wantedLogs, signal }: BackfillOptions) {
  let span = 64
  /** The widest span that no provider has rejected lately. */
  let ceiling = mostBlocks
  let heldUntil = -Infinity

  /** Yields the ranges from one block to another, both included, and fetches the next one ahead. Throws CHAIN_UNAVAILABLE. */
  async function* ranges(from: bigint, to: bigint): AsyncGenerator<Range> {
    let next = fetchFrom(from, to)
    for (;;) {
      const range = await next
      const isLast = range.to.number === to
      if (!isLast) {
        next = fetchFrom(range.to.number + 1n, to)
        next.catch(() => {}) // awaited once this range is written
      }
      yield range
      if (isLast) return
    }
  }

  async function fetchFrom(from: bigint, to: bigint): Promise<Range> {
    for (;;) {
      const blocks = Math.min(span, Number(to - from) + 1)
      const end = from + BigInt(blocks) - 1n
      const logs = await source.logsBetween(from, end, { events: eventTopics }).catch((error: unknown) => {
        if (isBusy(error)) throw error
        narrow(blocks)
        // A wide range may have missed the deadline, and providers refuse one in any words.
        if (blocks === 1 || !wasAsked(error) || signal?.aborted === true) throw error
        return null
      })
      if (logs === null) continue
      if (logs === rangeTooWide) {
        if (blocks === 1) throw chainUnavailable('a block has more logs than a provider sends at once')
        narrow(blocks)
        heldUntil = performance.now() + ceilingHoldsMs
        continue
      }
      widen(blocks, logs.length)
      return toRange(from, end, logs)
    }
  }

  function narrow(blocks: number): void {
    span = ceiling = Math.max(1, Math.floor(blocks / 2))
  }

  function widen(blocks: number, logs: number): void {
    if (performance.now() >= heldUntil) ceiling = Math.min(mostBlocks, Math.ceil(ceiling * 1.1))
    const fitting = Math.floor((blocks * wantedLogs) / Math.max(1, logs))
    span = Math.max(1, Math.min(ceiling, fitting, 8 * blocks))
  }

  async function toRange(from: bigint, end: bigint, logs: readonly ChainLog[]): Promise<Range> {
    const untimed = logs.filter(({ blockTimestamp }) => blockTimestamp === undefined)
    const outermost = [...logs.slice(0, 1), ...logs.slice(-1)]
    const numbers = new Set([from - 1n, end, ...[...untimed, ...outermost].map(({ blockNumber }) => blockNumber)])
    numbers.delete(-1n)
    const blocks = await blocksAt([...numbers])
    const blockAt = (number: bigint): Block => {
      const block = blocks.get(number)
      if (block === undefined) throw chainUnavailable('a provider lacks a block of the range whose logs it sent')
      return block
    }
    for (const { blockNumber, blockHash } of [...untimed, ...outermost])
      if (blockAt(blockNumber).hash !== blockHash) throw chainUnavailable('a log of a block that is not canonical')
    // No block hash covers the times beside logs: the first and the last one must be those of their headers.
    const isTrue = ({ blockTimestamp: time, blockNumber }: ChainLog) =>
      time === undefined || time === blockAt(blockNumber).timestamp
    if (!outermost.every(isTrue))
      return toRange(
        from,
        end,
        logs.map(({ blockTimestamp: _time, ...log }) => log),
      )
    const before = from === 0n ? zeroHash : blockAt(from - 1n).hash
    return {
      before: { number: from - 1n, hash: before },
      events: parseEvents(logs, (log) => log.blockTimestamp ?? blockAt(log.blockNumber).timestamp),
      to: blockAt(end),
    }
  }

  async function blocksAt(numbers: readonly bigint[]): Promise<Map<bigint, Block>> {
    const found = new Map<bigint, Block>()
    for (let at = 0; at < numbers.length; at += headersAtOnce)
      for (const block of await source.blocksAt(numbers.slice(at, at + headersAtOnce)))
        if (block !== null) found.set(block.number, block)
    return found
  }

  return { ranges }
}
