/** Runs named commands and prints the output of each when it is done. At the end it prints which passed, and their times. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

type Command = readonly [string, ...string[]]

export type Stage = {
  readonly name: string
  readonly command: Command
  /** Returns the command that runs the failed part again; its result is the stage's then. Undefined when there is none. */
  readonly again?: () => Command | undefined
}

/** No stage is so slow, not even on a busy machine: what takes longer hangs, and is ended. */
const longestMs = 60 * 60_000

/** Runs the tests that start no process and no database, by their file name, in one process. */
export const unitTests: Stage['command'] = ['npm', 'run', '--silent', 'test:unit']

const contractTests = (...names: readonly string[]) => names.map((name) => `service/test/contract/${name}.test.ts`)
/** Test files of what must agree with the code, as openapi.yaml does. `npm run check` runs them; they start no chain and no database. */
export const checkedTests = {
  imports: contractTests('imports'),
  language: contractTests('language'),
  inStep: contractTests('openapi', 'sharding', 'names', 'options', 'test-files'),
} as const

export const root = fileURLToPath(new URL('../', import.meta.url))

/**
 * Runs all stages, at most `lanes` at a time, also after one that failed. The exit code is 1 then. With several lanes the output of a stage
 * is printed when it is done.
 */
export async function runStages(stages: readonly Stage[], lanes = 1): Promise<void> {
  // The commands end with this process. A program that has something to close first listens itself.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    if (process.listenerCount(signal) === 0) process.once(signal, () => process.exit(1))
  const waiting = [...stages]
  const isLive = lanes === 1
  const lines: string[] = []
  let failed = 0
  async function lane(): Promise<void> {
    for (let stage = waiting.shift(); stage !== undefined; stage = waiting.shift()) {
      const { name, command, again } = stage
      const title = `\n── ${name}: ${command.join(' ').slice(0, 160)}`
      if (isLive) console.log(title)
      const began = performance.now()
      const first = await run(command, !isLive)
      const second = first.code === 0 ? undefined : again?.()
      if (second !== undefined) console.log(`\n── ${name}, what failed again: ${second.join(' ')}`)
      const { code, output } = second === undefined ? first : await run(second, !isLive)
      const seconds = ((performance.now() - began) / 1000).toFixed(1)
      if (!isLive) console.log(`${title}\n${output}`)
      if (code !== 0) failed += 1
      const unsteady = first.code !== 0 && code === 0 ? ', unsteady: a part failed once and passed alone' : ''
      lines.push(`${code === 0 ? '✔' : '✖'} ${name.padEnd(24)} ${seconds.padStart(6)} s${unsteady}`)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  console.log(`\n${lines.join('\n')}\n${stages.length - failed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
}

/** Runs a command in a process group of its own, which ends with this process. The shell of an npm script passes no signal on. */
function run([program, ...args]: Command, collect: boolean): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      detached: true,
      stdio: ['ignore', collect ? 'pipe' : 'inherit', collect ? 'pipe' : 'inherit'],
    })
    const end = () => endGroup(child.pid)
    const timer = setTimeout(end, longestMs)
    process.once('exit', end)
    const finish = (code: number, text: string) => {
      clearTimeout(timer)
      process.off('exit', end)
      resolve({ code, output: text })
    }
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.once('error', (error) => finish(127, error.message))
    child.once('close', (code) => finish(code ?? 1, output))
  })
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid)
  } catch {
    // It has ended.
  }
}
