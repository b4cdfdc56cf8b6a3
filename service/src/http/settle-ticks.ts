/**
 * Node builds an object for every `process.nextTick`, several for each request. How, V8 settles for good with the first thousands of them;
 * when these come out of a busy start, it settles for a way that costs a fifth of a cached read (`bench:read`, Node 24). So the first
 * ones of a service are plain.
 */
const ticks = 5_000

/** Takes about a millisecond. Before anything else is started. */
export function settleTicks(): Promise<void> {
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
