/**
 * Reports to systemd (sd_notify) that the service serves, is alive, and stops. Node has no datagram sockets of Unix, so that systemd's own
 * program sends each report.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { ServiceManager } from '../../app/config/service-manager.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'

/** A report takes milliseconds; one that does not end is given up. */
const reportMs = 5_000
/** The program is searched there only, and is given no other variable: those of this process hold keys. */
const path = '/usr/bin:/bin'

/** Returns reports that never fail. Without a service manager they do nothing. */
export function createNotifier(manager: ServiceManager | null, log: Log) {
  let alive: NodeJS.Timeout | undefined

  async function report(...states: readonly string[]): Promise<void> {
    if (manager === null) return
    const env = { PATH: path, NOTIFY_SOCKET: manager.socket }
    await promisify(execFile)('systemd-notify', [...states], { env, timeout: reportMs, killSignal: 'SIGKILL' }).catch(
      (error: unknown) =>
        log.warn('systemd not notified', {
          states: states.join(' '),
          reason: reasonOf(error),
          remedy: 'install systemd-notify, or set Type=exec and no WatchdogSec in the unit',
        }),
    )
  }

  return {
    /**
     * Reports that the service serves. From then on it reports that it is alive, four times in each time of the watchdog, so that a single
     * report that is left out ends no service.
     */
    async ready(isAlive: () => boolean = () => true): Promise<void> {
      await report('READY=1')
      const watchdogMs = manager?.watchdogMs ?? null
      if (watchdogMs === null) return
      alive = setInterval(() => void (isAlive() && report('WATCHDOG=1')), watchdogMs / 4).unref()
    },
    async stopping(): Promise<void> {
      clearInterval(alive)
      await report('STOPPING=1')
    },
  }
}
