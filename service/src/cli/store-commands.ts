/** The commands on the store. The process of the CLI runs them, or the service on its behalf. */
import { Command, CommanderError } from 'commander'
import type { Config } from '../app/config/config.ts'
import type { Service } from '../app/service.ts'
import type { RunCommand } from './session/data-directory-lock.ts'
import { type RunBare, runWithin, type RunWork, sessionBase } from './session/session.ts'
import { formatError } from './session/output.ts'

type MakeGroup = (run: RunWork, print: (line: string) => void, runBare: RunBare) => Command

/** The groups of commands, each with the import of its own file, as in `program.ts`. */
const groups: Readonly<Record<string, () => Promise<MakeGroup>>> = {
  tag: async () => (await import('./tag/tag.ts')).tagCommand,
  asset: async () => (await import('./asset/asset.ts')).assetCommand,
  product: async () => (await import('./product/product.ts')).productCommand,
  report: async () => (await import('./report.ts')).reportCommand,
  index: async () => (await import('./chain-index.ts')).indexCommand,
  chain: async () => (await import('./chain-roles.ts')).chainCommand,
  export: async () => (await import('./export.ts')).exportCommand,
  key: async () => (await import('./keys/api.ts')).keyCommand,
  hsm: async () => {
    const { hsmCommand } = await import('./keys/hsm.ts')
    return (_run, print) => hsmCommand(print)
  },
  approval: async () => (await import('./approval.ts')).approvalCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  privacy: async () => (await import('./privacy.ts')).privacyCommand,
  issuer: async () => (await import('./keys/issuer.ts')).issuerCommand,
  attest: async () => (await import('./keys/attestation.ts')).attestCommand,
  payments: async () => (await import('./payments/payments.ts')).paymentsCommand,
  migrate: async () => bare((await import('./database/migrate.ts')).migrateCommand),
  backup: async () => bare((await import('./database/backup.ts')).backupCommand),
  restore: async () => bare((await import('./database/restore.ts')).restoreCommand),
}

function bare(make: (run: RunBare) => Command): MakeGroup {
  return (_run, _print, runBare) => make(runBare)
}

export function isStoreGroup(name: string): boolean {
  return Object.hasOwn(groups, name)
}

/** Loads one group, or all. Returns the function that makes the commands, which loads nothing more. */
export async function loadStoreCommands(only?: string) {
  const loads = Object.entries(groups).flatMap(([name, load]) => (only === undefined || name === only ? [load()] : []))
  const makers = await Promise.all(loads)
  return (...runs: Parameters<MakeGroup>): Command[] => makers.map((make) => make(...runs))
}

/** All groups are loaded before this resolves: an upgrade of the files on disk never changes a service that runs. */
export async function commandRunner(config: Config, service: Service): Promise<RunCommand> {
  const makeCommands = await loadStoreCommands()
  const { components, urls } = service
  const base = sessionBase(config, urls.verification, { store: components, chain: components })
  return async (argv, io) => {
    let exit = 0
    const program = new Command('touchstone')
    const run: RunWork = async (work) => {
      exit = (await work({ ...base, io, inService: true })) ?? 0
    }
    const runBare: RunBare = async (work) => {
      exit = (await work({ io, config, running: components.database })) ?? 0
    }
    for (const command of makeCommands(run, io.out, runBare)) program.addCommand(command)
    try {
      await runWithin(program, argv, io)
      return exit
    } catch (error) {
      if (error instanceof CommanderError) return error.exitCode
      io.err(`touchstone: ${formatError(error)}`)
      return 1
    }
  }
}
