/** Linear time, by processor time of two lengths: no bound depends on the machine. */
import assert from 'node:assert/strict'

/** Below this many microseconds, processor time is too coarse to compare. */
const coarse = 10_000

/** Fails where an input of `length` takes 32 times as long as an eighth of it. Linear work takes 8 times as long, quadratic work 64. */
export function assertLinear(run: (length: number) => unknown, length: number): void {
  const cost = (of: number): number => {
    const began = process.cpuUsage()
    run(of)
    const { user, system } = process.cpuUsage(began)
    return user + system
  }
  const ratios: number[] = []
  // Compilation or a collection of garbage may fall into one of them.
  while (ratios.length < 3) {
    const ratio = cost(length) / Math.max(cost(length / 8), coarse)
    if (ratio < 32) return
    ratios.push(ratio)
  }
  assert.fail(`eight times the length takes ${ratios.map((ratio) => Math.round(ratio)).join(', ')} times as long`)
}
