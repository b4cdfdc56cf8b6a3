/** Pauses and polling. */
import { setTimeout as delay } from 'node:timers/promises'
import { msUntil } from './deadline.ts'

type SleepOptions = {
  /** Ends the pause early when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** False lets the process end during the pause. */
  readonly ref?: boolean
}

/** Resolves after `ms`, or earlier when the signal aborts. It never rejects. */
export async function sleep(ms: number, { signal, ref = true }: SleepOptions = {}): Promise<void> {
  await delay(ms, undefined, { ref, ...(signal && { signal }) }).catch(() => {})
}

/**
 * Calls `ask` until it returns something other than `undefined`, `null` or `false`, and returns that.
 * Returns `undefined` after `timeoutMs`. The first call is immediate; one call is made after the last pause.
 */
export async function poll<T>(
  ask: () => Promise<T> | T,
  { everyMs, timeoutMs }: { readonly everyMs: number; readonly timeoutMs: number },
): Promise<Exclude<T, undefined | null | false | void> | undefined> {
  const until = performance.now() + timeoutMs
  for (let isLast = timeoutMs <= 0; ;) {
    const answer = await ask()
    if (answer !== undefined && answer !== null && answer !== false)
      return answer as Exclude<T, undefined | null | false | void>
    if (isLast) return undefined
    const left = msUntil(until)
    isLast = left <= everyMs
    await sleep(Math.min(everyMs, Math.ceil(left))) // a timer of 0.3 ms would not wait
  }
}
