/** Commands for tests: within a started world as its service runs them, or as real child processes. */
import assert from 'node:assert/strict'
import { fork, spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Command, CommanderError } from 'commander'
import { type CommandIo, runInService } from '../../../src/cli/session/control-client.ts'
import { runAlone, type RunBare, runWithin, type RunWork } from '../../../src/cli/session/session.ts'
import { formatError } from '../../../src/cli/session/output.ts'
import { commandRunner, loadStoreCommands } from '../../../src/cli/store-commands.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import type { World } from '../world.ts'
import { children, killChildren } from './kill.ts'

export type Ran = { readonly exit: number | null; readonly out: string; readonly err: string }

/**
 * Runs a command. The first text is its beginning, with a space between the words; each of the others is one word, such as a name with
 * spaces.
 */
export type Run = (...line: string[]) => Promise<Ran>

/** Returns the words of the line of a `Run`. */
export const wordsOf = ([start = '', ...words]: readonly string[]): string[] => [...start.split(' '), ...words]

/** Makes assertions on a command: `ok` returns the output of a success, `refused` the one sentence of a failure. */
export function assertionsOf(run: Run) {
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

/**
 * Runs commands within a world, in which `change` replaces components. `own` replaces parts of the input and output. The world may be one
 * that is open by the first command only.
 */
export function commandsOf(world: World, change: Partial<World['components']> = {}, own: Partial<CommandIo> = {}): Run {
  let runner: ReturnType<typeof commandRunner> | undefined
  return async (...line) => {
    const { io, ran } = captureIo(world.settings.DATA_DIR)
    const service = { ...world, components: { ...world.components, ...change } }
    runner ??= commandRunner(readConfig(world.settings), service)
    return ran(await (await runner)(wordsOf(line), { ...io, ...own }))
  }
}

/** The program, for a command of a shell. */
export const cli = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url))

/** A line of a shell script that makes `touchstone` a command, as a checkout with its PATH has it. */
export const cliInShell = `touchstone() { '${process.execPath}' '${cli}' "$@"; }`

/** Environment variables that every command inherits; with the compile cache of the tests it starts in half the time. */
export const inherited = {
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
}

export type Running = { readonly child: ChildProcess; readonly said: () => string; readonly ended: Promise<Ran> }

if (process.env['NODE_TEST_CONTEXT'] !== undefined) after(killChildren)

/** `touchstone …` as a process of its own. Only what `env` names is set; `program` is the cli.ts of another version. */
export function touchstone(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd?: string,
  program = cli,
): Running {
  return watched(process.execPath, [program, ...args], {
    env: { ...inherited, ...env },
    ...(cwd !== undefined && { cwd }),
  })
}

/** Starts a program whose output is collected. It is killed when the test file ends. */
export function watched(program: string, args: readonly string[], options: Pick<SpawnOptions, 'cwd' | 'env'>): Running {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = new Promise<Ran>((resolve) => child.once('close', (exit) => resolve({ exit, out, err })))
  return { child, said: () => out + err, ended }
}

/**
 * Returns `touchstone …` for commands that need no data folder, one after another in one process. Most of the time of a short command is
 * that of its start.
 */
export function warmProgram(cwd: string) {
  const child = fork(fileURLToPath(new URL('warm-child.ts', import.meta.url)), { env: inherited, execArgv: [] })
  children.add(child)
  const ended = once(child, 'exit').then(([code]: unknown[]) =>
    assert.fail(`the process of the commands ended: ${String(code)}`),
  )
  ended.catch(() => {})
  return async (...args: string[]): Promise<Ran> => {
    const answer = once(child, 'message')
    child.send({ args, cwd })
    const [ran] = (await Promise.race([answer, ended])) as [Ran]
    return ran
  }
}

/** Resolves when the process has printed the text, or has ended, however long a busy machine takes. */
export async function untilSaid({ child, said, ended }: Running, text: string): Promise<void> {
  while (!said().includes(text) && child.exitCode === null && child.signalCode === null)
    await Promise.race([once(child.stdout ?? child, 'data'), ended])
}

/** Runs commands in this process as the program does when no service holds the data folder. */
export function aloneCommandsOf(env: Readonly<Record<string, string>>, cwd: string): Run {
  return (...line) =>
    runHere(line, cwd, (io) => ({ run: (work) => runAlone(env, io, work), runBare: refuseSession }), 'touchstone: ')
}

/** Settings of `touchstone dev` with which several run beside each other. */
export const freePorts = {
  VERIFICATION_PORT: '0',
  GATEWAY_PORT: '0',
  GRAPHQL_PORT: '0',
  LOCAL_CHAIN_PORT: '0',
} as const

/** Starts `touchstone dev` and waits until it serves; `urls` are those that it prints. */
export async function startDev(env: Readonly<Record<string, string>>, program = cli) {
  const running = touchstone(['dev'], { ...freePorts, ...env }, undefined, program)
  await untilSaid(running, 'Ctrl-C')
  const said = running.said()
  const url = (label: RegExp) => label.exec(said)?.[1] ?? assert.fail(`touchstone dev did not come up: ${said}`)
  const urls = {
    verification: url(/Touchstone runs: (http:\S+)/),
    gateway: url(/gateway +(http:\S+)\/health/),
    graphql: url(/playground +(http:\S+)\/playground/),
    rpc: url(/chain +(http:\S+) \(id/),
  }
  const stop = async (signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL' = 'SIGTERM') => {
    running.child.kill(signal)
    return (await running.ended).exit
  }
  return { ...running, urls, stop }
}

/** Runs commands on a database that no service uses: `migrate`, `restore`. */
export function bareCommandsOf(settings: Readonly<Record<string, string>>): Run {
  const config = readConfig(settings)
  return (...line) =>
    runHere(line, config.dataDir, (io) => ({
      run: refuseSession,
      runBare: (work) => work({ io, config, running: null }),
    }))
}

type Runs = {
  readonly run: (...parameters: Parameters<RunWork>) => Promise<number | void>
  readonly runBare: (...parameters: Parameters<RunBare>) => Promise<number | void>
}

const refuseSession = () => Promise.reject(new Error('a session was opened'))

async function runHere(
  line: readonly string[],
  cwd: string,
  runsOf: (io: CommandIo) => Runs,
  prefix = '',
): Promise<Ran> {
  const { io, ran } = captureIo(cwd)
  const { run, runBare } = runsOf(io)
  let exit = 0
  const program = new Command('touchstone')
  const makeCommands = await loadStoreCommands()
  const commands = makeCommands(
    async (work) => void (exit = (await run(work)) ?? 0),
    io.out,
    async (work) => void (exit = (await runBare(work)) ?? 0),
  )
  for (const command of commands) program.addCommand(command)
  await runWithin(program, wordsOf(line), io).catch((error: unknown) => {
    exit = 1
    if (!(error instanceof CommanderError)) io.err(prefix + formatError(error))
  })
  return ran(exit)
}

/** Runs commands in the service that holds the data folder, as the program of the CLI asks it to. */
export function serviceCommandsOf(dataDir: string, cwd: string): Run {
  return async (...line) => {
    const { io, ran } = captureIo(cwd)
    return ran(await runInService(dataDir, wordsOf(line), io))
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
