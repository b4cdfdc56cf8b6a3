/** How long a provider usually takes, so that a stall is noticed while there is still time to ask another one. */

const kept = 64

export type Latency = Readonly<{
  add: (ms: number) => void
  /** The 95th percentile of the last 64 attempts in milliseconds; 0 before the first. */
  p95: () => number
}>

export function createLatency(): Latency {
  const samples: number[] = []
  let next = 0
  let p95: number | null = 0

  return {
    add(ms) {
      samples[next] = ms
      next = (next + 1) % kept
      p95 = null
    },
    p95() {
      p95 ??= samples.toSorted((a, b) => a - b)[Math.ceil(samples.length * 0.95) - 1] ?? 0
      return p95
    },
  }
}
