/** Waiting for the end: the first SIGINT or SIGTERM asks for it, a later one insists. */

export type Stopped = {
  /** Resolves with the first signal after the start was over. */
  readonly asked: Promise<NodeJS.Signals>
  /** Until this is called, a signal ends the process at once: there is nothing to wait for yet. */
  readonly started: () => void
}

const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

/**
 * One Ctrl-C may come twice: the terminal sends it to every process, and npm passes its own on to the script, which is this process where
 * the shell is bash. What follows the first signal within this time is the same wish, not a second one.
 */
const sameWishMs = 1_000

export function untilStopped(): Stopped {
  let running = false
  let askedAt = -Infinity
  let started = () => {}
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    started = () => void (running = true)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (performance.now() - askedAt < sameWishMs) return
        if (!running) process.exit(exitCodes[signal])
        running = false // the next one insists
        askedAt = performance.now()
        resolve(signal)
      })
    }
  })
  return { asked, started: () => started() }
}
