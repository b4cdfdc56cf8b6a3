/** `touchstone serve`: the service for production, against any RPC provider and contract, set up by the environment. */
import { Command } from 'commander'
import { readConfig } from '../config.ts'
import { settings } from '../settings.ts'
import { createLog } from '../log.ts'
import { startService } from '../service.ts'
import { untilStopped } from './signals.ts'
import { openDoor } from './store-command.ts'
import { commandRunner } from './store-program.ts'

export function serveCommand(): Command {
  return new Command('serve')
    .description('Runs the service against a chain and a contract named by the environment.')
    .option('--only <roles>', 'verification, gateway, graphql, indexer: what this process does (default: all)')
    .addHelpText(
      'after',
      () =>
        `\nExamples:\n  touchstone serve\n  touchstone serve --only verification,indexer\n\nEnvironment:\n${settingsHelp()}`,
    )
    .action(serve)
}

async function serve({ only }: { only?: string }): Promise<void> {
  const config = readConfig(only === undefined ? process.env : { ...process.env, ONLY: only })
  const log = createLog((line) => process.stdout.write(`${line}\n`), config.logLevel)
  const stopped = untilStopped()
  await using door = await openDoor(config)
  const service = await startService(config, log)
  door?.serve(commandRunner({ config, service }))
  stopped.started()
  const signal = await stopped.asked
  log.info('stopping', { signal })
  await door?.stop()
  await service.close()
}

function settingsHelp(): string {
  return Object.entries(settings)
    .map(([name, { help, fallback }]) => `  ${name.padEnd(28)} ${help}${fallback === '' ? '' : ` [${fallback}]`}`)
    .join('\n')
}
