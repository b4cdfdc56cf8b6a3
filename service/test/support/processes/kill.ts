/** The end of a process that a test started, as when its machine loses power. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** Resolves when the process is gone; at once where it has ended already. */
export async function killProcess(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
