/**
 * Sessions: where a command finds the store and the chain. The running service that holds the data folder runs the command; without
 * one, this process holds the folder itself until the command is done. Only then are the components loaded, which takes half a second.
 */
import type { Hex } from '@touchstone/verdict'
import type { Command } from 'commander'
import type { Components } from '../../app/components.ts'
import { type Config, localUrl, readConfig } from '../../app/config/config.ts'
import type { StoreComponents } from '../../app/store.ts'
import type { Database } from '../../db/database.ts'
import { createQueue, type Queue } from '../../lib/async/concurrency.ts'
import { retry } from '../../lib/async/retry.ts'
import { isChainUnavailable } from '../../lib/errors.ts'
import { createLog } from '../../lib/log.ts'
import type { TagHash } from '../../tap/tag-hash.ts'
import { readDemoSecrets } from '../dev/secrets.ts'
import { runInService, terminalIo, type CommandIo } from './control-client.ts'
import { CommandError, forEachCommand, outputErrorOf } from './output.ts'
import { assertDataFolder, writePrivately } from './closed-folder.ts'
import { acquireDataFolder } from './data-directory-lock.ts'

export type Session = {
  readonly io: CommandIo
  /** A running service executes the command, with the settings of its own process. */
  readonly inService?: true
  readonly config: Config
  /** URL of the verification host, without a slash at the end. */
  readonly baseUrl: string
  readonly store: Omit<StoreComponents, typeof Symbol.asyncDispose>
  readonly chain: Omit<Components, typeof Symbol.asyncDispose> | null
  /** Runs one work at a time, for read-modify-write of the counters of software tags. */
  readonly inTurn: Queue
}
/** Returns the exit code; none means 0. */
type Work = (session: Session) => Promise<number | void>
/** Runs the work of the parsed command in a session and sets the exit code. */
export type RunWork = (work: Work) => Promise<void>

/** Returns the components that need the chain. Throws `CommandError` when none is configured. */
export function chainOf({ chain }: Session): NonNullable<Session['chain']> {
  if (chain !== null) return chain
  throw new CommandError(
    'This needs the chain: start the service (npm start, or touchstone serve), or set CHAIN_RPC_URLS and CHAIN_CONTRACT.',
  )
}

/** Returns the owner of what is minted when none is named. Throws `CommandError` without an operator key. */
export function operatorOf(session: Session): Hex {
  const { operator } = chainOf(session)
  if (operator !== null) return operator
  throw new CommandError('No key of the issuer is configured (ISSUER_KEY or OPERATOR_KEY): nothing can be minted.')
}

/** Returns the function that hashes a UID for the chain. Throws `CommandError` without a pepper. */
export function tagHashOf(session: Session): TagHash {
  const { tagHash } = chainOf(session)
  if (tagHash !== undefined) return tagHash
  throw new CommandError('TAG_PEPPER is not set, so no tag can be bound.')
}

/** Makes the part of a session that is the same for every command. */
export function sessionBase(
  config: Config,
  baseUrl: string,
  components: Pick<Session, 'store' | 'chain'>,
): Omit<Session, 'io'> {
  return { ...components, config, baseUrl, inTurn: createQueue() }
}

/** Runs a command from the command line: in the running service, else in this process. */
export const runFromCli: RunWork = (work) =>
  runFromCommandLine(readConfig(process.env).dataDir, (io) => runAlone(process.env, io, work))

async function runFromCommandLine(
  dataDir: string | null,
  runHere: (io: CommandIo) => Promise<number | void>,
): Promise<void> {
  const io = terminalIo()
  const exit = dataDir === null ? null : await runInService(dataDir, process.argv.slice(2), io)
  process.exitCode = exit ?? (await runHere(io)) ?? 0
}

