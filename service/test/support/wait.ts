/** Waits for what happens in the background, for as long as a busy machine may take. */
import assert from 'node:assert/strict'
import { poll } from '../../src/lib/async/sleep.ts'

const longestMs = 120_000

/** Resolves to true when it holds, and to false when it did not come to hold. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<boolean> {
  return (await poll(holds, { everyMs: 10, timeoutMs: longestMs })) === true
}

/** Resolves when it holds, and fails when it did not come to hold. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  assert.ok(await eventually(holds), `it did not come to hold: ${String(holds)}`)
}
