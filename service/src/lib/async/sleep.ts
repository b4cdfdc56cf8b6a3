/** Pauses and polling. */
import { setTimeout as delay } from 'node:timers/promises'

export type SleepOptions = {
  /** Ends the pause early when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** False lets the process end during the pause. */
  readonly ref?: boolean
}

/** Resolves after `ms`, or earlier when the signal aborts. It never rejects. */
export async function sleep(ms: number, { signal, ref = true }: SleepOptions = {}): Promise<void> {
  await delay(ms, undefined, { ref, ...(signal && { signal }) }).catch(() => {})
}

export type PollOptions = SleepOptions & {
  readonly everyMs: number
  readonly timeoutMs: number
  /** Monotonic milliseconds, e.g. `performance.now()`. */
  readonly now?: () => number
  readonly pause?: (ms: number, options: SleepOptions) => Promise<void>
}

/**
 * Calls `ask` until it returns something other than `undefined`, `null` or `false`, and returns that.
 * Returns `undefined` after `timeoutMs` or when the signal aborts. The first call is immediate; one call is made after the last pause.
 */
export async function poll<T>(
  ask: () => Promise<T> | T,
  { everyMs, timeoutMs, signal, ref = true, now = () => performance.now(), pause = sleep }: PollOptions,
): Promise<Exclude<T, undefined | null | false | void> | undefined> {
  for (const until = now() + timeoutMs; ;) {
    const answer = await ask()
    if (answer !== undefined && answer !== null && answer !== false)
      return answer as Exclude<T, undefined | null | false | void>
    const left = until - now()
    if (left <= 0 || signal?.aborted === true) return undefined
    await pause(Math.min(everyMs, left), { signal, ref })
  }
}
