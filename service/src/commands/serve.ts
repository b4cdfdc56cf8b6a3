/** `touchstone serve`: the service for production, against any RPC provider and contract, set up by the environment. */
import { Command } from 'commander'
import { readConfig, type Config } from '../config.ts'
import { settings } from '../settings.ts'
import { createLog } from '../log.ts'
import { startService, type Service } from '../service.ts'
import { keepDoor } from './kept-door.ts'
import { untilStopped } from './signals.ts'
import { sentenceOf } from './store-command.ts'
import { commandRunner } from './store-program.ts'
import { followPrimary, giveUp, isWorker, leavePrimary } from './worker.ts'
import { startWorkers } from './workers.ts'

export function serveCommand(): Command {
  return new Command('serve')
    .description('Runs the service against a chain and a contract named by the environment.')
    .option('--only <roles>', 'verification, gateway, graphql, indexer: what this process does (default: all)')
    .option('--workers <number>', 'processes that share the ports; auto: one for each core (default: 1)')
    .addHelpText(
      'after',
      () =>
        `\nExamples:\n  touchstone serve\n  touchstone serve --only verification,indexer --workers auto\n\nEnvironment:\n${settingsHelp()}`,
    )
    .action(serve)
}

async function serve({ only, workers }: { only?: string; workers?: string }): Promise<void> {
  if (isWorker()) return serveAsWorker()
  const env = { ...process.env, ...(only !== undefined && { ONLY: only }), ...(workers && { WORKERS: workers }) }
  const config = readConfig(env)
  return config.workers === 1 ? serveAlone(config) : superviseWorkers(config)
}

async function serveAlone(config: Config): Promise<void> {
  const log = createLog(print, config.logLevel)
  const stopped = untilStopped()
  await using running = await open(config, log)
  stopped.started()
  const signal = await stopped.asked
  log.info('stopping', { signal })
  await running.close()
}

async function superviseWorkers(config: Config): Promise<void> {
  const log = createLog(print, config.logLevel).child('workers')
  const stopped = untilStopped()
  const workers = await startWorkers({ count: config.workers, envOf: (place) => envOfWorker(config, place), log })
  process.on('SIGHUP', () => {
    log.info('replacing every worker', { signal: 'SIGHUP' })
    void workers.restart().then(() => log.info('every worker replaced'))
  })
  stopped.started()
  const signal = await stopped.asked
  log.info('stopping', { signal })
  await workers.stop()
}

/** The first one has the indexer, which needs no second on this machine; the others' metrics are on the ports after its own. */
function envOfWorker({ roles, metricsPort }: Config, place: number): Record<string, string> {
  const others = [...roles].filter((role) => role !== 'indexer')
  const own = place === 0 || others.length === 0 ? [...roles] : others
  return { ONLY: own.join(','), ...(metricsPort && { METRICS_PORT: String(metricsPort + place) }) }
}

async function serveAsWorker(): Promise<void> {
  const primary = followPrimary()
  try {
    const config = readConfig(process.env)
    const log = createLog(print, config.logLevel, 'service', { worker: process.pid })
    await using running = await open(config, log)
    primary.started(running.service)
    await primary.asked
    log.info('stopping')
    await running.close()
  } catch (error) {
    await giveUp(sentenceOf(error))
  }
  leavePrimary()
}

/** The service and its door to the commands of the CLI. */
async function open(config: Config, log: ReturnType<typeof createLog>) {
  await using opened = new AsyncDisposableStack()
  const door = opened.use(await keepDoor(config))
  const service: Service = opened.use(await startService(config, log))
  door.serve(commandRunner({ config, service }))
  const rest = opened.move()
  async function close(): Promise<void> {
    await door.stop()
    await service.close()
    await rest.disposeAsync()
  }
  return { service, close, [Symbol.asyncDispose]: close }
}

const print = (line: string): void => void process.stdout.write(`${line}\n`)

function settingsHelp(): string {
  return Object.entries(settings)
    .map(([name, { help, fallback }]) => `  ${name.padEnd(28)} ${help}${fallback === '' ? '' : ` [${fallback}]`}`)
    .join('\n')
}
