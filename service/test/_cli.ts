/** Commands for tests: carried out within a started world as its service does it, or as real child processes. */
import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Command, CommanderError } from 'commander'
import type { RunBare } from '../src/commands/bare-command.ts'
import { runWithin, sentenceOf } from '../src/commands/store-command.ts'
import { commandRunner, storeCommands } from '../src/commands/store-program.ts'
import { readConfig } from '../src/config.ts'
import type { World } from './_world.ts'

export type Ran = { readonly exit: number | null; readonly out: string; readonly err: string }

/** Runs commands within a world. `cwd` is the folder of relative file names. */
export function commandsOf(world: World) {
  const run = commandRunner({ config: readConfig(world.settings), service: world })
  return async (...argv: string[]): Promise<Ran> => {
    const [out, err]: [string[], string[]] = [[], []]
    const exit = await run(argv, {
      out: (line) => void out.push(line),
      err: (line) => void err.push(line),
      cwd: world.settings.DATA_DIR,
      signal: new AbortController().signal,
    })
    return { exit, out: out.join('\n'), err: err.join('\n') }
  }
}

const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url))

export type Running = { readonly child: ChildProcess; readonly said: () => string; readonly ended: Promise<Ran> }

/** `touchstone …` as a process of its own. Only what `env` names is set; `program` is the cli.ts of another version. */
export function touchstone(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd?: string,
  program = cli,
): Running {
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = new Promise<Ran>((resolve) => child.once('close', (exit) => resolve({ exit, out, err })))
  return { child, said: () => out + err, ended }
}

/** Commands on a database that no service runs on: `migrate`, `restore`. */
export function bareCommandsOf(settings: Readonly<Record<string, string>>) {
  const config = readConfig(settings)
  return async (...argv: string[]): Promise<Ran> => {
    const [out, err]: [string[], string[]] = [[], []]
    const io = {
      out: (line: string) => void out.push(line),
      err: (line: string) => void err.push(line),
      cwd: config.dataDir,
      signal: new AbortController().signal,
    }
    let exit = 0
    const program = new Command('touchstone')
    const runBare: RunBare = async (work) => void (exit = (await work({ io, config, running: null })) ?? 0)
    for (const command of storeCommands(() => Promise.reject(new Error('a session was opened')), io.out, runBare))
      program.addCommand(command)
    await runWithin(program, argv, io).catch((error: unknown) => {
      exit = 1
      if (!(error instanceof CommanderError)) err.push(sentenceOf(error))
    })
    return { exit, out: out.join('\n'), err: err.join('\n') }
  }
}
