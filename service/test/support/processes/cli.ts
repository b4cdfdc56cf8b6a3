/** Commands for tests: within a started world as its service runs them, or as real child processes. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Command, CommanderError } from 'commander'
import { type RunBare, runWithin, formatError } from '../../../src/cli/session/session.ts'
import { commandRunner, storeCommands } from '../../../src/cli/store-commands.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import type { World } from '../world.ts'

export type Ran = { readonly exit: number | null; readonly out: string; readonly err: string }

/** Makes assertions on a command: `ok` returns the output of a success, `refused` the one sentence of a failure. */
export function assertionsOf(run: (...argv: string[]) => Promise<Ran>) {
  const ok = async (...argv: string[]): Promise<string> => {
    const { exit, out, err } = await run(...argv)
    assert.deepEqual({ exit, err }, { exit: 0, err: '' }, `${argv.join(' ')}: ${err}`)
    return out
  }
  const refused = async (...argv: string[]): Promise<string> => {
    const { exit, err } = await run(...argv)
    assert.equal(exit, 1, argv.join(' '))
    assert.match(err, /^touchstone: [^\n]+$/, 'one sentence')
    return err.slice('touchstone: '.length)
  }
  return { ok, refused }
}

/** Runs commands within a world. `cwd` is the folder of relative file names. */
export function commandsOf(world: World) {
  const run = commandRunner({ config: readConfig(world.settings), service: world })
  return async (...argv: string[]): Promise<Ran> => {
    const { io, ran } = captureIo(world.settings.DATA_DIR)
    return ran(await run(argv, io))
  }
}

const cli = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url))

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

/** Runs commands on a database that no service uses: `migrate`, `restore`. */
export function bareCommandsOf(settings: Readonly<Record<string, string>>) {
  const config = readConfig(settings)
  return async (...argv: string[]): Promise<Ran> => {
    const { io, ran } = captureIo(config.dataDir)
    let exit = 0
    const program = new Command('touchstone')
    const runBare: RunBare = async (work) => void (exit = (await work({ io, config, running: null })) ?? 0)
    for (const command of storeCommands(() => Promise.reject(new Error('a session was opened')), io.out, runBare))
      program.addCommand(command)
    await runWithin(program, argv, io).catch((error: unknown) => {
      exit = 1
      if (!(error instanceof CommanderError)) io.err(formatError(error))
    })
    return ran(exit)
  }
}

/** Collects the output of a command. */
export function captureIo(cwd: string) {
  const [out, err]: [string[], string[]] = [[], []]
  return {
    io: {
      out: (line: string) => void out.push(line),
      err: (line: string) => void err.push(line),
      cwd,
      signal: new AbortController().signal,
    },
    ran: (exit: number | null): Ran => ({ exit, out: out.join('\n'), err: err.join('\n') }),
  }
}
