/** Times of the steps of a checkout, by name. */

/** In the order of a sale. Verifying goes on beside the asset read and the signing. */
export const steps = [
  'decode and match',
  'ledger: look',
  'ledger: claim',
  'facilitator: verify',
  'asset read',
  'sign',
  'durable store',
  'facilitator: settle',
  'of it: broadcast',
  'ask the chain',
  'ledger: done',
  'whole',
] as const
export type Step = (typeof steps)[number]

/** Milliseconds. */
export type Percentiles = { readonly p50: number; readonly p99: number }
export type Times = ReturnType<typeof createTimes>

export function createTimes() {
  let times = new Map<Step, number[]>()
  function add(step: Step, milliseconds: number): void {
    const known = times.get(step)
    if (known === undefined) times.set(step, [milliseconds])
    else known.push(milliseconds)
  }
  return {
    add,
    /** The same function; each call is a time of `step`. */
    timed:
      <Args extends readonly unknown[], Result>(step: Step, work: (...args: Args) => Promise<Result>) =>
      async (...args: Args): Promise<Result> => {
        const began = performance.now()
        try {
          return await work(...args)
        } finally {
          add(step, performance.now() - began)
        }
      },
    /** Returns the times measured since the last call. */
    take(): ReadonlyMap<Step, Percentiles> {
      const taken = times
      times = new Map()
      return new Map([...taken].map(([step, values]) => [step, percentilesOf(values)]))
    },
  }
}

function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}
