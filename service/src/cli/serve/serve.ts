/** `touchstone serve`: the service for production, against any RPC provider and contract, set up by the environment. */
import cluster from 'node:cluster'
import type { Command } from 'commander'
import { ConfigError, readConfig, readServiceConfig, type Config } from '../../app/config/config.ts'
import { misspeltSettings } from '../doctor/misspelt.ts'
import { settings } from '../../app/config/schema.ts'
import { readServiceManager } from '../../app/config/service-manager.ts'
import { msUntil } from '../../lib/async/deadline.ts'
import { backoff, retry } from '../../lib/async/retry.ts'
import { isLimit } from '../../db/errors.ts'
import { isDatabaseUnavailable } from '../../lib/errors.ts'
import { createLog, lineWriter, type Log } from '../../lib/log.ts'
import type { Service } from '../../app/service.ts'
import { KeyFileError } from '../../tap/keys/key-file.ts'
import { isOfDemonstration } from '../dev/secrets.ts'
import { closeDataFolder } from '../session/closed-folder.ts'
import { acquireServiceLock } from '../session/data-directory-lock.ts'
import { defineCommand } from '../session/command.ts'
import { createNotifier } from './notify.ts'
import { endInTime, handleSignals } from './signals.ts'
import { formatError } from '../session/output.ts'
import { commandRunner } from '../store-commands.ts'
import { connectToPrimary, failStart, startWorkers } from './workers.ts'

export function serveCommand(): Command {
  return defineCommand('serve', 'Runs the service against a chain and a contract named by the environment.', {
    examples: ['touchstone serve', 'touchstone serve --only verification,indexer --workers auto'],
  })
    .option('--only <roles>', 'verification, gateway, graphql, indexer: what this process does (default: all)')
    .option('--workers <number>', 'processes that share the ports; auto: one for each core (default: 1)')
    .option(
      '--persisted <file>',
      'JSON file of the only documents that GraphQL runs, by their SHA-256 (default: every document)',
    )
    .addHelpText(
      'after',
      () => `\nEnvironment (a secret may be in a file: TAG_KEK_FILE for TAG_KEK, and so on):\n${settingsHelp()}`,
    )
    .action(serve)
}

type ServeOptions = { readonly only?: string; readonly workers?: string; readonly persisted?: string }

async function serve({ only, workers, persisted }: ServeOptions): Promise<void> {
  if (cluster.isWorker) return serveAsWorker()
  const env = {
    ...process.env,
    ...(only !== undefined && { ONLY: only }),
    ...(workers && { WORKERS: workers }),
    ...(persisted !== undefined && { GRAPHQL_PERSISTED: persisted }),
  }
  const config = readServiceConfig(env)
  return config.workers === 1 ? serveAlone(config) : superviseWorkers(config)
}

async function serveAlone(config: Config): Promise<void> {
  const log = createLog(print, config.logLevel)
  warnOfNames(log)
  const signals = handleSignals()
  process.on('SIGHUP', () => log.info('SIGHUP ignored', { reason: 'a single process has no worker to replace' }))
  const notify = createNotifier(readServiceManager(process.env), log)
  await using running = await open(config, log)
  await untilStopped({ signals, notify, log })
  // The embedded database cannot hang alone, and writes what it has.
  if (config.store.databaseUrl !== null) endInTime(log)
  await running.close()
  endInTime(log) // lines of the log that are not read would keep this process
}

async function superviseWorkers(config: Config): Promise<void> {
  const log = createLog(print, config.logLevel).child('workers')
  warnOfNames(log)
  const signals = handleSignals()
  let workers: Awaited<ReturnType<typeof startWorkers>> | undefined
  process.on('SIGHUP', () => {
    if (workers === undefined) return log.info('SIGHUP ignored', { reason: 'the workers are starting' })
    log.info('replacing every worker', { signal: 'SIGHUP' })
    void workers.restart().then(() => log.info('every worker replaced'))
  })
  const notify = createNotifier(readServiceManager(process.env), log)
  workers = await startWorkers({ count: config.workers, envOf: (place) => envOfWorker(config, place), log })
  await untilStopped({ signals, notify, log, isAlive: workers.isAnswering })
  await workers.stop()
  endInTime(log) // as above
}

