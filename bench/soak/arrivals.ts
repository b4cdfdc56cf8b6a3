/** Requests that arrive at their own times, whatever earlier ones take. So the measured delay is that of a client. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Kind, Request } from './mix.ts'

export type Arrived = {
  readonly done: number
  /** Milliseconds from the moment when a request was due to the end of its answer. */
  readonly took: ReadonlyMap<Kind, readonly number[]>
  /** Failures and their counts. */
  readonly failures: ReadonlyMap<string, number>
  /** Milliseconds by which the latest was sent after its time: the limit is this process then. */
  readonly late: number
}

const mostUnderWay = 5_000

/** Resolves when all are answered. */
export async function arrive({
  perSecond,
  seconds,
  next,
}: {
  readonly perSecond: number
  readonly seconds: number
  readonly next: () => Request
}): Promise<Arrived> {
  const took = new Map<Kind, number[]>()
  const failures = new Map<string, number>()
  const underWay = new Set<Promise<void>>()
  const began = performance.now()
  const total = Math.round(perSecond * seconds)
  let [done, late] = [0, 0]

  async function one(due: number): Promise<void> {
    const { kind, run } = next()
    try {
      await run()
      const times = took.get(kind) ?? []
      took.set(kind, times)
      times.push(performance.now() - due)
      done += 1
    } catch (error) {
      const what = `${kind}: ${error instanceof Error ? error.message : String(error)}`.slice(0, 300)
      failures.set(what, (failures.get(what) ?? 0) + 1)
    }
  }

  for (let sent = 0; sent < total;) {
    const elapsed = performance.now() - began
    for (; sent < total && (sent * 1_000) / perSecond <= elapsed && underWay.size < mostUnderWay; sent += 1) {
      const due = began + (sent * 1_000) / perSecond
      late = Math.max(late, performance.now() - due)
      const request: Promise<void> = one(due).finally(() => underWay.delete(request))
      underWay.add(request)
    }
    await delay(1)
  }
  await Promise.all(underWay)
  return { done, took, failures, late }
}
