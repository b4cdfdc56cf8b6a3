/** An anvil that a killed service left behind is ended at the next start, but never a chain that a running service uses. */
import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

export const pidFileName = 'anvil.pid'

/** Throws one sentence when another service runs on this folder. A number that now belongs to another program is left alone. */
export async function endLeftover(folder: string): Promise<void> {
  const file = join(folder, pidFileName)
  const { anvil, service } = recorded(await readFile(file, 'utf8').catch(() => ''))
  if (anvil === undefined) return
  for (let waits = 0; waits < 100; waits += 1) {
    const found = await processOf(anvil)
    if (found === undefined || !found.command.includes(folder)) return rm(file, { force: true })
    if (found.parent === service) {
      throw new Error(
        `Process ${service} already runs the local chain in ${folder}: stop it first, or choose another DATA_DIR.`,
      )
    }
    if (waits === 0) process.kill(anvil, 'SIGKILL')
    await delay(20)
  }
}

function recorded(text: string): { anvil?: number; service?: number } {
  const match = /^\{"anvil":(\d{1,10}),"service":(\d{1,10})\}$/.exec(text)
  return match === null ? {} : { anvil: Number(match[1]), service: Number(match[2]) }
}

/** Command line and parent of a process; nothing when it is gone, or where the system does not tell. */
async function processOf(pid: number): Promise<{ command: string; parent: number } | undefined> {
  try {
    if (process.platform === 'linux') {
      const [command, status] = await Promise.all(
        ['cmdline', 'stat'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8')),
      )
      const parent = Number(/\) \S (\d+)/.exec(status ?? '')?.[1])
      return { command: command ?? '', parent }
    }
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'ppid=,args=', '-p', String(pid)], {
      timeout: 2_000,
    })
    const [, parent, command = ''] = /^\s*(\d+)\s+(.*)/.exec(stdout) ?? []
    return parent === undefined ? undefined : { command, parent: Number(parent) }
  } catch {
    return undefined
  }
}
