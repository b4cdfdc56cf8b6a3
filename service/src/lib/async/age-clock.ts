/** The clock for the age of what a process keeps in memory. */

/** Milliseconds by which the two clocks drift apart without a step of one of them. */
const toleranceMs = 500

/**
 * Returns monotonic milliseconds that also count the time of a suspended machine. `performance.now()` stands still meanwhile on Linux, and only
 * the wall clock shows it. A wall clock that is set ahead makes everything older; one that is set back changes nothing.
 */
export function createAgeClock(): () => number {
  let skipped = 0
  let distance = Date.now() - performance.now()
  return () => {
    const ticks = performance.now()
    const step = Date.now() - ticks - distance
    if (Math.abs(step) > toleranceMs) {
      distance += step
      skipped += Math.max(0, step)
    }
    return ticks + skipped
  }
}
