/** Handles SIGINT and SIGTERM of a service or a command. The first one stops it, a later one ends it at once. */
import type { Log } from '../../lib/log.ts'

const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

/**
 * Time within which a second signal counts as the first. One Ctrl-C may arrive twice: the terminal sends it to every process, and npm
 * forwards its own to the script, which is this process where the shell is bash.
 */
const sameSignalMs = 1_000

/**
 * Handles the signals of this process. `stop` resolves with the first one after `started`; before, a signal ends the process at once,
 * because nothing has to be closed yet.
 */
export function handleSignals() {
  let isRunning = false
  let stoppedAt = -Infinity
  const { promise: stop, resolve } = Promise.withResolvers<NodeJS.Signals>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (performance.now() - stoppedAt < sameSignalMs) return
      if (!isRunning) process.exit(exitCodes[signal])
      isRunning = false // the next one ends the process
      stoppedAt = performance.now()
      resolve(signal)
    })
  }
  return { stop, started: () => void (isRunning = true) }
}

/** Requests have four seconds of this time. */
const longestStopMs = 5_000

/** Ends this process when its stop takes too long, as where PostgreSQL hangs. The next start finishes what was cut, as after a crash. */
export function endInTime(log: Pick<Log, 'warn'>, withinMs = longestStopMs): void {
  const end = () => {
    log.warn('stopped before all work was done', { seconds: withinMs / 1_000 })
    process.exit(0)
  }
  setTimeout(end, withinMs).unref()
}
