/** The commands that work on what the service keeps, for the CLI's process and for the service that carries them out. */
import { Command, CommanderError } from 'commander'
import type { Config } from '../config.ts'
import type { Service } from '../service.ts'
import { attestCommand } from './attest-key.ts'
import { assetCommand } from './asset-command.ts'
import type { RunCommand } from './control.ts'
import { backupCommand } from './backup-command.ts'
import type { RunBare } from './bare-command.ts'
import { keyCommand } from './key-command.ts'
import { runWithin, sentenceOf, sessionBase, type RunWork } from './store-command.ts'
import { indexCommand } from './index-command.ts'
import { migrateCommand } from './migrate-command.ts'
import { restoreCommand } from './restore-command.ts'
import { tagCommand } from './tag-command.ts'

export function storeCommands(run: RunWork, print: (line: string) => void, runBare: RunBare): Command[] {
  return [
    tagCommand(run, print),
    assetCommand(run),
    indexCommand(run),
    keyCommand(run),
    attestCommand(run, ({ store }) => store.attestationKeys()),
    migrateCommand(runBare),
    backupCommand(runBare),
    restoreCommand(runBare),
  ]
}

/** Carries commands out with the parts of a running service. */
export function commandRunner({ config, service }: { readonly config: Config; readonly service: Service }): RunCommand {
  const { parts, urls } = service
  const base = sessionBase(config, urls.verification, { store: parts, chain: parts })
  return async (argv, io) => {
    let exit = 0
    const program = new Command('touchstone')
    const run: RunWork = async (work) => {
      exit = (await work({ ...base, io })) ?? 0
    }
    const runBare: RunBare = async (work) => {
      exit = (await work({ io, config, running: parts.database })) ?? 0
    }
    for (const command of storeCommands(run, io.out, runBare)) program.addCommand(command)
    try {
      await runWithin(program, argv, io)
      return exit
    } catch (error) {
      if (error instanceof CommanderError) return error.exitCode
      io.err(`touchstone: ${sentenceOf(error)}`)
      return 1
    }
  }
}
