/** The end of processes that a test started, as when their machine loses power. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** Resolves when the process is gone; at once where it has ended already. */
export async function killProcess(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** Processes that run. A test that fails leaves its own, which would keep the process of the test file alive. */
export const children = new Set<ChildProcess>()

/** Kills the processes that a test file left. */
export async function killChildren(): Promise<void> {
  await Promise.all([...children].map(killProcess))
}
