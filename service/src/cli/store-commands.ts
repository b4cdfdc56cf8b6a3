/** The commands on the store. The process of the CLI runs them, or the service on its behalf. */
import { Command, CommanderError } from 'commander'
import type { Config } from '../app/config/config.ts'
import type { Service } from '../app/service.ts'
import { approvalCommand } from './approval.ts'
import { auditCommand } from './audit.ts'
import { privacyCommand } from './privacy.ts'
import { attestCommand } from './keys/attestation.ts'
import { assetCommand } from './asset/asset.ts'
import type { RunCommand } from './session/data-directory-lock.ts'
import { backupCommand } from './database/backup.ts'
import { restoreCommand } from './database/restore.ts'
import { type RunBare, runWithin, type RunWork, sessionBase } from './session/session.ts'
import { formatError } from './session/output.ts'
import { keyCommand } from './keys/api.ts'
import { hsmCommand } from './keys/hsm.ts'
import { issuerCommand } from './keys/issuer.ts'
import { indexCommand } from './chain-index.ts'
import { chainCommand } from './chain-roles.ts'
import { exportCommand } from './export.ts'
import { paymentsCommand } from './payments/payments.ts'
import { migrateCommand } from './database/migrate.ts'
import { productCommand } from './product/product.ts'
import { reportCommand } from './report.ts'
import { tagCommand } from './tag/tag.ts'

export function storeCommands(run: RunWork, print: (line: string) => void, runBare: RunBare): Command[] {
  return [
    tagCommand(run, print),
    assetCommand(run),
    productCommand(run),
    reportCommand(run),
    indexCommand(run),
    chainCommand(run),
    exportCommand(run),
    keyCommand(run),
    hsmCommand(print),
    approvalCommand(run),
    auditCommand(run),
    privacyCommand(run),
    issuerCommand(run),
    attestCommand(run),
    paymentsCommand(run),
    migrateCommand(runBare),
    backupCommand(runBare),
    restoreCommand(runBare),
  ]
}

export function commandRunner({ config, service }: { readonly config: Config; readonly service: Service }): RunCommand {
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
    for (const command of storeCommands(run, io.out, runBare)) program.addCommand(command)
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
