/**
 * The newest block, the fees that follow from it, and this clock beside the chain's. They are shared by everything that settles at the same
 * moment.
 */
import type { Hex } from '@touchstone/verdict'
import type { TimedBlock } from '../domain/chain.ts'
import { requireQuantity } from '../chain/rpc/answer.ts'
import type { RpcClient } from '../chain/rpc/client.ts'
import { currentTip, type Fees } from '../chain/transactions/transaction.ts'
import { singleFlight } from '../lib/async/single-flight.ts'
import { sleep } from '../lib/async/sleep.ts'
import { isObject } from '../lib/json.ts'
import { GatewayFault } from './errors.ts'

/** `baseFee` is in wei. */
export type Head = TimedBlock & { readonly baseFee: bigint }

export type Heads = ReturnType<typeof createHeads>

/** A clock that is off by more seconds decides neither what has expired nor the time of a proof. */
const clockTolerance = 60n
/** Pause between two looks at the chain's time, and the time for all of them. A block of Base comes every two seconds. */
const lookMs = 250
const looksMs = 3_000

/** The gateway checks its clock once a minute. */
const rightMs = 120_000

const headMs = 250
const tipMs = 5_000

/** `now` is in milliseconds. */
export function createHeads(rpc: RpcClient, now: () => number = Date.now) {
  const seconds = () => BigInt(Math.floor(now() / 1000))
  let seen: { readonly time: bigint; readonly at: number } | undefined
  let rightAt = -Infinity

  const head = shared(headMs, async (): Promise<Head> => {
    const block = (await rpc('eth_getBlockByNumber', ['latest', false])) as Record<string, unknown> & { hash: Hex }
    return {
      number: requireQuantity(block['number']),
      hash: block.hash,
      timestamp: requireQuantity(block['timestamp']),
      baseFee: requireQuantity(block['baseFeePerGas']),
    }
  })
  const tip = shared(tipMs, () => currentTip(rpc, async () => (await head()).baseFee))

  /** Reads chain time in unix seconds: that of the pending block, where the node has one. */
  async function readTime(): Promise<bigint> {
    const blocks = await Promise.all(
      ['latest', 'pending'].map((tag) => rpc('eth_getBlockByNumber', [tag, false]).catch(() => null)),
    )
    const times = blocks.flatMap((block) => (isObject(block) ? [requireQuantity(block['timestamp'])] : []))
    if (times.length === 0) throw new Error('The node returned no block.')
    return times.reduce((latest, one) => (one > latest ? one : latest))
  }

  /**
   * Returns by how many seconds this clock is ahead of the chain's. It is negative behind the chain, and 0 within the tolerance. A chain that
   * stands still shows an old time too, where its provider has no pending block. So an old time counts once it has moved on: it is then no
   * older than the look before.
   */
  const clockError = singleFlight(async (): Promise<bigint> => {
    const ahead = await readClockError()
    rightAt = ahead === 0n ? now() : -Infinity
    return ahead
  })

  async function readClockError(): Promise<bigint> {
    const until = performance.now() + looksMs
    for (;;) {
      const before = seen
      const time = await readTime()
      seen = { time, at: performance.now() }
      const ahead = seconds() - time
      if (ahead <= clockTolerance) return ahead < -clockTolerance ? ahead : 0n
      const age = before && time > before.time ? Math.ceil((seen.at - before.at) / 1000) : Infinity
      if (Number(ahead) - age > clockTolerance) return ahead
      if (seen.at > until) return 0n
      await sleep(lookMs)
    }
  }

  /** Throws a GatewayFault where this clock is off. A proof would carry a time before its block, or one that is still to come. */
  async function requireClock(): Promise<void> {
    const ahead = await clockError()
    if (ahead !== 0n) throw new GatewayFault('not_ready', { cause: clockFault(ahead) })
  }

  return {
    clockError,
    requireClock,
    /** Returns whether a look of the last two minutes found this clock right. A step of it makes that look older, or puts it in the future. */
    isClockRight: (): boolean => Math.abs(now() - rightAt) < rightMs,
    /** Returns the newest block of a moment ago. Throws a GatewayFault where this clock is off; where the block is new, it shows that. */
    async headOnTime(): Promise<Head> {
      const found = await head()
      const ahead = seconds() - found.timestamp
      if (ahead > clockTolerance || ahead < -clockTolerance) await requireClock()
      return found
    },
    /** Returns the newest block as it was at most `maxAgeMs` ago. */
    head,
    /** Returns fees with room for the base fee to double. */
    async fees(): Promise<Fees> {
      const [{ baseFee }, maxPriorityFeePerGas] = await Promise.all([head(), tip()])
      return { maxFeePerGas: 2n * baseFee + maxPriorityFeePerGas, maxPriorityFeePerGas }
    },
  }
}

/** Words the fault of a clock that is ahead by so many seconds, or behind where they are negative. */
export function clockFault(ahead: bigint): string {
  return `This clock is ${ahead < 0n ? `${-ahead} s behind` : `${ahead} s ahead of`} the chain.`
}

/** Returns a function that shares one result for a time. A failure is shared with those who wait for it only. */
function shared<T>(milliseconds: number, read: () => Promise<T>): (maxAgeMs?: number) => Promise<T> {
  let last: { readonly at: number; readonly value: Promise<T> } | undefined
  return (maxAgeMs = milliseconds) => {
    const now = performance.now()
    if (last === undefined || now - last.at > maxAgeMs) {
      const value = read()
      last = { at: now, value }
      value.catch(() => {
        if (last?.value === value) last = undefined
      })
    }
    return last.value
  }
}
