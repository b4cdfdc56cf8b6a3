/**
 * Where a command of the CLI finds the store and the chain: in the running service that holds the data folder, else in this
 * process, which then holds the folder itself until the command is done.
 */
import type { Command } from 'commander'
import { ConfigError, readConfig, type Config } from '../config.ts'
import { reasonOf, ServiceError } from '../errors.ts'
import { createLog } from '../log.ts'
import { openParts, openStoreParts, type Parts, type StoreParts } from '../parts.ts'
import { holderOf, runInService } from './control-client.ts'
import { openControl, type CommandIo, type Door } from './control.ts'
import { readDemoSecrets } from './demo-secrets.ts'

/** What a command works with. */
export type Session = {
  readonly io: CommandIo
  readonly dataDir: string
  /** Of the verification host, without a slash at the end. */
  readonly baseUrl: string
  /** Lets demo batches, software tags and demo accounts in. */
  readonly demo: boolean
  readonly store: Omit<StoreParts, typeof Symbol.asyncDispose>
  readonly chain: Omit<Parts, typeof Symbol.asyncDispose> | null
  /** One at a time: for what reads a file of the data folder, changes it and writes it back. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
}
/** A command; its exit code, 0 when it gives none. */
type Work = (session: Session) => Promise<number | void>
/** Finds a session for the work of the command that was parsed, and sees to its exit code. */
export type RunWork = (work: Work) => Promise<void>

/** What cannot be done, in one sentence for whoever gave the command. */
export class CommandError extends Error {}

/** The parts that need the chain. */
export function chainOf({ chain }: Session): NonNullable<Session['chain']> {
  if (chain !== null) return chain
  throw new CommandError(
    'This needs the chain: start the service (npm start, or touchstone serve), or set CHAIN_RPC_URLS and CHAIN_CONTRACT.',
  )
}

/** Everything of a session that stays from one command to the next. */
export function sessionBase(
  config: Config,
  baseUrl: string,
  parts: { readonly store: Session['store']; readonly chain: Session['chain'] },
): Omit<Session, 'io'> {
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...parts,
    dataDir: config.dataDir,
    baseUrl,
    demo: config.demo,
    inTurn: (work) => {
      const turn = last.then(work, work)
      last = turn.catch(() => {})
      return turn
    },
  }
}

/** For the CLI's own process: what its arguments ask for is done here only when no service holds the data folder. */
export const runFromCli: RunWork = async (work) => {
  const stopping = new AbortController()
  const io: CommandIo = {
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
    cwd: process.cwd(),
    signal: stopping.signal,
  }
  const { dataDir } = readConfig(process.env)
  const exit = await runInService(dataDir, process.argv.slice(2), io)
  if (exit === null) for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  process.exitCode = exit ?? (await alone(process.env, io, work))
}

async function alone(env: Readonly<Record<string, string | undefined>>, io: CommandIo, work: Work): Promise<number> {
  const config = readConfig(await withDemoSecrets(env))
  await using opened = new AsyncDisposableStack()
  if (config.store.databaseUrl === null) opened.use(await holdFolder(config.dataDir))
  const log = createLog((line) => io.err(line), 'warn')
  const { rpcUrls, contract } = config.chain
  const hasChain = rpcUrls.length > 0 && contract !== null
  const chain = hasChain ? opened.use(await openParts(config, log)) : null
  const store = chain ?? opened.use(await openStoreParts(config, log))
  const baseUrl = config.hosts.verification.url ?? `http://127.0.0.1:${config.hosts.verification.port}`
  return (await work({ ...sessionBase(config, baseUrl, { store, chain }), io })) ?? 0
}

/** Keeps other processes out of a data folder, or says which one is in there. */
export async function holdFolder(dataDir: string): Promise<Door> {
  const opened = await openControl(dataDir)
  if (opened.ok) return opened.door
  throw heldBy(opened.pid, dataDir)
}

/** For a start that should change nothing when it cannot be. */
export async function assertNotHeld(dataDir: string): Promise<void> {
  const pid = await holderOf(dataDir)
  if (pid !== null) throw heldBy(pid, dataDir)
}

function heldBy(pid: number, dataDir: string): ConfigError {
  return new ConfigError(
    `Process ${pid} holds the data folder ${dataDir}: end it first, or choose another folder with DATA_DIR.`,
  )
}

/** Without keys of its own a command takes those of the demonstration that the data folder holds. */
async function withDemoSecrets(env: Readonly<Record<string, string | undefined>>) {
  const secrets = (env['TAG_KEK'] ?? '') === '' ? await readDemoSecrets(readConfig(env).dataDir) : null
  return secrets === null ? env : { DEMO: 'on', TAG_PEPPER: secrets.pepper, ...env, TAG_KEK: secrets.kek }
}

/** One sentence for whoever gave the command; what was foreseen needs no causes. */
export function sentenceOf(error: unknown): string {
  const isForeseen = error instanceof CommandError || error instanceof ConfigError || error instanceof ServiceError
  return isForeseen ? error.message : reasonOf(error)
}

/** Parses and runs a command within a service or a test: nothing is printed but through `io`, nothing ends the process. */
export async function runWithin(program: Command, argv: readonly string[], io: CommandIo): Promise<void> {
  quiet(program, io)
  await program.parseAsync([...argv], { from: 'user' })
}

function quiet(command: Command, io: CommandIo): void {
  const line = (print: (text: string) => void) => (text: string) => print(text.replace(/\n$/, ''))
  command.exitOverride().configureOutput({ writeOut: line(io.out), writeErr: line(io.err), outputError })
  for (const child of command.commands) quiet(child, io)
}

/** As the program's own failures look: one line. */
export function outputError(text: string, write: (text: string) => void): void {
  write(
    `${text
      .replace(/^error: /, 'touchstone: ')
      .trim()
      .replaceAll('\n', ' ')}\n`,
  )
}
