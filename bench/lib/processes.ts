/** Child processes of a benchmark, each pinned to a core where `taskset` exists, and the arithmetic of interleaved rounds. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'

const canPin = existsSync('/usr/bin/taskset') && availableParallelism() > 1

/** Starts Node on one core; `args[0]` is the script. */
function spawnPinned(core: number, args: readonly string[]): ChildProcess {
  const command = canPin
    ? ['/usr/bin/taskset', '-c', String(core), process.execPath, ...args]
    : [process.execPath, ...args]
  return spawn(command[0] ?? '', command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
}

/** Runs a script to its end and gives what it printed. It throws when the script fails. */
export async function runPinned(core: number, args: readonly string[], input: string): Promise<string> {
  const child = spawnPinned(core, args)
  child.stdin?.end(input)
  const output = textOf(child)
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  if (code !== 0) throw new Error(`${args[0]} ended with exit code ${code}`)
  return output
}

/** Starts a server script on the first core and waits for the line with its port. `stop` gives the last line that it said. */
export async function startServer(
  script: string,
  args: readonly string[],
  input = '',
): Promise<{ port: number; pid: number; stop: () => Promise<string> }> {
  const child = spawnPinned(0, [script, ...args])
  child.stdin?.end(input)
  let said = ''
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      const found = /^port (\d+)$/m.exec(said)
      if (found !== null) resolve(Number(found[1]))
    })
    child.once('exit', (code) => reject(new Error(`${script} ended with exit code ${code}`)))
  })
  const stop = () =>
    new Promise<string>((resolve) => {
      child.once('close', () => resolve(said.trim().split('\n').at(-1) ?? ''))
      child.kill('SIGTERM')
    })
  return { port, pid: child.pid ?? 0, stop }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

async function textOf(child: ChildProcess): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of child.stdout ?? []) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
