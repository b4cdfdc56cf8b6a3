/**
 * Where the commands that change the database as a whole find it: nothing is opened or migrated before they ask for it. The embedded
 * database of a running service is reached through that service; PostgreSQL never is, because the service may be an older program.
 */
import { readConfig, type Config } from '../config.ts'
import { openBareDatabase } from '../parts.ts'
import type { Database } from '../store/database.ts'
import { runInService } from './control-client.ts'
import type { CommandIo } from './control.ts'
import { holdFolder } from './store-command.ts'

/** What such a command works with. */
export type BareSession = Readonly<{
  io: CommandIo
  config: Config
  /** The embedded database of the running service that carries the command out; null in a process of the command's own. */
  running: Database | null
}>
/** A command; its exit code, 0 when it gives none. */
type BareWork = (session: BareSession) => Promise<number | void>
export type RunBare = (work: BareWork) => Promise<void>

/** For the CLI's own process. */
export const runBareFromCli: RunBare = async (work) => {
  const stopping = new AbortController()
  const io: CommandIo = {
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
    cwd: process.cwd(),
    signal: stopping.signal,
  }
  const config = readConfig(process.env)
  const isEmbedded = config.store.databaseUrl === null
  const exit = isEmbedded ? await runInService(config.dataDir, process.argv.slice(2), io) : null
  if (exit === null) for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  process.exitCode = exit ?? (await work({ io, config, running: null })) ?? 0
}

/** Opens the database for `work`, and keeps other processes out of the folder of an embedded one meanwhile. */
export async function withDatabase<T>(
  { config, running }: BareSession,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  if (running !== null) return work(running)
  await using opened = new AsyncDisposableStack()
  if (config.store.databaseUrl === null) opened.use(await holdFolder(config.dataDir))
  return await work(opened.adopt(await openBareDatabase(config), (database) => database.close()))
}
