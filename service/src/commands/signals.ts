/** Waiting for the end: the first SIGINT or SIGTERM asks for it, a second one insists. */

/** Resolves with the first signal; a second one ends the process at once with exit code 130. */
export function untilStopped(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(130)
        asked = true
        resolve(signal)
      })
    }
  })
}
