/** Waits for what happens in the background, for as long as a busy machine may take. */
import assert from 'node:assert/strict'
import { sleep } from '../../src/lib/async/sleep.ts'

const longestMs = 300_000

/** Resolves to true when it holds, and to false when it did not come to hold. The pauses grow, because a check may cost queries. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<boolean> {
  const end = performance.now() + longestMs
  for (let pauseMs = 10; !(await holds()); pauseMs = Math.min(100, pauseMs * 1.25)) {
    if (performance.now() > end) return false
    await sleep(pauseMs)
  }
  return true
}

/** Resolves when it holds, and fails when it did not come to hold. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  assert.ok(await eventually(holds), `it did not come to hold: ${String(holds)}`)
}
