/** The service manager that started this process (systemd with Type=notify), from the variables that it sets. */

/** `watchdogMs`: the process is killed when it reports nothing for so long; null where the unit has no WatchdogSec. */
export type ServiceManager = { readonly socket: string; readonly watchdogMs: number | null }

/** Returns null for a process that no service manager waits for. */
export function readServiceManager(env: Readonly<Record<string, string | undefined>>): ServiceManager | null {
  const socket = env['NOTIFY_SOCKET'] ?? ''
  if (!/^[/@][^\0]{1,106}$/.test(socket)) return null
  const isOurs = (env['WATCHDOG_PID'] ?? String(process.pid)) === String(process.pid)
  const watchdogUs = isOurs && /^\d{4,15}$/.test(env['WATCHDOG_USEC'] ?? '') ? Number(env['WATCHDOG_USEC']) : null
  return { socket, watchdogMs: watchdogUs === null ? null : watchdogUs / 1_000 }
}
