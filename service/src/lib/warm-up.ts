/**
 * Node allocates an object for every `process.nextTick`, several for each request, and V8 fixes its allocation strategy after the first
 * thousands of them. Ticks of a busy start lead to a strategy that costs a fifth of a cached read (`bench:read`, Node 24).
 */
const ticks = 5_000

/** Runs plain ticks for about a millisecond. Call it before anything else starts. */
export function warmUpNextTick(): Promise<void> {
  return new Promise((resolve) => {
    let left = ticks
    function tick(): void {
      left -= 1
      if (left > 0) process.nextTick(tick)
      else resolve()
    }
    tick()
  })
}
