/** Deadlines on promises. Timers are monotonic, so that setting the system clock moves no deadline. */

/** The work did not settle before its deadline. */
export class DeadlineError extends Error {
  constructor(ms: number) {
    super(`no answer within ${ms} ms`)
    this.name = 'DeadlineError'
  }
}

type DeadlineOptions<Late> = {
  /** Makes the result of a missed deadline, or throws an error of its own. Left out: `DeadlineError`. */
  readonly onTimeout?: () => Late
  /** False lets the process end while the deadline is pending. */
  readonly ref?: boolean
}

/**
 * Returns the result of `work`, or that of `onTimeout` when `ms` elapse first. A later result or rejection of `work` is ignored.
 * An infinite `ms` sets no deadline. To cancel a `fetch`, use `AbortSignal.timeout`; this function only stops waiting.
 */
export function withDeadline<T, Late = never>(
  work: Promise<T>,
  ms: number,
  { onTimeout = throwLate(ms), ref = true }: DeadlineOptions<Late> = {},
): Promise<T | Late> {
  return new Promise<T | Late>((resolve, reject) => {
    // An answer that is already in the socket is read before the immediate runs. Then this process was late, not the answer.
    const timer = ms < longestTimerMs ? setTimeout(() => (immediate = setImmediate(expire)), ms) : undefined
    let immediate: NodeJS.Immediate | undefined
    if (!ref) timer?.unref()
    work.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error as Error)),
    )

    function expire(): void {
      settle(() => {
        try {
          resolve(onTimeout())
        } catch (error) {
          reject(error as Error)
        }
      })
    }

    function settle(end: () => void): void {
      clearTimeout(timer)
      clearImmediate(immediate)
      end()
    }
  })
}

/** Returns the milliseconds left until a moment of `performance.now()`, at least 0. */
export function msUntil(moment: number): number {
  return Math.max(0, moment - performance.now())
}

/** The longest delay that a Node timer takes; a longer one would fire at once. */
const longestTimerMs = 2 ** 31

function throwLate(ms: number): () => never {
  return () => {
    throw new DeadlineError(ms)
  }
}
