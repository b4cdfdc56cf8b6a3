/** Waiting for the end: the first SIGINT or SIGTERM asks for it, a second one insists. */

export type Stopped = {
  /** Resolves with the first signal after the start was over. */
  readonly asked: Promise<NodeJS.Signals>
  /** Until this is called, a signal ends the process at once: there is nothing to wait for yet. */
  readonly started: () => void
}

const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

export function untilStopped(): Stopped {
  let running = false
  let started = () => {}
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    started = () => void (running = true)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (!running) process.exit(exitCodes[signal])
        running = false // the next one insists
        resolve(signal)
      })
    }
  })
  return { asked, started: () => started() }
}
