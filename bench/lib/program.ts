/**
 * Runs any program as part of a benchmark. It is kept on one core where `taskset` exists, read line by line, never outliving the benchmark.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'

const canPin = existsSync('/usr/bin/taskset') && availableParallelism() > 1

export type Program = {
  readonly command: string
  readonly args: readonly string[]
  /** The core that it is kept on where `taskset` exists; left out: any. */
  readonly core?: number
  readonly env?: Record<string, string>
  readonly cwd?: string
  /** Written to its standard input, which is empty otherwise. */
  readonly input?: string | undefined
}

/** A program whose standard output is read line by line. Other output is in `said`, for the error when it fails. */
export type Running = {
  readonly pid: number
  readonly said: () => string
  /** Resolves with the first line that matches, also one that came before; rejects when the program ends without it. */
  readonly line: (pattern: RegExp, withinMs: number) => Promise<RegExpExecArray>
  /** Resolves when the program has ended, for whatever reason. */
  readonly ended: Promise<void>
  /** Sends it, if the program still runs; `ended` says when it is gone. */
  readonly signal: (name: NodeJS.Signals) => void
  /** SIGTERM, and SIGKILL after three seconds. */
  readonly stop: () => Promise<void>
}

/** Programs that run. Nothing outlives the benchmark, whatever ends it. */
const programs = new Set<ChildProcess>()
process.once('exit', () => {
  for (const program of programs) program.kill('SIGKILL')
})

/** Returns a command that is kept on one core where `taskset` exists. */
export function pinned(
  core: number | undefined,
  command: readonly [string, ...string[]],
): readonly [string, ...string[]] {
  return canPin && core !== undefined ? ['/usr/bin/taskset', '-c', String(core), ...command] : command
}

export function run({ command, args, core, env = {}, cwd, input }: Program): Running {
  const [program, ...rest] = pinned(core, [command, ...args])
  const child = spawn(program, rest, { cwd, env: { ...process.env, ...env }, stdio: 'pipe' })
  child.stdin.on('error', () => {}).end(input)
  let said = ''
  const listeners = new Set<() => void>()
  const hear = (chunk: Buffer | string) => {
    said = (said + chunk.toString()).slice(-100_000)
    for (const listener of listeners) listener()
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  child.on('error', (error) => hear(error.message))
  programs.add(child)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  child.once('close', () => {
    programs.delete(child)
    hear('\n')
  })
  return {
    pid: child.pid ?? 0,
    said: () => said,
    ended,
    signal: (name) => void (hasEnded(child) || child.kill(name)),
    line: (pattern, withinMs) =>
      new Promise((resolve, reject) => {
        const settle = (act: () => void) => {
          clearTimeout(timer)
          listeners.delete(look)
          act()
        }
        const fail = (why: string) =>
          settle(() => reject(new Error(`${args[0]} ${why}. It said:\n${said.slice(-2_000)}`)))
        const timer = setTimeout(() => fail(`gave no ${pattern} within ${withinMs} ms`), withinMs)
        const look = () => {
          const found = pattern.exec(said)
          if (found !== null) settle(() => resolve(found))
          else if (hasEnded(child)) fail(`ended (${child.exitCode ?? child.signalCode})`)
        }
        listeners.add(look)
        look()
      }),
    stop: async () => {
      if (hasEnded(child)) return
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 3_000)
      await ended
      clearTimeout(timer)
    },
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