type Serving = {
  readonly signals: ReturnType<typeof handleSignals>
  readonly notify: ReturnType<typeof createNotifier>
  readonly log: Log
  readonly isAlive?: () => boolean
}

async function untilStopped({ signals, notify, log, isAlive }: Serving): Promise<void> {
  signals.started()
  await notify.ready(isAlive)
  const signal = await signals.stop
  log.info('stopping', { signal })
  void notify.stopping()
}

/**
 * Returns the settings of each worker. Only the first has the indexer; each has a metrics port of its own and the options of the command.
 */
function envOfWorker({ roles, metricsPort, graphql }: Config, place: number): Record<string, string> {
  const others = [...roles].filter((role) => role !== 'indexer')
  const own = place === 0 || others.length === 0 ? [...roles] : others
  return {
    ONLY: own.join(','),
    ...(metricsPort && { METRICS_PORT: String(metricsPort + place) }),
    ...(graphql.persisted !== null && { GRAPHQL_PERSISTED: graphql.persisted }),
  }
}

async function serveAsWorker(): Promise<void> {
  const primary = connectToPrimary()
  try {
    const config = readConfig(process.env)
    const log = createLog(print, config.logLevel, 'service', { worker: process.pid })
    await using running = await open(config, log)
    primary.started(running.service)
    await primary.stop
    log.info('stopping')
    endInTime(log)
    await running.close()
  } catch (error) {
    await failStart(formatError(error))
  }
  process.disconnect() // else the channel to the primary keeps this process
}

/** Starts the service and runs the commands of the CLI in it. */
async function open(config: Config, log: Log) {
  await using opened = new AsyncDisposableStack()
  await closeDataFolder(config, log)
  const { dataDir } = config
  const isDemo = !config.demo && isOfDemonstration(dataDir)
  if (isDemo) log.warn('the data folder is that of a demonstration (npm start)', { dataDir })
  const lock = opened.use(await acquireServiceLock(config))
  const { startService } = await import('../../app/service.ts') // other commands begin in half the time without it
  const starting = whenDatabaseAnswers(config, log, () => startService(config, log))
  const service: Service = opened.use(
    await starting.catch((error: unknown) => {
      if (!isDemo || !(error instanceof KeyFileError)) throw error
      throw new ConfigError(
        `${dataDir} is the folder of a demonstration (npm start): name a new one in DATA_DIR. ${error.message}`,
      )
    }),
  )
  lock.serve(await commandRunner(config, service))
  const rest = opened.move()
  async function close(): Promise<void> {
    await lock.stop()
    await service.close()
    await rest.disposeAsync()
  }
  return { service, close, [Symbol.asyncDispose]: close }
}

/** Repeats a start that failed because PostgreSQL does not answer, such as during its restart, for DATABASE_WAIT_SECONDS. */
function whenDatabaseAnswers<T>({ store }: Config, log: Log, start: () => Promise<T>): Promise<T> {
  const endsAt = performance.now() + store.waitSeconds * 1_000
  return retry(start, {
    pausesMs: backoff(200, 2_000),
    isRetryable: (error) =>
      store.databaseUrl !== null && isDatabaseUnavailable(error) && !isLimit(error) && performance.now() < endsAt,
    onRetry: () => log.warn('PostgreSQL does not answer yet', { secondsLeft: Math.ceil(msUntil(endsAt) / 1_000) }),
  })
}

/** Logs variables that were meant to be settings. Their texts may be secret. */
export function warnOfNames(log: Log): void {
  for (const { name, meant } of misspeltSettings(process.env))
    log.warn('a variable is no setting, and has no effect', { name, meant })
}

const print = lineWriter(process.stdout)

function settingsHelp(): string {
  return Object.entries(settings)
    .map(([name, { help, fallback }]) => `  ${name.padEnd(28)} ${help}${fallback === '' ? '' : ` [${fallback}]`}`)
    .join('\n')
}