/** Runs work in this process, which holds the data folder meanwhile. */
export async function runAlone(env: NodeJS.ProcessEnv, io: CommandIo, work: Work): Promise<number | void> {
  const config = readConfig(await withDemoSecrets(env))
  writePrivately()
  await assertDataFolder(config)
  await using opened = new AsyncDisposableStack()
  if (config.store.databaseUrl === null) opened.use(await acquireDataFolder(config.dataDir))
  const log = createLog((line) => io.err(line), 'warn')
  const { rpcUrls, contract } = config.chain
  const hasChain = rpcUrls.length > 0 && contract !== null
  const { openComponents } = await import('../../app/components.ts')
  const { openStoreComponents } = await import('../../app/store.ts')
  const chain = hasChain ? opened.use(await openComponents(config, log)) : null
  const store = chain ?? opened.use(await openStoreComponents(config, log))
  const { bind, verification } = config.hosts
  const baseUrl = verification.url ?? localUrl(bind, verification.port)
  return await work({ ...sessionBase(config, baseUrl, { store, chain }), io })
}

/** Adds the secrets of the demonstration in the data folder when the environment has none. */
async function withDemoSecrets(env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const hasKek = (env['TAG_KEK'] ?? '') !== '' || (env['TAG_KEK_FILE'] ?? '') !== ''
  const secrets = hasKek ? null : await readDemoSecrets(readConfig(env).dataDir)
  if (secrets === null) return env
  return { DEMO: 'on', TAG_PEPPER: secrets.pepper, STATION_KEK: secrets.stationKek, ...env, TAG_KEK: secrets.kek }
}

/** The environment of a command that changes the database as a whole. It opens and migrates nothing by itself. */
export type BareSession = Readonly<{
  io: CommandIo
  config: Config
  /** The embedded database of the running service that runs the command; null in a process of its own. */
  running: Database | null
}>
export type RunBare = (work: (session: BareSession) => Promise<number | void>) => Promise<void>

/**
 * Runs a bare command from the command line. An embedded database of a running service is reached through that service. PostgreSQL
 * never is, because the service may be an older program.
 */
export const runBareFromCli: RunBare = async (work) => {
  const config = readConfig(await withDemoSecrets(process.env))
  const dataDir = config.store.databaseUrl === null ? config.dataDir : null
  await runFromCommandLine(dataDir, (io) => work({ io, config, running: null }))
}

/** Opens the database for `work`. Meanwhile other processes are kept out of the folder of an embedded one. */
export async function withDatabase<T>(
  { config, running }: BareSession,
  work: (database: Database) => Promise<T>,
  /** The longest statement; default: eleven minutes. */
  statementTimeoutMs?: number,
): Promise<T> {
  if (running !== null) return work(running)
  await using opened = new AsyncDisposableStack()
  writePrivately()
  await assertDataFolder(config, true)
  if (config.store.databaseUrl === null) opened.use(await acquireDataFolder(config.dataDir))
  const { openBareDatabase } = await import('../../app/store.ts')
  return await work(opened.use(await openBareDatabase(config, statementTimeoutMs)))
}

/** Retries work that may be repeated while the chain is unavailable. */
export function retryChain<T>(
  { err, signal }: Pick<CommandIo, 'err' | 'signal'>,
  work: () => Promise<T>,
  pausesMs: readonly number[] = [500, 2_000, 6_000],
): Promise<T> {
  return retry(work, {
    pausesMs,
    signal,
    isRetryable: isChainUnavailable,
    onRetry: (_error, pauseMs) => err(`  The chain does not answer; trying again in ${pauseMs / 1_000} s …`),
  })
}

/** Parses and runs a command within a service or a test. It prints through `io` only and never ends the process. */
export async function runWithin(program: Command, argv: readonly string[], io: CommandIo): Promise<void> {
  const line = (print: (text: string) => void) => (text: string) => print(text.replace(/\n$/, ''))
  const output = { writeOut: line(io.out), writeErr: line(io.err) }
  forEachCommand(program, (command) =>
    command.exitOverride().configureOutput({ ...output, outputError: outputErrorOf(command) }),
  )
  await program.parseAsync([...argv], { from: 'user' })
}
