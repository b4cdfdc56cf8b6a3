/** The turns of an API key bound what it takes of a process at one time. Taps, verdicts and other keys have the rest. */
import { setImmediate } from 'node:timers/promises'
import { createKeyedQueue } from '../lib/async/concurrency.ts'

export type Turns = ReturnType<typeof createTurns>

/** Reads of one key at one time. The pool of PostgreSQL has ten connections, and a count may take one for 1.5 s. */
const readsPerKey = 4
/** The cost of all open subscriptions of one key together. Each event is executed for each subscription that is about it. */
const openCostPerKey = 2_000

export function createTurns({
  readsAtOnce = readsPerKey,
  maxOpenCost = openCostPerKey,
}: { readonly readsAtOnce?: number; readonly maxOpenCost?: number } = {}) {
  const inTurn = createKeyedQueue<string>()
  const open = new Map<string, number>()

  function add(keyId: string, cost: number): void {
    const total = (open.get(keyId) ?? 0) + cost
    if (total === 0) open.delete(keyId)
    else open.set(keyId, total)
  }

  return {
    /** Runs a read of a list, of an earlier block, or of earlier events. Few of one key run at one time. */
    read: createKeyedQueue<string>(readsAtOnce),
    /** Executes for an event: one of a key at one time, and the event loop turns before each. */
    execute: <T>(keyId: string, work: () => Promise<T>): Promise<T> =>
      inTurn(keyId, async () => {
        await setImmediate()
        return work()
      }),
    /** Adds to the cost of the open subscriptions of a key. Returns the function that takes it off again; null where it is too much. */
    open: (keyId: string, cost: number): (() => void) | null => {
      if ((open.get(keyId) ?? 0) + cost > maxOpenCost) return null
      add(keyId, cost)
      let isOpen = true
      return () => {
        if (isOpen) add(keyId, -cost)
        isOpen = false
      }
    },
    maxOpenCost,
  }
}
