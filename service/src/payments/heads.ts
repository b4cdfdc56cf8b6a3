/** The newest block and the fees that follow from it, shared by everything that settles at the same moment. */
import type { Hex } from '@touchstone/verdict'
import type { TimedBlock } from '../domain/chain.ts'
import { requireQuantity } from '../chain/rpc/answer.ts'
import type { RpcClient } from '../chain/rpc/client.ts'
import type { Fees } from '../chain/transactions/transaction.ts'
import { GatewayFault } from './errors.ts'

/** `baseFee` is in wei. */
export type Head = TimedBlock & { readonly baseFee: bigint }

export type Heads = ReturnType<typeof createHeads>

/** A clock that is off by more seconds decides neither what has expired nor the time of a proof. */
export const clockTolerance = 60n

/** Throws a GatewayFault where this clock, in unix seconds, is behind a block. A proof would carry a time before its block. */
export function requireClock({ timestamp }: Pick<Head, 'timestamp'>, seconds: bigint): void {
  if (seconds + clockTolerance < timestamp)
    throw new GatewayFault('not_ready', { cause: 'this clock is behind the chain' })
}

const headMs = 250
const tipMs = 5_000

export function createHeads(rpc: RpcClient) {
  const head = shared(headMs, async (): Promise<Head> => {
    const block = (await rpc('eth_getBlockByNumber', ['latest', false])) as Record<
      'number' | 'timestamp' | 'baseFeePerGas',
      unknown
    > & {
      hash: Hex
    }
    const { number, hash, timestamp, baseFeePerGas } = block
    return {
      number: requireQuantity(number),
      hash,
      timestamp: requireQuantity(timestamp),
      baseFee: requireQuantity(baseFeePerGas),
    }
  })
  const tip = shared(tipMs, async () => requireQuantity(await rpc('eth_maxPriorityFeePerGas')))
  return {
    /** Returns the newest block as it was at most `maxAgeMs` ago. */
    head,
    /** Returns fees with room for the base fee to double. */
    async fees(): Promise<Fees> {
      const [{ baseFee }, maxPriorityFeePerGas] = await Promise.all([head(), tip()])
      return { maxFeePerGas: 2n * baseFee + maxPriorityFeePerGas, maxPriorityFeePerGas }
    },
  }
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
